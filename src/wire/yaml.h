#pragma once

// YAML as Ringfence reads and writes it: a small, strict part of the language. Plain and quoted
// text, lists and maps; no anchors, aliases or tags, no key twice, every limit named. yaml.cc is
// the only file that knows the library behind it, and no exception leaves it.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace ringfence::wire {

inline constexpr std::size_t kYamlBytesMax = std::size_t{1} << 20U;
inline constexpr std::size_t kYamlDepthMax = 32;
inline constexpr std::size_t kYamlNodesMax = std::size_t{1} << 18U;  // of all documents of a file
inline constexpr std::size_t kYamlProblemsMax = 100;                 // more are counted, not kept

// What is wrong in a file, and where.
struct YamlProblem {
  std::string file;
  int line = 0;      // from 1; 0 for the file as a whole
  std::string path;  // "spec.tenant"; may be empty
  std::string what;
  std::string hint = {};  // what to do; may be empty

  auto operator<=>(const YamlProblem&) const = default;
  // "bindings.yaml:7: spec.tenant: unknown tenant "acme/reserch" (did you mean "acme/research"?)"
  std::string Text() const;
};

// Collects problems, so that one reading shows all of them. Bytes that are not printable ASCII are
// replaced: what is shown came from a file and goes to a terminal.
class YamlProblems {
 public:
  void Add(YamlProblem problem);
  void AddAll(const YamlProblems& other);
  bool empty() const { return problems_.empty(); }
  bool full() const { return problems_.size() >= kYamlProblemsMax; }
  std::string Text() const;  // a line each, by file and line

 private:
  std::vector<YamlProblem> problems_;
  std::size_t left_out_ = 0;
};

struct YamlMember;
struct YamlNode {
  enum class Kind { kNull, kText, kList, kMap };
  Kind kind = Kind::kNull;
  int line = 0;         // from 1
  bool quoted = false;  // text in quotes or in a block is text, whatever it looks like
  std::string text;
  std::vector<YamlNode> items;      // of a list
  std::vector<YamlMember> members;  // of a map, as written

  const YamlNode* Find(std::string_view key) const;
  // Unquoted, and to a YAML reader a number, true, false or null.
  bool LooksTyped() const;
};
struct YamlMember {
  std::string key;
  int line = 0;
  YamlNode value;
};

// The documents of `text`, those that hold nothing left out. With a problem: none at all.
// Comments are dropped. `file` is how the text is called in problems.
std::vector<YamlNode> ParseYaml(std::string_view text, const std::string& file,
                                YamlProblems& problems);

struct YamlText {
  std::string text;
  int line = 0;
};

// Reads the members of one map. Whatever is wrong goes to `problems`, and the reading goes on, so
// that the user sees all of it at once. The node and the problems must outlive the reader.
class YamlReader {
 public:
  // `node` may be null (absent) or no map: a problem, and a reader of nothing.
  YamlReader(const YamlNode* node, std::string path, YamlText where, YamlProblems& problems);

  std::optional<YamlText> Text(std::string_view name, std::size_t bytes_max = 256);
  std::optional<YamlText> TextIfGiven(std::string_view name, std::size_t bytes_max = 256);
  std::optional<std::uint64_t> Number(std::string_view name, std::uint64_t most);
  // At least `least` texts; none when there is a problem.
  std::vector<YamlText> Texts(std::string_view name, std::size_t least, std::size_t most);
  const YamlNode* Any(std::string_view name);  // null when absent, without a problem

  // A problem for each member that was not asked for. Call once, last.
  void Finish();

  bool is_map() const { return node_ != nullptr; }
  int line() const { return line_; }
  int LineOf(std::string_view name) const;  // of the member, or of the map where it is absent
  void Problem(std::string_view name, int line, std::string what, std::string hint = {});

 private:
  const YamlNode* Need(std::string_view name, std::string_view what);
  std::optional<YamlText> TextOf(std::string_view name, const YamlNode& node,
                                 std::size_t bytes_max);

  const YamlNode* node_;
  std::string path_;
  std::string file_;
  int line_;
  YamlProblems* problems_;
  std::vector<std::string_view> asked_;
};

// One document as JSON, by YAML 1.2's core schema, for configuration files: an empty file is null.
// A number with leading zeros is refused, as readers disagree about it.
Result<Json> YamlToJson(std::string_view text, const std::string& file);

// Block style, two spaces, a newline at the end. Text that any YAML reader (1.1 or 1.2) could take
// for something else is quoted.
std::string JsonToYaml(const Json& value);

}  // namespace ringfence::wire
