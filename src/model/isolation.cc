#include "model/isolation.h"

#include <array>
#include <string>

namespace ringfence::model {
namespace {

struct IsolationFacts {
  IsolationClass isolation;
  std::string_view name;
};
constexpr std::array kIsolationTable = {
    IsolationFacts{IsolationClass::kMps, "mps"},   IsolationFacts{IsolationClass::kTime, "time"},
    IsolationFacts{IsolationClass::kMig, "mig"},   IsolationFacts{IsolationClass::kGpu, "gpu"},
    IsolationFacts{IsolationClass::kNode, "node"},
};

}  // namespace

std::string_view Name(IsolationClass isolation) {
  for (const IsolationFacts& facts : kIsolationTable) {
    if (facts.isolation == isolation) {
      return facts.name;
    }
  }
  return "unknown";
}

Result<IsolationClass> ParseIsolationClass(std::string_view text) {
  for (const IsolationFacts& facts : kIsolationTable) {
    if (facts.name == text) {
      return facts.isolation;
    }
  }
  return Error{Code::kInvalidArgument, "unknown isolation class \"" + std::string(text) + "\"",
               "the classes are, strongest first: node, gpu, mig, time, mps", "isolation"};
}

}  // namespace ringfence::model
