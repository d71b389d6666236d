#pragma once

// The table that `make gpu-test` fills: what was asked, what is expected, what came.

#include <cstdio>
#include <string>
#include <type_traits>
#include <vector>

namespace ringfence::gpu {

class Table {
 public:
  template <typename Got, typename Expected>
  void Want(const std::string& what, const Got& got, const Expected& expected) {
    Add(what, Text(got), Text(expected), true);
  }
  // No expectation: the answer is worth knowing, and differs from driver to driver.
  template <typename Got>
  void Note(const std::string& what, const Got& got) {
    Add(what, Text(got), "", false);
  }

  void Print() const {
    std::printf("| result | question | answer | expected |\n|---|---|---|---|\n");
    for (const Row& row : rows_) {
      std::printf("| %s | %s | %s | %s |\n",
                  !row.expected         ? "noted"
                  : row.got == row.want ? "ok"
                                        : "**WRONG**",
                  row.what.c_str(), row.got.c_str(), row.want.c_str());
    }
  }
  int wrong() const {
    int count = 0;
    for (const Row& row : rows_) {
      count += row.expected && row.got != row.want ? 1 : 0;
    }
    return count;
  }
  std::size_t size() const { return rows_.size(); }

 private:
  struct Row {
    std::string what;
    std::string got;
    std::string want;
    bool expected;
  };
  template <typename Value>
  static std::string Text(const Value& value) {
    if constexpr (std::is_same_v<Value, bool>) {
      return value ? "yes" : "no";
    } else if constexpr (std::is_convertible_v<Value, const char*>) {
      const char* text = value;
      return text == nullptr ? "(null)" : text;
    } else if constexpr (std::is_same_v<Value, std::string>) {
      return value;
    } else {
      return std::to_string(static_cast<long long>(value));
    }
  }
  void Add(const std::string& what, std::string got, std::string want, bool expected) {
    rows_.push_back({what, std::move(got), std::move(want), expected});
  }
  std::vector<Row> rows_;
};

}  // namespace ringfence::gpu
