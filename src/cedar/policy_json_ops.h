#pragma once

// The operators of the JSON form that are only a name. For policy_json*.cc.

#include <array>
#include <string_view>

#include "cedar/ast.h"

namespace ringfence::cedar {

struct NamedOp {
  std::string_view name;
  Op op;
};
inline constexpr std::array<NamedOp, 17> kBinary = {{{"==", Op::kEqual},
                                                     {"!=", Op::kNotEqual},
                                                     {"<", Op::kLess},
                                                     {"<=", Op::kLessEqual},
                                                     {">", Op::kGreater},
                                                     {">=", Op::kGreaterEqual},
                                                     {"in", Op::kIn},
                                                     {"&&", Op::kAnd},
                                                     {"||", Op::kOr},
                                                     {"+", Op::kAdd},
                                                     {"-", Op::kSubtract},
                                                     {"*", Op::kMultiply},
                                                     {"contains", Op::kContains},
                                                     {"containsAll", Op::kContainsAll},
                                                     {"containsAny", Op::kContainsAny},
                                                     {"getTag", Op::kGetTag},
                                                     {"hasTag", Op::kHasTag}}};
inline constexpr std::array<NamedOp, 3> kUnary = {
    {{"!", Op::kNot}, {"neg", Op::kNegate}, {"isEmpty", Op::kIsEmpty}}};

}  // namespace ringfence::cedar
