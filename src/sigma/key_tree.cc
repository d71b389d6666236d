#include "sigma/key_tree.h"

#include <map>

namespace ringfence::sigma {
namespace {

constexpr std::size_t kPoolBytesMax = std::size_t{8} << 20U;

std::uint32_t Hash(std::uint32_t parent, std::string_view key) {
  std::uint64_t hash = 0x9e3779b97f4a7c15ULL ^ (std::uint64_t{parent} << 32U) ^ key.size();
  std::size_t i = 0;
  for (; i + 8 <= key.size(); i += 8) {
    std::uint64_t word = 0;
    __builtin_memcpy(&word, key.data() + i, 8);
    hash = (hash ^ word) * 0xff51afd7ed558ccdULL;
    hash ^= hash >> 32U;
  }
  std::uint64_t tail = 0;
  __builtin_memcpy(&tail, key.data() + i, key.size() - i);
  hash = (hash ^ tail) * 0xff51afd7ed558ccdULL;
  return static_cast<std::uint32_t>(hash ^ (hash >> 32U));
}

}  // namespace

KeyTree::KeyTree(const Matcher::Plan& plan) {
  nodes_.emplace_back();
  table_.assign(1024, kNone);
  std::map<std::uint32_t, std::vector<std::uint32_t>> fields;  // by node
  for (const auto& [path, field] : plan.paths) {
    std::uint32_t at = kTop;
    for (const std::string& key : path) {
      if (key == kAnyKey && path.size() > 1) {
        if (nodes_[at].any == kNone) {
          const std::uint32_t any = Add(at, "", Hash(at, ""));
          nodes_[at].any = any;
        }
        at = nodes_[at].any;
        continue;
      }
      const std::uint32_t hash = Hash(at, key);
      const std::uint32_t found = Find(at, key, hash);
      at = found == kNone ? Add(at, key, hash) : found;
    }
    fields[at].push_back(field);
  }
  for (const auto& [index, list] : fields) {
    nodes_[index].fields_first = static_cast<std::uint32_t>(fields_.size());
    nodes_[index].fields_count = static_cast<std::uint32_t>(list.size());
    fields_.insert(fields_.end(), list.begin(), list.end());
  }
}

std::uint32_t KeyTree::Find(std::uint32_t parent, std::string_view key, std::uint32_t hash) const {
  std::size_t at = hash & (table_.size() - 1);
  while (table_[at] != kNone) {
    if (nodes_[table_[at]].hash == hash && Is(table_[at], parent, key)) {
      return table_[at];
    }
    at = (at + 1) & (table_.size() - 1);
  }
  return kNone;
}

void KeyTree::Grow() {
  table_.assign(table_.size() * 2, kNone);
  for (std::uint32_t i = 1; i < nodes_.size(); ++i) {
    std::size_t at = nodes_[i].hash & (table_.size() - 1);
    while (table_[at] != kNone) {
      at = (at + 1) & (table_.size() - 1);
    }
    table_[at] = i;
  }
}

std::uint32_t KeyTree::Add(std::uint32_t parent, std::string_view key, std::uint32_t hash) {
  if ((nodes_.size() + 1) * 2 > table_.size()) {
    Grow();
  }
  Node node;
  node.parent = parent;
  node.key = static_cast<std::uint32_t>(pool_.size());
  node.key_bytes = static_cast<std::uint32_t>(key.size());
  node.hash = hash;
  pool_ += key;
  const auto index = static_cast<std::uint32_t>(nodes_.size());
  nodes_.push_back(node);
  std::size_t at = hash & (table_.size() - 1);
  while (table_[at] != kNone) {
    at = (at + 1) & (table_.size() - 1);
  }
  table_[at] = index;
  return index;
}

std::uint32_t KeyTree::Child(std::uint32_t parent, std::string_view key) {
  const std::uint32_t hash = Hash(parent, key);
  const std::uint32_t found = Find(parent, key, hash);
  if (found != kNone) {
    return found;
  }
  if (nodes_[parent].any != kNone || nodes_.size() >= kNodesMax || key.size() > kKeyBytesMax ||
      pool_.size() > kPoolBytesMax) {
    return kNone;
  }
  return Add(parent, key, hash);
}

}  // namespace ringfence::sigma
