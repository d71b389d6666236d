#pragma once

// Expressions, by recursive descent. For the policy parser only. After a failure (null or false)
// error() says what was wrong; nothing else may then be called.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cedar/ast.h"
#include "cedar/lexer.h"

namespace ringfence::cedar {

class ExprParser {
 public:
  ExprParser(std::string_view text, const std::vector<Token>& tokens)
      : text_(text), tokens_(tokens), arena_(std::make_shared<ExprArena>()) {}

  const Expr* Expression();
  bool ParseUid(EntityUid& uid);          // Path::"id"
  bool ParseTypePath(std::string& path);  // Path
  bool AtEnd() const { return Peek().kind == Token::Kind::kEnd; }
  bool ExpectEnd();
  const Error& error() const { return error_; }
  const std::shared_ptr<ExprArena>& arena() const { return arena_; }

 protected:
  const Token& Peek(std::size_t ahead = 0) const {
    return tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
  }
  void Next() { at_ += at_ + 1 < tokens_.size() ? 1 : 0; }
  bool Accept(std::string_view punct);
  bool AcceptWord(std::string_view word);
  bool Expect(std::string_view punct);
  bool ParseString(std::string& out);
  bool Fail(std::size_t offset, std::string message);

  class Nesting {
   public:
    explicit Nesting(ExprParser& parser);
    ~Nesting() { --parser_.nesting_; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;
    bool ok() const { return ok_; }

   private:
    ExprParser& parser_;
    bool ok_;
  };

 private:
  const Expr* FailExpr(std::size_t offset, std::string message);
  const Expr* Make(Op op, std::vector<const Expr*> args, std::size_t offset, std::string text = {});
  const Expr* Or();
  const Expr* And();
  const Expr* Relation();
  const Expr* Has(const Expr* left, std::size_t offset);
  const Expr* Like(const Expr* left, std::size_t offset);
  const Expr* Is(const Expr* left, std::size_t offset);
  const Expr* Sum();
  const Expr* Product();
  const Expr* Unary();
  const Expr* Negated(std::size_t dashes, std::size_t offset);
  const Expr* Member();
  const Expr* Method(const Expr* left, const Token& name);
  const Expr* Primary();
  const Expr* NameOrCall();
  const Expr* Record();
  const Expr* Number(bool negative);
  bool Arguments(std::string_view close, std::vector<const Expr*>& out);
  bool ParsePath(std::string& path, bool& ends_in_string);

  std::string_view text_;
  const std::vector<Token>& tokens_;
  std::size_t at_ = 0;
  int nesting_ = 0;
  Error error_;
  std::shared_ptr<ExprArena> arena_;
};

}  // namespace ringfence::cedar
