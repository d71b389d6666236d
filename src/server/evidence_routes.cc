// Packages of evidence: their manifests' digests go into the audit log, so that who has a package
// can prove when, and by whom, it was made.

#include "server/routes.h"

namespace ringfence::server {

void RecordEvidence(const Call& call, const net::Responder& responder) {
  Answer(responder, [&]() -> Result<net::Response> {
    RINGFENCE_ASSIGN(const Json body, BodyOf(call.request));
    RINGFENCE_ASSIGN(auto reader, JsonReader::Open(body));
    RINGFENCE_ASSIGN(const std::string digest, reader.String("manifest_sha256", 64));
    RINGFENCE_TRY(reader.Finish());
    if (digest.size() != 64 || digest.find_first_not_of("0123456789abcdef") != std::string::npos) {
      return Error{Code::kInvalidArgument, "must be a SHA-256 as 64 hexadecimal digits",
                   "`sha256sum MANIFEST.sha256` prints it", "manifest_sha256"};
    }
    audit::Entry entry = call.core.NewEntry(ActorOf(call.caller), "evidence.export");
    Note(call, entry);
    entry.result = "ok";
    entry.detail["manifest_sha256"] = digest;
    RINGFENCE_TRY(call.core.RecordAlone(entry));
    return net::Response::OfJson(201, JsonObject{{"entry", entry.id}, {"manifest_sha256", digest}});
  });
}

}  // namespace ringfence::server
