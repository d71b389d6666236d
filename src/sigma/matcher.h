#pragma once

// All rules in one matcher. The tests of all rules are pooled: equal ones are one atom, asked once
// for an event. Literal tests of a field are found by one scan of its value; a rule is looked at
// only when something that it cannot do without was found.
//
// A Matcher never changes after Build and may be shared by threads; each thread has a Session.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "sigma/ruleset.h"

namespace ringfence::sigma {

inline constexpr std::size_t kEventBytesMax = std::size_t{1} << 20U;  // of one event's JSON
inline constexpr std::size_t kEventDepthMax = 64;
// Bytes that must be readable after an event's last for Session to parse it without a copy.
inline constexpr std::size_t kEventPadding = 64;

// How field names find their values: a name is a path ("user.name" is name in user; a member whose
// own name has dots counts too); through lists, every element. In a Windows event as JSON
// ({"Event": {"System": ..., "EventData": ...}}) the names are also those of EventData and
// UserData, and System's elements, attributes as Element_Attribute (Provider_Name).
std::vector<std::vector<std::string>> PathsOf(const std::string& field);
inline constexpr std::string_view kAnyKey = "*";  // in such a path: whatever the member is called

struct MatcherFacts {
  std::size_t rules = 0;
  std::size_t fields = 0;
  std::size_t atoms = 0;     // different tests
  std::size_t literals = 0;  // of them found by scanning
  std::size_t always = 0;    // rules that every event must be shown to
};

class Matcher {
 public:
  // `set` must outlive the matcher. `extra_fields`: names that Session::Values will be asked for.
  static std::unique_ptr<const Matcher> Build(const RuleSet& set,
                                              const std::vector<std::string>& extra_fields = {});
  ~Matcher();
  Matcher(const Matcher&) = delete;
  Matcher& operator=(const Matcher&) = delete;

  const MatcherFacts& facts() const;

  struct Plan;  // internal

  class Session {
   public:
    explicit Session(const Matcher& matcher);  // the matcher must outlive it
    ~Session();
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;

    // The rules (as indexes into the set's) that `json` matches, ascending; valid until the next
    // call. Refused, with the reason: what is not one JSON object, is not UTF-8, is too long or
    // too deep, has a number beyond 64 bits or a member twice. `padded`: kEventPadding bytes after
    // it may be read.
    Result<const std::vector<std::uint32_t>*> Match(std::string_view json, bool padded = false);

    // Of the last event: the values of a field that a rule or extra_fields names, as text.
    std::vector<std::string> Values(std::string_view field) const;

   private:
    class Impl;
    std::unique_ptr<Impl> impl_;
  };

 private:
  explicit Matcher(std::unique_ptr<Plan> plan);
  std::unique_ptr<const Plan> plan_;
};

}  // namespace ringfence::sigma
