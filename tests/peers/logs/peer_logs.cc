// Writes what `make peers` lets other implementations judge: logs of many sizes, cosigned by the
// agents' witness, with inclusion and consistency proofs as the server makes them.
//   peer_logs FOLDER
// makes FOLDER/SIZE/log, and FOLDER/SIZE/proofs.json with
//   {"log":vkey,"witness":vkey,"inclusion":[{"entry","index","proof"}],"consistency":[{"old","proof"}]}

#include <algorithm>
#include <cstdio>
#include <set>
#include <string>
#include <vector>

#include "audit/log.h"
#include "audit/note.h"
#include "base/encoding.h"
#include "base/json.h"
#include "os/file.h"

namespace ringfence {
namespace {

constexpr const char* kOrigin = "ringfence.test/peers";
constexpr std::uint64_t kSizes[] = {1,   2,   3,    7,    8,     255,   256,   257,
                                    511, 512, 1000, 5000, 65535, 65536, 65537, 70001};
constexpr std::uint64_t kProofsEach = 60;

crypto::SigningKey KeyOf(unsigned char fill) {
  return crypto::SigningKey::FromSeed(SecretBytes(Bytes(32, std::byte{fill}))).value();
}

Bytes EntryOf(std::uint64_t index) {
  return ToBytes("{\"n\":" + std::to_string(index) + ",\"text\":\"" + std::string(index % 97, 'x') +
                 "\"}");
}

// The borders of tiles and the ends, and numbers spread over the rest.
std::set<std::uint64_t> Places(std::uint64_t size) {
  std::set<std::uint64_t> places;
  for (const std::uint64_t place : {0, 1, 2, 255, 256, 257, 65535, 65536}) {
    places.insert(place);
  }
  for (std::uint64_t i = 0; i < kProofsEach; ++i) {
    places.insert(i * 7919 % size);
    places.insert(size - 1 - std::min(size - 1, i));
  }
  std::erase_if(places, [size](std::uint64_t place) { return place >= size; });
  return places;
}

JsonArray ToJson(const std::vector<Digest>& proof) {
  JsonArray hashes;
  for (const Digest& hash : proof) {
    hashes.emplace_back(Base64(hash));
  }
  return hashes;
}

Status MakeOne(const std::string& folder, std::uint64_t size) {
  const std::string log_folder = folder + "/log";
  const crypto::SigningKey key = KeyOf(3);
  RINGFENCE_ASSIGN(const auto log, audit::LogWriter::Open(log_folder, kOrigin, key));
  while (log->head().size < size) {  // in batches of odd sizes, as they come in life
    std::vector<Bytes> entries;
    const std::uint64_t have = log->head().size;
    const std::uint64_t batch = std::min(size - have, have + 1 + have / 3);
    for (std::uint64_t i = 0; i < std::min<std::uint64_t>(batch, 20000); ++i) {
      entries.push_back(EntryOf(have + i));
    }
    RINGFENCE_TRY(log->Append(entries));
  }
  RINGFENCE_ASSIGN(audit::Witness witness,
                   audit::Witness::Open(folder + "/witness-state", "node-1.ringfence.test/witness",
                                        KeyOf(4), {kOrigin, 1, key.public_key()}));
  RINGFENCE_ASSIGN(const std::string line,
                   witness.Check(log->checkpoint(), {}, SystemClock().Now()));
  RINGFENCE_TRY(log->AddCosignature(line));

  JsonArray inclusion;
  JsonArray consistency;
  for (const std::uint64_t place : Places(size)) {
    RINGFENCE_ASSIGN(const auto path, audit::InclusionProof(log_folder, place, size));
    RINGFENCE_ASSIGN(const Bytes entry, audit::ReadEntry(log_folder, place, size));
    inclusion.push_back(
        JsonObject{{"index", place}, {"entry", Base64(entry)}, {"proof", ToJson(path)}});
    RINGFENCE_ASSIGN(const auto proof, audit::ConsistencyProof(log_folder, place + 1, size));
    consistency.push_back(JsonObject{{"old", place + 1}, {"proof", ToJson(proof)}});
  }
  return os::WriteFile(
      folder + "/proofs.json",
      AsBytes(CanonicalJson(JsonObject{{"log", audit::VerifierKey(kOrigin, 1, key.public_key())},
                                       {"witness", witness.vkey()},
                                       {"inclusion", std::move(inclusion)},
                                       {"consistency", std::move(consistency)}})));
}

}  // namespace
}  // namespace ringfence

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: peer_logs FOLDER\n");
    return 2;
  }
  for (const std::uint64_t size : ringfence::kSizes) {
    const std::string folder = std::string(argv[1]) + "/" + std::to_string(size);
    ringfence::Status status = ringfence::os::MakeDirs(folder);
    if (status.has_value()) {
      status = ringfence::MakeOne(folder, size);
    }
    if (!status.has_value()) {
      std::fprintf(stderr, "error: %s\n", status.error().message.c_str());
      return 1;
    }
  }
  return 0;
}
