#include <algorithm>

#include "assure/evidence_package.h"
#include "audit/entry.h"
#include "audit/note.h"
#include "audit/verify.h"
#include "base/encoding.h"
#include "base/json.h"
#include "crypto/dsse.h"
#include "crypto/ed25519_pem.h"
#include "crypto/sha256.h"

namespace ringfence::assure {
namespace {

constexpr std::size_t kJsonBytesMax = std::size_t{64} << 20U;

class Verifying {
 public:
  Verifying(const EvidenceFiles& files, const EvidenceTrust& trust)
      : files_(files), trust_(trust) {}

  EvidenceReport Run() {
    Digests();
    Signature();
    LogProofs();
    Statements();
    return std::move(report_);
  }

 private:
  void Problem(std::string what) { report_.problems.push_back(std::move(what)); }
  void Note(std::string what) { report_.notes.push_back(std::move(what)); }
  const std::string* Find(std::string_view path) const {
    const auto found = files_.find(std::string(path));
    return found == files_.end() ? nullptr : &found->second;
  }

  void Digests() {
    const std::string* const manifest = Find(kManifestName);
    if (manifest == nullptr) {
      Problem("there is no " + std::string(kManifestName));
      return;
    }
    const auto digests = ParseManifest(*manifest);
    if (!digests.has_value()) {
      Problem(digests.error().message);
      return;
    }
    for (const auto& [path, digest] : *digests) {
      const std::string* const bytes = Find(path);
      if (bytes == nullptr) {
        Problem(path + ": is missing");
      } else if (Hex(crypto::Sha256(AsBytes(*bytes))) != digest) {
        Problem(path + ": is not what the manifest says");
      } else {
        ++report_.files;
      }
    }
    for (const auto& [path, bytes] : files_) {
      if (!IsSeal(path) && !digests->contains(path)) {
        Problem(path + ": is not in the manifest");
      }
    }
  }

  void Signature() {
    const std::string* const signature = Find(kManifestSignatureName);
    const std::string* const manifest = Find(kManifestName);
    if (signature == nullptr || manifest == nullptr) {
      if (trust_.signer.has_value()) {
        Problem("the manifest is not signed");
      } else {
        Note("the manifest is not signed: digests show damage, not who made the package");
      }
      return;
    }
    std::optional<crypto::PublicKey> key = trust_.signer;
    if (!key.has_value()) {
      const std::string* const pem = Find(kSignerName);
      const auto own = pem == nullptr ? Result<crypto::PublicKey>(Error{Code::kNotFound, "none"})
                                      : crypto::ReadPublicKeyPem(*pem);
      if (!own.has_value()) {
        Problem(std::string(kSignerName) + ": holds no key to verify the signature with");
        return;
      }
      key = *own;
      Note("the signer's key came with the package: compare it with one you trust (--signer)");
    }
    if (key->Verify(AsBytes(*manifest), AsBytes(*signature))) {
      report_.signer = key->Id();
    } else {
      Problem(std::string(kManifestSignatureName) + ": no signature of the manifest by key " +
              key->Id());
    }
  }

  void LogProofs() {
    std::string vkey = trust_.log_vkey;
    if (vkey.empty()) {
      const std::string* const own = Find("audit/log.vkey");
      if (own == nullptr) {
        Note("no audit log is in it");
        return;
      }
      vkey = own->substr(0, own->find('\n'));
      Note("the log's key came with the package: compare it with one you trust (--log-key)");
    }
    if (const std::string* const note = Find("audit/checkpoint")) {
      const auto key = audit::ParseVerifierKey(vkey);
      if (!key.has_value()) {
        Problem("the log's key: " + key.error().message);
        return;
      }
      const auto checkpoint = audit::OpenCheckpoint(*note, *key);
      if (!checkpoint.has_value()) {
        Problem("audit/checkpoint: " + checkpoint.error().message);
      }
    }
    for (const auto& [path, bytes] : files_) {
      if (path.starts_with("audit/proofs/") && Proven(path, bytes, vkey)) {
        ++report_.proofs;
      }
    }
    const std::string* const own = Find(kManifestProofName);
    if (own != nullptr && Proven(std::string(kManifestProofName), *own, vkey)) {
      const Status recorded = Recorded(*own);
      if (!recorded.has_value()) {
        Problem(std::string(kManifestProofName) + ": " + recorded.error().message);
      }
    }
  }

  bool Proven(const std::string& path, const std::string& bytes, const std::string& vkey) {
    const auto proven = audit::VerifyProof(bytes, vkey);
    if (proven.has_value() && proven->ok) {
      return true;
    }
    Problem(path + ": " +
            (!proven.has_value()        ? proven.error().message
             : proven->problems.empty() ? "is not what was signed"
                                        : proven->problems.front()));
    return false;
  }

  // The entry, known to be in the log, in which the server took down this very manifest.
  Status Recorded(const std::string& proof) {
    RINGFENCE_ASSIGN(const Json json, ParseJson(proof, kJsonBytesMax));
    const JsonObject* const object = json.if_object();
    const Json* const encoded = object == nullptr ? nullptr : object->if_contains("entry");
    if (encoded == nullptr || !encoded->is_string()) {
      return Error{Code::kCorrupt, "has no entry"};
    }
    RINGFENCE_ASSIGN(const Bytes bytes, FromBase64(std::string_view(encoded->get_string())));
    RINGFENCE_ASSIGN(const audit::Entry entry, audit::Entry::Parse(bytes));
    const Json* const digest = entry.detail.if_contains("manifest_sha256");
    if (entry.action != "evidence.export" || digest == nullptr ||
        *digest != Json(ManifestDigest(files_))) {
      return Error{Code::kCorrupt, "the audit log has another manifest than this one"};
    }
    report_.recorded = FormatTime(entry.time) + " by " + entry.actor.principal;
    return {};
  }

  // What nodes signed: how probes ended, that GPUs were scrubbed.
  void Statements() {
    for (const auto& [path, bytes] : files_) {
      if (!path.starts_with("evidence/statements/")) {
        continue;
      }
      const auto json = ParseJson(bytes, kJsonBytesMax);
      const Status good = json.has_value() ? Statement(*json) : Status(json.error());
      if (good.has_value()) {
        ++report_.statements;
      } else {
        Problem(path + ": " + good.error().message);
      }
    }
  }

  Status Statement(const Json& json) {
    RINGFENCE_ASSIGN(auto reader, JsonReader::Open(json));
    RINGFENCE_ASSIGN(const std::string node, reader.String("node", 256));
    RINGFENCE_ASSIGN(const std::string type, reader.String("type", 256));
    RINGFENCE_ASSIGN(const std::string envelope,
                     reader.String("envelope", crypto::kEnvelopeBytesMax));
    RINGFENCE_TRY(reader.Finish());
    RINGFENCE_ASSIGN(const crypto::PublicKey key, KeyOf(node));
    RINGFENCE_ASSIGN(const std::string payload, crypto::OpenEnvelope(key, type, envelope));
    RINGFENCE_ASSIGN(const Json said, ParseJson(payload, crypto::kEnvelopeBytesMax));
    const JsonObject* const object = said.if_object();
    const Json* const named = object == nullptr ? nullptr : object->if_contains("node");
    if (named == nullptr || *named != Json(node)) {
      return Error{Code::kCorrupt, "is a statement of another node"};
    }
    return {};
  }

  Result<crypto::PublicKey> KeyOf(const std::string& node) {
    const std::string* const nodes = Find("evidence/nodes.json");
    if (nodes == nullptr) {
      return Error{Code::kNotFound, "evidence/nodes.json with the nodes' keys is missing"};
    }
    RINGFENCE_ASSIGN(const Json json, ParseJson(*nodes, kJsonBytesMax));
    const JsonArray* const list = json.if_array();
    for (std::size_t i = 0; list != nullptr && i < list->size(); ++i) {
      const JsonObject* const object = (*list)[i].if_object();
      const Json* const name = object == nullptr ? nullptr : object->if_contains("name");
      const Json* const key = object == nullptr ? nullptr : object->if_contains("receipt_key");
      if (name != nullptr && *name == Json(node) && key != nullptr && key->is_string()) {
        RINGFENCE_ASSIGN(const Bytes raw, FromBase64(std::string_view(key->get_string())));
        return crypto::PublicKey::FromRaw(raw);
      }
    }
    return Error{Code::kNotFound, "evidence/nodes.json has no key of node " + node};
  }

  const EvidenceFiles& files_;
  const EvidenceTrust& trust_;
  EvidenceReport report_;
};

}  // namespace

EvidenceReport VerifyEvidence(const EvidenceFiles& files, const EvidenceTrust& trust) {
  return Verifying(files, trust).Run();
}

}  // namespace ringfence::assure
