#pragma once

// What the readers of rules, pipelines and tests share: YAML nodes as values, problems with their
// place. Internal to sigma/.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sigma/rule.h"
#include "wire/yaml.h"

namespace ringfence::sigma {

// Text as YAML 1.2's core schema reads it without quotes.
Scalar ScalarOf(const wire::YamlNode& node);
// A number, shortest form: 1, 1.5, 1e+30.
std::string NumberText(double number);

// Documents of a file; the library's problems become ours.
std::vector<wire::YamlNode> ReadYaml(std::string_view text, const std::string& file,
                                     std::vector<Problem>& problems);

// Collects problems of one document.
class Reader {
 public:
  Reader(std::string file, std::vector<Problem>& problems)
      : file_(std::move(file)), problems_(problems) {}

  void Bad(int line, std::string field, std::string what, std::string hint = {});
  bool ok() const { return ok_; }
  const std::string& file() const { return file_; }

  // A member that must be text (numbers count as text); empty when absent.
  std::string Text(const wire::YamlNode& map, std::string_view key, const std::string& path,
                   bool required = false, std::size_t bytes_max = 65536);
  // A list of texts, or one text; empty when absent.
  std::vector<std::string> Texts(const wire::YamlNode& map, std::string_view key,
                                 const std::string& path);
  // One of a closed set of words; empty when absent.
  std::string Word(const wire::YamlNode& map, std::string_view key, const std::string& path,
                   const std::vector<std::string_view>& words, bool required = false);
  bool Truth(const wire::YamlNode& map, std::string_view key, const std::string& path,
             bool fallback);

 private:
  std::string file_;
  std::vector<Problem>& problems_;
  bool ok_ = true;
};

std::string PathOf(const std::string& path, std::string_view key);
bool IsScalar(const wire::YamlNode& node);
int LineOf(const wire::YamlNode& map, std::string_view key);

// `detection:` of a rule, or a filter's: selections and condition.
Detection ReadDetection(const wire::YamlNode& node, const std::string& path, Reader& reader,
                        const std::vector<std::string_view>& other_keys = {});
LogSource ReadLogSource(const wire::YamlNode& node, const std::string& path, Reader& reader);
Correlation ReadCorrelation(const wire::YamlNode& node, Reader& reader);

}  // namespace ringfence::sigma
