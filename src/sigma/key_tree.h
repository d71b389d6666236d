#pragma once

// The keys of events as a tree that learns: paths that lead to fields are there from the start,
// others are added as they are seen (up to a limit), so that the same shape of event is walked
// without hashing a key, and a member that comes twice is noticed without a set. One thread's.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sigma/matcher_plan.h"

namespace ringfence::sigma {

class KeyTree {
 public:
  static constexpr std::uint32_t kTop = 0;
  static constexpr std::size_t kNodesMax = std::size_t{1} << 16U;
  static constexpr std::size_t kKeyBytesMax = 256;  // of keys that are learnt

  struct Node {
    std::uint32_t parent = 0;
    std::uint32_t key = 0;  // offset
    std::uint32_t key_bytes = 0;
    std::uint32_t hash = 0;
    std::uint32_t next = kNone;   // the sibling that followed last time
    std::uint32_t first = kNone;  // the child that came first last time
    std::uint32_t any = kNone;    // the child for keys of any name
    std::uint32_t fields_first = 0;
    std::uint32_t fields_count = 0;
    std::uint64_t seen_in = 0;  // the object it was last seen in
  };

  explicit KeyTree(const Matcher::Plan& plan);

  Node& node(std::uint32_t index) { return nodes_[index]; }
  const std::uint32_t* fields(const Node& node) const { return fields_.data() + node.fields_first; }

  bool Is(std::uint32_t index, std::uint32_t parent, std::string_view key) const {
    const Node& node = nodes_[index];
    return node.parent == parent && node.key_bytes == key.size() &&
           __builtin_memcmp(pool_.data() + node.key, key.data(), key.size()) == 0;
  }
  // The child of `parent` for `key`; learnt when it is new and there is room. kNone: neither.
  std::uint32_t Child(std::uint32_t parent, std::string_view key);

 private:
  std::uint32_t Find(std::uint32_t parent, std::string_view key, std::uint32_t hash) const;
  std::uint32_t Add(std::uint32_t parent, std::string_view key, std::uint32_t hash);
  void Grow();

  std::vector<Node> nodes_;
  std::vector<std::uint32_t> table_;
  std::vector<std::uint32_t> fields_;
  std::string pool_;
};

}  // namespace ringfence::sigma
