// Goal: no input crashes a reader of notes, keys or proof files; the two readers of notes, which
// share no code, always agree.

#include <cstdlib>

#include "audit/audit_test_util.h"
#include "audit/note.h"
#include "audit/verify.h"
#include "audit/verify_note.h"

namespace {
using namespace ringfence;  // NOLINT(google-build-using-namespace): one short program

void Require(bool condition) {
  if (!condition) {
    std::abort();
  }
}
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const crypto::SigningKey key = audit::testing::KeyOf(1);
  static const audit::NamedKey log{audit::testing::kOrigin, 1, key.public_key()};
  static const audit::NamedKey witness{"w.test/1", 4, audit::testing::KeyOf(7).public_key()};
  static const std::string log_vkey = audit::VerifierKey(log.name, log.type, log.key);
  static const auto log_key = audit::verify::ReadKey(log_vkey).value();
  static const auto witness_key =
      audit::verify::ReadKey(audit::VerifierKey(witness.name, witness.type, witness.key)).value();
  const std::string_view text = AsText(std::as_bytes(std::span(data, size)));

  const auto one = audit::OpenCheckpoint(text, log);
  const auto other = audit::verify::ReadNote(text);
  const bool other_ok =
      other.has_value() && audit::verify::CheckSigned(*other, log_key).has_value();
  Require(one.has_value() == other_ok);
  if (other_ok) {
    Require(one->head == audit::TreeHead{other->size, other->root});
    const auto time = audit::VerifyCosignature(text, witness);
    const auto other_time = audit::verify::CheckCosigned(*other, witness_key);
    Require(time.has_value() == other_time.has_value());
    Require(!time.has_value() || *time == *other_time);
  }
  const auto parsed = audit::ParseVerifierKey(text);
  const auto read = audit::verify::ReadKey(text);
  Require(parsed.has_value() == read.has_value());
  Require(!parsed.has_value() || parsed->key == read->key);
  const auto report = audit::VerifyProof(text, log_vkey);
  Require(report.has_value());
  return 0;
}
