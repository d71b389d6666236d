// The formatter works on tokens, so that it cannot change what a policy says: it only chooses the
// white space between them, and puts comments back before the token that followed them.

#include <algorithm>

#include "cedar/parser.h"
#include "cedar/print.h"

namespace ringfence::cedar {
namespace {

class Formatter {
 public:
  Formatter(std::string_view text, const Tokens& tokens, const FormatOptions& options)
      : text_(text), tokens_(tokens.tokens), comments_(tokens.comments), options_(options) {}

  std::string Run() {
    while (tokens_[at_].kind != Token::Kind::kEnd) {
      if (!out_.empty()) {
        out_ += "\n";  // a blank line between policies
      }
      Policy();
    }
    LeadingComments(0);
    return std::move(out_);
  }

 private:
  std::string Indent(std::size_t depth) const {
    return std::string(depth * options_.indent_width, ' ');
  }

  std::string Spelled(const Token& token) const {
    return token.kind == Token::Kind::kString ? "\"" + std::string(token.text) + "\""
                                              : std::string(token.text);
  }

  std::size_t End(std::size_t index) const {
    const Token& token = tokens_[index];
    return token.offset + token.text.size() + (token.kind == Token::Kind::kString ? 2 : 0);
  }

  // Comments that stand before the current token, each on its own line.
  void LeadingComments(std::size_t depth) {
    while (next_comment_ < comments_.size() &&
           comments_[next_comment_].offset < tokens_[at_].offset) {
      std::string_view comment = comments_[next_comment_].text;
      while (!comment.empty() && (comment.back() == ' ' || comment.back() == '\t')) {
        comment.remove_suffix(1);
      }
      if (!out_.empty() && out_.back() != '\n') {
        const bool same_line = SameLine(next_comment_);
        out_ += same_line ? " " : "\n" + Indent(depth);
      } else {
        out_ += Indent(depth);
      }
      out_ += std::string(comment) + "\n";
      ++next_comment_;
    }
  }

  // The comment stands on the line of the token before it.
  bool SameLine(std::size_t comment) const {
    if (at_ == 0) {
      return false;
    }
    const std::size_t from = End(at_ - 1);
    return text_.substr(from, comments_[comment].offset - from).find('\n') ==
           std::string_view::npos;
  }

  bool CommentsWithin(std::size_t from, std::size_t to) const {
    return std::any_of(comments_.begin(), comments_.end(), [&](const Comment& comment) {
      return comment.offset > tokens_[from].offset && comment.offset < tokens_[to].offset;
    });
  }

  // The index of the bracket that closes the one at `open`.
  std::size_t Closing(std::size_t open) const {
    int depth = 0;
    for (std::size_t i = open; i < tokens_.size(); ++i) {
      if (tokens_[i].kind == Token::Kind::kPunct) {
        const char c = tokens_[i].text[0];
        depth += tokens_[i].text.size() == 1 && (c == '(' || c == '[' || c == '{') ? 1 : 0;
        depth -= tokens_[i].text.size() == 1 && (c == ')' || c == ']' || c == '}') ? 1 : 0;
        if (depth == 0) {
          return i;
        }
      }
    }
    return tokens_.size() - 1;
  }

  bool Operand(std::size_t index) const {
    const Token& token = tokens_[index];
    if (token.kind == Token::Kind::kPunct) {
      return token.Is(")") || token.Is("]") || token.Is("}");
    }
    return token.kind != Token::Kind::kIdent || !IsReservedWord(token.text) ||
           token.text == "true" || token.text == "false";
  }

  // Whether a blank stands between the token at `index` and the one before it.
  bool Blank(std::size_t index) const {
    const Token& now = tokens_[index];
    const Token& before = tokens_[index - 1];
    if (now.Is(",") || now.Is(";") || now.Is(")") || now.Is("]") || now.Is("::") || now.Is(".") ||
        before.Is("(") || before.Is("[") || before.Is("::") || before.Is(".") || before.Is("@") ||
        (now.Is("?"))) {
      return false;
    }
    if (now.Is(":")) {
      return false;
    }
    if (before.Is("!") || (before.Is("-") && (index < 2 || !Operand(index - 2)))) {
      return false;
    }
    if (now.Is("}") || before.Is("{")) {
      return !(now.Is("}") && before.Is("{"));
    }
    if (now.Is("(") || now.Is("[")) {
      return !Operand(index - 1) || before.Is("}");
    }
    return true;
  }

  std::string Flat(std::size_t from, std::size_t to) const {
    std::string out;
    for (std::size_t i = from; i < to; ++i) {
      out += (i > from && Blank(i) ? " " : "") + Spelled(tokens_[i]);
    }
    return out;
  }

  std::size_t Column() const {
    const std::size_t newline = out_.rfind('\n');
    return newline == std::string::npos ? out_.size() : out_.size() - newline - 1;
  }

  // Where an expression that is too long is broken: before its loosest operators, else inside its
  // last brackets.
  std::vector<std::size_t> Breaks(std::size_t from, std::size_t to, std::string_view op) const {
    std::vector<std::size_t> out;
    for (std::size_t i = from; i < to; ++i) {
      if (tokens_[i].Is("(") || tokens_[i].Is("[") || tokens_[i].Is("{")) {
        i = Closing(i);
      } else if (tokens_[i].Is(op)) {
        out.push_back(i);
      }
    }
    return out;
  }

  // Writes the tokens [from, to), breaking where they do not fit.
  void Block(std::size_t from, std::size_t to, std::size_t depth) {
    if (from >= to) {
      return;
    }
    const std::string flat = Flat(from, to);
    if (!CommentsWithin(from, to) &&
        (Column() + flat.size() <= options_.line_width || to - from == 1)) {
      at_ = from;
      LeadingComments(depth);
      Resume(depth);
      out_ += flat;
      at_ = to;
      return;
    }
    for (const std::string_view op : {"||", "&&", ","}) {
      const std::vector<std::size_t> breaks = Breaks(from, to, op);
      if (breaks.empty()) {
        continue;
      }
      std::size_t begin = from;
      for (const std::size_t at : breaks) {
        Block(begin, at, depth);
        out_ += (op == "," ? "" : " ") + std::string(op);
        at_ = at + 1;
        Comments(depth);
        NewLine(depth);
        begin = at + 1;
      }
      Block(begin, to, depth);
      return;
    }
    Brackets(from, to, depth);
  }

  // Opens the brackets of [from, to) onto lines of their own.
  void Brackets(std::size_t from, std::size_t to, std::size_t depth) {
    for (std::size_t i = from; i < to; ++i) {
      at_ = i;
      LeadingComments(depth);
      Resume(depth);
      if (i > from && Blank(i) && Column() > 0 && out_.back() != ' ') {
        out_ += ' ';
      }
      out_ += Spelled(tokens_[i]);
      const bool opens = tokens_[i].Is("(") || tokens_[i].Is("[") || tokens_[i].Is("{");
      const std::size_t close = opens ? Closing(i) : i;
      if (!opens || close == i + 1) {
        continue;
      }
      if (!CommentsWithin(i, close) &&
          Column() + Flat(i + 1, close + 1).size() <= options_.line_width) {
        const std::string inner = Flat(i, close + 1);
        out_ += inner.substr(1);
      } else {
        at_ = i + 1;
        Comments(depth + 1);
        NewLine(depth + 1);
        Block(i + 1, close, depth + 1);
        at_ = close;
        Comments(depth + 1);
        NewLine(depth);
        out_ += Spelled(tokens_[close]);
      }
      i = close;
    }
    at_ = to;
  }

  void Comments(std::size_t depth) { LeadingComments(depth); }

  void NewLine(std::size_t depth) {
    while (!out_.empty() && out_.back() == ' ') {
      out_.pop_back();
    }
    if (!out_.empty() && out_.back() != '\n') {
      out_ += '\n';
    }
    out_ += Indent(depth);
  }

  // After a comment's line end the indentation is missing.
  void Resume(std::size_t depth) {
    if (!out_.empty() && out_.back() == '\n') {
      out_ += Indent(depth);
    }
  }

  void Policy() {
    LeadingComments(0);
    while (tokens_[at_].Is("@")) {
      const std::size_t from = at_;
      at_ += 2;
      if (tokens_[at_].Is("(")) {
        at_ = Closing(at_) + 1;
      }
      out_ += Flat(from, at_) + "\n";
      LeadingComments(0);
    }
    out_ += Spelled(tokens_[at_]) + " ";
    const std::size_t open = at_ + 1;
    Scope(open, Closing(open));
    while (tokens_[at_].IsWord("when") || tokens_[at_].IsWord("unless")) {
      Condition();
    }
    LeadingComments(0);
    out_ += ";";
    ++at_;
    if (next_comment_ < comments_.size() && comments_[next_comment_].offset < tokens_[at_].offset &&
        SameLine(next_comment_)) {
      out_ += " " + std::string(comments_[next_comment_].text);
      ++next_comment_;
    }
    out_ += "\n";
  }

  void Scope(std::size_t open, std::size_t close) {
    const std::string flat = Flat(open, close + 1);
    if (!CommentsWithin(open, close) && Column() + flat.size() <= options_.line_width) {
      out_ += flat;
    } else {
      out_ += "(";
      std::size_t begin = open + 1;
      std::vector<std::size_t> commas = Breaks(open + 1, close, ",");
      commas.push_back(close);
      for (const std::size_t comma : commas) {
        if (begin == comma) {
          continue;
        }
        at_ = begin;
        LeadingComments(1);
        NewLine(1);
        Block(begin, comma, 1);
        if (comma != close) {
          out_ += ",";
        }
        begin = comma + 1;
      }
      at_ = close;
      LeadingComments(1);
      NewLine(0);
      out_ += ")";
    }
    at_ = close + 1;
  }

  void Condition() {
    LeadingComments(0);
    NewLine(0);
    const std::size_t open = at_ + 1;
    const std::size_t close = Closing(open);
    const std::string flat = Flat(at_, close + 1);
    if (!CommentsWithin(at_, close) && flat.size() + 1 <= options_.line_width) {
      out_ += flat;
    } else {
      out_ += Spelled(tokens_[at_]);
      at_ = open;
      LeadingComments(0);
      NewLine(0);
      out_ += "{";
      at_ = open + 1;
      LeadingComments(1);
      NewLine(1);
      Block(open + 1, close, 1);
      at_ = close;
      LeadingComments(1);
      NewLine(0);
      out_ += "}";
    }
    at_ = close + 1;
  }

  std::string_view text_;
  const std::vector<Token>& tokens_;
  const std::vector<Comment>& comments_;
  const FormatOptions& options_;
  std::string out_;
  std::size_t at_ = 0;
  std::size_t next_comment_ = 0;
};

bool SameTokens(const Tokens& a, const Tokens& b) {
  const auto same = [](const auto& x, const auto& y) { return x.text == y.text; };
  const auto trimmed = [](std::string_view text) {
    return text.substr(0, text.find_last_not_of(" \t") + 1);
  };
  return std::equal(a.tokens.begin(), a.tokens.end(), b.tokens.begin(), b.tokens.end(), same) &&
         std::equal(a.comments.begin(), a.comments.end(), b.comments.begin(), b.comments.end(),
                    [&](const Comment& x, const Comment& y) {
                      return trimmed(x.text) == trimmed(y.text);
                    });
}

}  // namespace

Result<std::string> Format(std::string_view text, const FormatOptions& options) {
  RINGFENCE_ASSIGN(const PolicySet parsed, ParsePolicies(text));
  (void)parsed;
  RINGFENCE_ASSIGN(const Tokens tokens, Tokenize(text));
  std::string out = Formatter(text, tokens, options).Run();
  const auto again = Tokenize(out);
  if (!again.has_value() || !SameTokens(tokens, *again)) {
    return Error{Code::kInternal, "formatting would have changed the policies",
                 "please report the text that it happened with"};
  }
  return out;
}

}  // namespace ringfence::cedar
