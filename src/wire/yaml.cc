#include "wire/yaml.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <exception>
#include <sstream>
#include <unordered_set>

#include "base/encoding.h"

namespace ringfence::wire {
namespace {

// Thrown from the builder through the library and caught in ParseYaml; it goes no further.
struct Refused {
  int line;
  std::string what;
  std::string hint;
};

bool IsControl(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (byte < 0x20 && c != '\n' && c != '\t') || byte == 0x7f;
}

// Builds our nodes from the library's events, so that every limit holds while the text is read and
// nothing is ever expanded.
class Builder final : public YAML::EventHandler {
 public:
  explicit Builder(std::string_view text) : text_(text) {}

  std::vector<YamlNode> Take() { return std::move(documents_); }

  void OnDocumentStart(const YAML::Mark& mark) override {
    // The library takes whatever follows a complete document for a new one, and where that is a
    // token that cannot begin a value, hands out empty documents forever. Only "---" begins one.
    if (started_ && (mark.column != 0 || !LineStartsDocument(mark.line))) {
      throw Refused{mark.line + 1, "text after the end of a document",
                    "begin each document but the first with a line of ---"};
    }
    started_ = true;
  }
  void OnDocumentEnd() override {}

  void OnAnchor(const YAML::Mark& mark, const std::string& /*name*/) override { RefuseAlias(mark); }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t /*anchor*/) override { RefuseAlias(mark); }

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (open_.empty()) {
      return;  // a document of nothing
    }
    Check(mark, "", anchor);
    YamlNode node;
    node.line = mark.line + 1;
    Put(std::move(node));
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    Check(mark, tag, anchor);
    YamlNode node;
    node.kind = YamlNode::Kind::kText;
    node.line = mark.line + 1;
    node.quoted = tag == "!";
    node.text = value;
    if (std::any_of(value.begin(), value.end(), IsControl) || !IsUtf8(value)) {
      throw Refused{node.line, "text with a control character", "write it without"};
    }
    Put(std::move(node));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value /*style*/) override {
    Open(mark, tag, anchor, YamlNode::Kind::kList);
  }
  void OnSequenceEnd() override { Close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value /*style*/) override {
    Open(mark, tag, anchor, YamlNode::Kind::kMap);
  }
  void OnMapEnd() override { Close(); }

 private:
  struct Frame {
    YamlNode node;
    bool has_key = false;  // the last member waits for its value
    std::unordered_set<std::string> keys;
  };

  [[noreturn]] static void RefuseAlias(const YAML::Mark& mark) {
    throw Refused{mark.line + 1, "anchors (&) and aliases (*) are not allowed",
                  "write the value out, or put text that begins with & or * in quotes"};
  }

  // Walks on from the last one found, so that all calls together are linear.
  bool LineStartsDocument(int line) {
    while (line_ < line) {
      const std::size_t end = text_.find('\n', line_begin_);
      if (end == std::string_view::npos) {
        return false;
      }
      line_begin_ = end + 1;
      ++line_;
    }
    const std::string_view rest = text_.substr(line_begin_);
    return line_ == line && rest.starts_with("---") && rest.size() > 3 &&
           std::string_view(" \t\r\n").find(rest[3]) != std::string_view::npos;
  }

  void Check(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    if (anchor != YAML::NullAnchor) {
      RefuseAlias(mark);
    }
    if (!tag.empty() && tag != "?" && tag != "!") {
      throw Refused{mark.line + 1, "tags (!) are not allowed",
                    "leave the tag out, or put text that begins with ! in quotes"};
    }
    if (++nodes_ > kYamlNodesMax) {
      throw Refused{mark.line + 1, "more than " + std::to_string(kYamlNodesMax) + " values",
                    "split the file"};
    }
  }

  void Open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
            YamlNode::Kind kind) {
    Check(mark, tag, anchor);
    if (open_.size() >= kYamlDepthMax) {
      throw Refused{mark.line + 1, "nested deeper than " + std::to_string(kYamlDepthMax), ""};
    }
    if (WantsKey()) {
      throw Refused{mark.line + 1, "a key must be text", "do not use a list or a map as a key"};
    }
    open_.emplace_back();
    open_.back().node.kind = kind;
    open_.back().node.line = mark.line + 1;
  }

  void Close() {
    YamlNode node = std::move(open_.back().node);
    open_.pop_back();
    Put(std::move(node));
  }

  bool WantsKey() const {
    return !open_.empty() && open_.back().node.kind == YamlNode::Kind::kMap &&
           !open_.back().has_key;
  }

  void Put(YamlNode node) {
    if (open_.empty()) {
      documents_.push_back(std::move(node));
      return;
    }
    Frame& frame = open_.back();
    if (frame.node.kind == YamlNode::Kind::kList) {
      frame.node.items.push_back(std::move(node));
    } else if (frame.has_key) {
      if (node.kind == YamlNode::Kind::kNull) {
        node.line = frame.node.members.back().line;  // the library says where it found nothing
      }
      frame.node.members.back().value = std::move(node);
      frame.has_key = false;
    } else {
      PutKey(frame, std::move(node));
    }
  }

  static void PutKey(Frame& frame, YamlNode node) {
    if (node.kind != YamlNode::Kind::kText) {
      throw Refused{node.line, "a key must be text", "write a name before the colon"};
    }
    if (!frame.keys.insert(node.text).second) {
      throw Refused{node.line, "the key \"" + node.text + "\" is there twice",
                    "keep one of the two"};
    }
    frame.node.members.push_back(YamlMember{std::move(node.text), node.line, {}});
    frame.has_key = true;
  }

  std::string_view text_;
  int line_ = 0;  // where LineStartsDocument stands
  std::size_t line_begin_ = 0;
  bool started_ = false;
  std::size_t nodes_ = 0;
  std::vector<Frame> open_;
  std::vector<YamlNode> documents_;
};

// What the library should not even see.
std::optional<Refused> CheckBytes(std::string_view text) {
  if (text.size() > kYamlBytesMax) {
    return Refused{0, "over " + std::to_string(kYamlBytesMax) + " bytes", "split the file"};
  }
  int line = 1;
  for (std::size_t i = 0; i < text.size(); ++i) {
    line += text[i] == '\n' ? 1 : 0;
    const bool line_end = text[i] == '\r' && i + 1 < text.size() && text[i + 1] == '\n';
    if (IsControl(text[i]) && !line_end) {
      return Refused{line, "a control character", "write the file as plain UTF-8 text"};
    }
  }
  if (!IsUtf8(text)) {
    return Refused{0, "not UTF-8", "write the file as plain UTF-8 text"};
  }
  return std::nullopt;
}

}  // namespace

std::vector<YamlNode> ParseYaml(std::string_view text, const std::string& file,
                                YamlProblems& problems) {
  const auto refuse = [&](int line, std::string what, std::string hint) {
    problems.Add(YamlProblem{file, line, {}, std::move(what), std::move(hint)});
    return std::vector<YamlNode>();
  };
  if (const auto refused = CheckBytes(text)) {
    return refuse(refused->line, refused->what, refused->hint);
  }
  try {
    // The library takes the end of the text for the end of a quotation that was never closed. One
    // more, empty document makes it notice.
    const std::string whole =
        std::string(text) + (text.empty() || text.ends_with('\n') ? "---\n" : "\n---\n");
    std::istringstream stream(whole);
    YAML::Parser parser(stream);
    Builder builder(whole);
    while (parser.HandleNextDocument(builder)) {
    }
    return builder.Take();
  } catch (const Refused& refused) {
    return refuse(refused.line, refused.what, refused.hint);
  } catch (const YAML::Exception& error) {
    const bool quotation = error.msg == YAML::ErrorMsg::DOC_IN_SCALAR;
    return refuse(std::max(0, error.mark.line + 1),
                  "not valid YAML: " + (quotation ? "a quotation has no end" : error.msg),
                  "check indentation, colons and quotes at and above this line");
  } catch (const std::exception& error) {
    return refuse(0, std::string("cannot be read as YAML: ") + error.what(), "");
  }
}

std::string YamlProblem::Text() const {
  std::string text = file;
  if (line > 0) {
    text += ":" + std::to_string(line);
  }
  text += ": ";
  if (!path.empty()) {
    text += path + ": ";
  }
  text += what;
  if (!hint.empty()) {
    text += " (" + hint + ")";
  }
  for (char& c : text) {
    c = c < ' ' || c > '~' ? '?' : c;
  }
  constexpr std::size_t kShownMax = 600;
  if (text.size() > kShownMax) {
    text.resize(kShownMax);
    text += "...";
  }
  return text;
}

void YamlProblems::Add(YamlProblem problem) {
  if (full()) {
    ++left_out_;
  } else {
    problems_.push_back(std::move(problem));
  }
}

void YamlProblems::AddAll(const YamlProblems& other) {
  for (const YamlProblem& problem : other.problems_) {
    Add(problem);
  }
  left_out_ += other.left_out_;
}

std::string YamlProblems::Text() const {
  std::vector<YamlProblem> sorted = problems_;
  std::sort(sorted.begin(), sorted.end());
  std::string text;
  for (const YamlProblem& problem : sorted) {
    text += (text.empty() ? "" : "\n") + problem.Text();
  }
  if (left_out_ > 0) {
    text += "\nand " + std::to_string(left_out_) + " more";
  }
  return text;
}

}  // namespace ringfence::wire
