#include "assure/advisory_inventory.h"

#include <algorithm>
#include <optional>

#include "base/json.h"

namespace ringfence::assure {
namespace {

constexpr std::size_t kFieldMax = 256;
constexpr const char* kHint =
    "CSV: a first line `node,product,platform,version`; JSON: a list of objects with these names";

Error Wrong(const std::string& where, const std::string& what) {
  return {Code::kInvalidArgument, where + ": " + what, kHint};
}

// One line of CSV: fields may be in double quotes, a doubled quote is one.
std::optional<std::vector<std::string>> SplitCsv(std::string_view line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quoted) {
      if (c == '"' && i + 1 < line.size() && line[i + 1] == '"') {
        fields.back() += c;
        ++i;
      } else if (c == '"') {
        quoted = false;
      } else {
        fields.back() += c;
      }
    } else if (c == '"' && fields.back().empty()) {
      quoted = true;
    } else if (c == ',') {
      fields.emplace_back();
    } else {
      fields.back() += c;
    }
  }
  for (std::string& field : fields) {
    field.erase(0, std::min(field.find_first_not_of(" \t"), field.size()));
    field.erase(field.find_last_not_of(" \t") + 1);
  }
  return quoted ? std::nullopt : std::optional(std::move(fields));
}

struct Columns {
  std::size_t node = SIZE_MAX;
  std::size_t product = SIZE_MAX;
  std::size_t platform = SIZE_MAX;
  std::size_t version = SIZE_MAX;
};

Result<Columns> ReadHeader(const std::vector<std::string>& names, const std::string& where) {
  Columns columns;
  for (std::size_t i = 0; i < names.size(); ++i) {
    std::size_t* place = names[i] == "node"       ? &columns.node
                         : names[i] == "product"  ? &columns.product
                         : names[i] == "platform" ? &columns.platform
                         : names[i] == "version"  ? &columns.version
                                                  : nullptr;
    if (place != nullptr) {
      *place = i;
    }
  }
  if (columns.node == SIZE_MAX || columns.product == SIZE_MAX || columns.version == SIZE_MAX) {
    return Wrong(where, "the first line must name the columns node, product and version");
  }
  return columns;
}

Status Add(std::vector<InventoryItem>& items, InventoryItem item, const std::string& where) {
  for (const std::string* field : {&item.node, &item.product, &item.platform, &item.version}) {
    if (field->size() > kFieldMax) {
      return Wrong(where, "a field is longer than 256 bytes");
    }
  }
  if (item.node.empty() || item.product.empty() || item.version.empty()) {
    return Wrong(where, "node, product and version must be given");
  }
  item.platform = item.platform.empty() ? "Linux" : item.platform;
  if (items.size() >= kInventoryItemsMax) {
    return Error{Code::kExhausted, where + ": more than 200000 entries",
                 "ask in several inventories"};
  }
  items.push_back(std::move(item));
  return {};
}

Result<std::vector<InventoryItem>> ParseCsv(std::string_view text, const std::string& file) {
  std::vector<InventoryItem> items;
  std::optional<Columns> columns;
  std::size_t number = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    at = end + 1;
    ++number;
    while (line.ends_with('\r')) {
      line.remove_suffix(1);
    }
    if (line.empty() || line.front() == '#') {
      continue;
    }
    const std::string where = file + ":" + std::to_string(number);
    const auto fields = SplitCsv(line);
    if (!fields) {
      return Wrong(where, "a quoted field has no end");
    }
    if (!columns) {
      RINGFENCE_ASSIGN(columns, ReadHeader(*fields, where));
      continue;
    }
    const auto field = [&fields](std::size_t i) {
      return i < fields->size() ? (*fields)[i] : std::string();
    };
    RINGFENCE_TRY(Add(items,
                      {field(columns->node), field(columns->product), field(columns->platform),
                       field(columns->version)},
                      where));
  }
  return items;
}

std::string Text(const JsonObject& object, std::string_view name) {
  const Json* value = object.if_contains(name);
  const auto* text = value == nullptr ? nullptr : value->if_string();
  return text == nullptr ? std::string() : std::string(text->data(), text->size());
}

Result<std::vector<InventoryItem>> ReadJson(const Json& json, const std::string& file) {
  const JsonArray* entries = json.if_array();
  if (const JsonObject* top = json.if_object()) {
    const Json* nodes = top->if_contains("nodes");
    entries = nodes == nullptr ? nullptr : nodes->if_array();
  }
  if (entries == nullptr) {
    return Wrong(file, "neither a list nor an object with a list \"nodes\"");
  }
  std::vector<InventoryItem> items;
  for (std::size_t i = 0; i < entries->size(); ++i) {
    const std::string where = file + ": entry " + std::to_string(i + 1);
    const JsonObject* entry = (*entries)[i].if_object();
    if (entry == nullptr) {
      return Wrong(where, "no object");
    }
    std::string node = Text(*entry, "node");
    node = node.empty() ? Text(*entry, "name") : node;
    const Json* components = entry->if_contains("components");
    if (components == nullptr) {
      RINGFENCE_TRY(Add(
          items, {node, Text(*entry, "product"), Text(*entry, "platform"), Text(*entry, "version")},
          where));
      continue;
    }
    const JsonArray* list = components->if_array();
    if (list == nullptr) {
      return Wrong(where, "components is no list");
    }
    for (const Json& component : *list) {
      const JsonObject* one = component.if_object();
      if (one == nullptr) {
        return Wrong(where, "a component is no object");
      }
      std::string platform = Text(*one, "platform");
      platform = platform.empty() ? Text(*entry, "platform") : platform;
      RINGFENCE_TRY(
          Add(items, {node, Text(*one, "product"), platform, Text(*one, "version")}, where));
    }
  }
  return items;
}

}  // namespace

Result<std::vector<InventoryItem>> ParseInventory(std::string_view text, const std::string& file) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && (text[first] == '[' || text[first] == '{')) {
    const auto json = ParseJson(text, kInventoryBytesMax);
    if (!json.has_value()) {
      return Prefix(file, json.error());
    }
    return ReadJson(*json, file);
  }
  return ParseCsv(text, file);
}

}  // namespace ringfence::assure
