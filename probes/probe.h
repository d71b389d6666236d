#pragma once

// What an attack is made of. Each runs alone in a box, as the job of a lease, and says on its
// standard output what came of it; docs/probes.md has the words. It reads and opens, and breaks
// nothing, even where it gets through.

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ringfence::probe {

using Facts = std::map<std::string, std::string>;

struct Input {
  Facts facts;  // KEY=VALUE of the command line

  std::string Get(const std::string& key) const;      // "" when it was not told
  std::int64_t Number(const std::string& key) const;  // -1 when it was not told, or is none
  // Whether these are the victim's secret: their SHA-256 is the digest that we were told.
  bool IsSecret(std::string_view bytes) const;
  // Whether the secret is anywhere in them, as its bytes or as hexadecimal text; how many bytes.
  std::uint64_t FindSecret(std::string_view bytes) const;
};

struct Outcome {
  enum class Result { kHeld, kLeaked, kCannotTry };
  Result result = Result::kHeld;
  std::uint64_t leaked_bytes = 0;
  std::string detail;
};
Outcome Held(std::string detail);
Outcome Leaked(std::uint64_t bytes, std::string detail);
Outcome CannotTry(std::string why);
// Of a call that failed: refused, or not there at all. `missing` are the errnos of a kernel that
// does not have it.
Outcome Refused(std::string_view call, int error, std::initializer_list<int> missing = {});
std::string Words(int error);  // "EPERM (Operation not permitted)"

// The neighbour's side: what it plants, and what it tells. It lives until it is ended.
struct Victim {
  std::string secret;  // 32 bytes
  Facts facts;         // told to the attacker
  // Called again and again as long as it lives, if it is there; else it just waits.
  void (*busy)(Victim&) = nullptr;
  void (*end)(Victim&) = nullptr;  // before it goes
  void* state = nullptr;
  std::string broken;  // by what `busy` ran into: it goes, saying so

  // What a wall keeps a victim itself from planting: the attacker tries all the same.
  void CouldNotPlant(std::string_view call, int error);
};

struct Code {
  const char* name;
  Outcome (*attack)(const Input& input);
  void (*plant)(Victim& victim) = nullptr;
};

std::span<const Code> CgroupAttacks();
std::span<const Code> ChipAttacks();
std::span<const Code> DeviceAttacks();
std::span<const Code> FileAttacks();
std::span<const Code> GpuAttacks();
std::span<const Code> IpcAttacks();
std::span<const Code> KernelAttacks();
std::span<const Code> MountAttacks();
std::span<const Code> NetworkAttacks();
std::span<const Code> ProcessAttacks();
std::span<const Code> RuntimeAttacks();

}  // namespace ringfence::probe
