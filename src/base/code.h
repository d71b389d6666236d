#pragma once

// The one table of error codes: label on the wire, HTTP status, exit status.

#include <string_view>

#include "base/result.h"

namespace ringfence {

struct CodeFacts {
  Code code;
  std::string_view label;  // stable: programs compare it
  int http_status;
  int exit_status;
};

inline constexpr int kExitOk = 0;
inline constexpr int kExitFindings = 1;  // a check ran and found something wrong
inline constexpr int kExitUsage = 2;

inline constexpr CodeFacts kCodeTable[] = {
    {Code::kInvalidArgument, "invalid_argument", 400, kExitUsage},
    {Code::kUnauthenticated, "unauthenticated", 401, 3},
    {Code::kPermissionDenied, "permission_denied", 403, 3},
    {Code::kNotFound, "not_found", 404, 4},
    {Code::kConflict, "conflict", 409, 6},
    {Code::kFailedPrecondition, "failed_precondition", 412, 6},
    {Code::kExhausted, "exhausted", 429, 7},
    {Code::kUnavailable, "unavailable", 503, 5},
    {Code::kCorrupt, "corrupt", 500, 8},
    {Code::kInternal, "internal", 500, 8},
};

constexpr const CodeFacts& Facts(Code code) {
  for (const CodeFacts& facts : kCodeTable) {
    if (facts.code == code) {
      return facts;
    }
  }
  return kCodeTable[9];
}

// The code a label stands for; kInternal for one that is not in the table.
constexpr Code CodeFromLabel(std::string_view label) {
  for (const CodeFacts& facts : kCodeTable) {
    if (facts.label == label) {
      return facts.code;
    }
  }
  return Code::kInternal;
}

}  // namespace ringfence
