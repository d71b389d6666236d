#pragma once

// Result<T> is either a value or an Error; Status is Result<void>. Both are [[nodiscard]], so an
// error can be handled, returned or (with a written reason) ignored, but not forgotten.
// The names are std::expected's, so that a later compiler lets this become an alias.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace ringfence {

// What a caller can do about an error. Closed on purpose: base/code.h maps each code once to an
// HTTP status, an exit status and a stable label.
enum class Code : std::uint8_t {
  kInvalidArgument,     // the input is wrong: change it
  kUnauthenticated,     // who are you? sign in
  kPermissionDenied,    // known, and not allowed
  kNotFound,            // no such thing
  kConflict,            // it exists already, or something else changed it first
  kFailedPrecondition,  // right request, wrong moment: the state must change first
  kExhausted,           // a stated limit was reached: slow down or ask for less
  kUnavailable,         // may work if tried again
  kCorrupt,             // stored or received bytes are not what was written
  kInternal,            // a defect of ours
};

struct Error {
  Code code = Code::kInternal;
  std::string message;     // what happened and why, for people: never parsed, never holds a secret
  std::string hint = {};   // what to do next; may be empty
  std::string field = {};  // the input field that is wrong, where one is
};

template <typename T>
class [[nodiscard]] Result {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor): `return value;` is the point.
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  // NOLINTNEXTLINE(google-explicit-constructor)
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool has_value() const { return state_.index() == 0; }
  explicit operator bool() const { return has_value(); }
  T& value() & { return std::get<0>(state_); }
  const T& value() const& { return std::get<0>(state_); }
  T&& value() && { return std::get<0>(std::move(state_)); }
  T& operator*() & { return std::get<0>(state_); }
  const T& operator*() const& { return std::get<0>(state_); }
  T* operator->() { return &std::get<0>(state_); }
  const T* operator->() const { return &std::get<0>(state_); }
  const Error& error() const { return std::get<1>(state_); }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  // NOLINTNEXTLINE(google-explicit-constructor)
  Result(Error error) : state_(std::move(error)) {}

  bool has_value() const { return state_.index() == 0; }
  explicit operator bool() const { return has_value(); }
  const Error& error() const { return std::get<1>(state_); }

 private:
  std::variant<std::monostate, Error> state_;
};

using Status = Result<void>;

// The same error, said of a larger thing: "policy folder: tenants.yaml:3: ...".
inline Error Prefix(std::string_view what, Error error) {
  error.message = std::string(what) + ": " + error.message;
  return error;
}

}  // namespace ringfence

#define RINGFENCE_CONCAT_INNER(a, b) a##b
#define RINGFENCE_CONCAT(a, b) RINGFENCE_CONCAT_INNER(a, b)

// Returns from the enclosing function if `expr` holds an error. (Names are numbered with
// __COUNTER__, as a lambda inside `expr` may use these macros again on what counts as one line.)
#define RINGFENCE_TRY(expr) RINGFENCE_TRY_AS(RINGFENCE_CONCAT(try_status_, __COUNTER__), expr)
#define RINGFENCE_TRY_AS(name, expr)               \
  do {                                             \
    if (auto name = (expr); !(name).has_value()) { \
      return (name).error();                       \
    }                                              \
  } while (false)

// RINGFENCE_ASSIGN(const auto file, ReadFile(path)): declares `file`, or returns the error.
#define RINGFENCE_ASSIGN(declaration, expr) \
  RINGFENCE_ASSIGN_AS(RINGFENCE_CONCAT(try_result_, __COUNTER__), declaration, expr)
#define RINGFENCE_ASSIGN_AS(name, declaration, expr) \
  auto name = (expr);                                \
  if (!(name).has_value()) {                         \
    return (name).error();                           \
  }                                                  \
  declaration = std::move(name).value()
