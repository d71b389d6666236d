// Any bytes as what NVML said, and as a baseline: no crash, and what is read can be written and
// read again.

#include "assure/baseline.h"
#include "base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ringfence;
  const std::string text(reinterpret_cast<const char*>(data), size);
  if (const auto report = assure::ParseNvml(text); report.has_value()) {
    const std::string written = CanonicalJson(assure::NvmlJson(*report));
    const auto again = assure::ParseNvml(written);
    RINGFENCE_CHECK(again.has_value() && CanonicalJson(assure::NvmlJson(*again)) == written);
  }
  const auto machine = assure::MakeMachine(
      {{assure::kNvmlFile, {.text = text}}, {"/proc/modules", {.text = text}}}, 0);
  const assure::BaselineSight sight = assure::SeeBaseline(*machine, nullptr);
  RINGFENCE_CHECK(sight.facts.size() <= assure::kBaselineFactsMax);
  static const crypto::SigningKey kKey =
      crypto::SigningKey::FromSeed(SecretBytes(Bytes(32))).value();
  RINGFENCE_CHECK(!assure::OpenBaseline(text, kKey.public_key()).has_value());
  const auto own =
      assure::OpenBaseline(assure::SignBaseline({"n", {}, sight.facts}, kKey), kKey.public_key());
  RINGFENCE_CHECK(own.has_value() && own->facts == sight.facts);
  return 0;
}
