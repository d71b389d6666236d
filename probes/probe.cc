#include "probe.h"

#include <cerrno>
#include <charconv>
#include <cstring>

#include "hex.h"
#include "sha256.h"

namespace ringfence::probe {
namespace {

constexpr std::size_t kSecretBytes = 32;

}  // namespace

std::string Input::Get(const std::string& key) const {
  const auto found = facts.find(key);
  return found == facts.end() ? "" : found->second;
}

std::int64_t Input::Number(const std::string& key) const {
  const std::string text = Get(key);
  std::int64_t value = 0;
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), value);
  return text.empty() || wrong != std::errc() || end != text.data() + text.size() ? -1 : value;
}

bool Input::IsSecret(std::string_view bytes) const {
  const Sha256Digest digest = Sha256(bytes);
  return ToHex({reinterpret_cast<const char*>(digest.data()), digest.size()}) == Get("digest");
}

std::uint64_t Input::FindSecret(std::string_view bytes) const {
  for (std::size_t at = 0; at + kSecretBytes <= bytes.size(); ++at) {
    if (IsSecret(bytes.substr(at, kSecretBytes))) {
      return kSecretBytes;
    }
    std::string raw;
    if (at + 2 * kSecretBytes <= bytes.size() && FromHex(bytes.substr(at, 2 * kSecretBytes), raw) &&
        IsSecret(raw)) {
      return kSecretBytes;
    }
  }
  return 0;
}

Outcome Held(std::string detail) { return {Outcome::Result::kHeld, 0, std::move(detail)}; }
Outcome Leaked(std::uint64_t bytes, std::string detail) {
  return {Outcome::Result::kLeaked, bytes, std::move(detail)};
}
Outcome CannotTry(std::string why) { return {Outcome::Result::kCannotTry, 0, std::move(why)}; }

std::string Words(int error) {
  const char* name = strerrorname_np(error);
  return std::string(name == nullptr ? "error" : name) + " (" + strerrordesc_np(error) + ")";
}

Outcome Refused(std::string_view call, int error, std::initializer_list<int> missing) {
  for (const int one : missing) {
    if (one == error) {
      return CannotTry(std::string(call) + ": this kernel does not have it: " + Words(error));
    }
  }
  return Held(std::string(call) + ": " + Words(error));
}

void Victim::CouldNotPlant(std::string_view call, int error) {
  facts["not_planted"] = std::string(call) + ": " + Words(error);
}

}  // namespace ringfence::probe
