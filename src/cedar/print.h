#pragma once

// Policies and expressions as Cedar text again.

#include <string>

#include "cedar/ast.h"

namespace ringfence::cedar {

// With as few parentheses as it takes to read the same tree back.
std::string ToText(const Expr& expr);
std::string ToText(const PolicyBody& body);  // one policy, on as many lines as `format` gives it

struct FormatOptions {
  std::size_t line_width = 80;
  std::size_t indent_width = 2;
};

// The same policies with the white space of one style; comments stay where they belong.
Result<std::string> Format(std::string_view text, const FormatOptions& options = {});

}  // namespace ringfence::cedar
