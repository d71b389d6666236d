#pragma once

// JSON as all of Ringfence reads and writes it: strict input with limits, one canonical output,
// and typed reading that names the field that is wrong.

#include <boost/json/value.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ringfence {

using Json = boost::json::value;
using JsonObject = boost::json::object;
using JsonArray = boost::json::array;

inline constexpr std::size_t kJsonDepthMax = 32;

// One JSON document and nothing after it. Refused: over `bytes_max`, nested deeper than
// kJsonDepthMax, not UTF-8, an object with the same key twice.
Result<Json> ParseJson(std::string_view text, std::size_t bytes_max);

// RFC 8785 for what we write: keys sorted by UTF-16 code unit, no white space, shortest escapes.
// Numbers are integers of at most 2^53 in magnitude; anything else is a defect of the caller.
std::string CanonicalJson(const Json& value);

// For people.
std::string PrettyJson(const Json& value);

// Reads the members of one object. Errors name the member's whole path ("spec.gpus"). Every
// member must be asked for: Finish() refuses those that were not, so that a typing error in a
// field is never passed over in silence. The object must outlive the reader.
class JsonReader {
 public:
  static Result<JsonReader> Open(const Json& value, std::string path = {});

  Result<std::string> String(std::string_view name, std::size_t bytes_max = 4096);
  Result<std::int64_t> Int(std::string_view name, std::int64_t least, std::int64_t most);
  Result<bool> Bool(std::string_view name);
  Result<const Json*> Any(std::string_view name);  // kInvalidArgument when absent
  Result<std::vector<std::string>> Strings(std::string_view name, std::size_t count_max = 1024,
                                           std::size_t bytes_max = 4096);
  Result<std::vector<const Json*>> Array(std::string_view name, std::size_t count_max = 4096);

  // Absent or null counts as not given.
  bool Has(std::string_view name);
  Result<std::string> StringOr(std::string_view name, std::string fallback,
                               std::size_t bytes_max = 4096);
  Result<std::int64_t> IntOr(std::string_view name, std::int64_t fallback, std::int64_t least,
                             std::int64_t most);
  Result<bool> BoolOr(std::string_view name, bool fallback);

  Status Finish() const;
  // The path of a member of this object, for errors of the caller's own.
  std::string Path(std::string_view name) const;

 private:
  JsonReader(const JsonObject& object, std::string path)
      : object_(&object), path_(std::move(path)) {}
  const Json* Find(std::string_view name);
  Error Wrong(std::string_view name, std::string_view expected) const;

  const JsonObject* object_;
  std::string path_;
  std::vector<std::string_view> asked_;
};

}  // namespace ringfence
