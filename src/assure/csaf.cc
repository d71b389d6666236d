#include "assure/csaf.h"

#include <algorithm>
#include <map>

#include "base/json.h"

namespace ringfence::assure {
namespace {

constexpr std::size_t kProductsMax = 20'000;
constexpr std::size_t kFlawsMax = 5'000;
constexpr std::size_t kTextMax = 2'000;
constexpr int kTreeDepthMax = 24;

const JsonObject* ObjectAt(const Json& value) { return value.if_object(); }

const Json* Find(const JsonObject* object, std::string_view name) {
  return object == nullptr ? nullptr : object->if_contains(name);
}

const JsonObject* FindObject(const JsonObject* object, std::string_view name) {
  const Json* found = Find(object, name);
  return found == nullptr ? nullptr : found->if_object();
}

const JsonArray* FindArray(const JsonObject* object, std::string_view name) {
  const Json* found = Find(object, name);
  return found == nullptr ? nullptr : found->if_array();
}

// Empty when it is not there or no text; cut when it is too long.
std::string FindText(const JsonObject* object, std::string_view name) {
  const Json* found = Find(object, name);
  const auto* text = found == nullptr ? nullptr : found->if_string();
  return text == nullptr ? std::string()
                         : std::string(text->data(), std::min(text->size(), kTextMax));
}

Error Wrong(const std::string& file, std::string_view what) {
  return {Code::kInvalidArgument, file + ": " + std::string(what),
          "a bulletin is a CSAF 2.0 document; fetch the file again from its publisher"};
}

// A product of the tree, by its identifier.
struct Product {
  std::string name;
  std::string platform;
  std::string versions;
};
using Products = std::map<std::string, std::vector<Product>, std::less<>>;

struct Ancestors {
  std::string product;   // of the nearest "product_name"
  std::string platform;  // of the nearest "architecture"
};

bool IsVersionBranch(std::string_view category) {
  return category == "product_version" || category == "product_version_range" ||
         category == "patch_level" || category == "service_pack";
}

class TreeReader {
 public:
  explicit TreeReader(std::string file) : file_(std::move(file)) {}

  Status Walk(const JsonArray& branches, const Ancestors& above, int depth) {
    if (depth > kTreeDepthMax) {
      return Wrong(file_, "product_tree: more than 24 branches deep");
    }
    for (const Json& item : branches) {
      const JsonObject* branch = ObjectAt(item);
      if (branch == nullptr) {
        return Wrong(file_, "product_tree.branches: an entry is no object");
      }
      const std::string category = FindText(branch, "category");
      const std::string name = FindText(branch, "name");
      Ancestors here = above;
      if (category == "architecture" || category == "host_name" || category == "specification") {
        here.platform = name;
      } else if (category == "product_name") {
        here.product = name;
      }
      if (const JsonObject* product = FindObject(branch, "product")) {
        RINGFENCE_TRY(Add(*product, category, name, here));
      }
      if (const JsonArray* below = FindArray(branch, "branches")) {
        RINGFENCE_TRY(Walk(*below, here, depth + 1));
      }
    }
    return {};
  }

  Status Flat(const JsonArray& names) {
    for (const Json& item : names) {
      if (const JsonObject* product = ObjectAt(item)) {
        RINGFENCE_TRY(Put(FindText(product, "product_id"), {FindText(product, "name"), "", ""}));
      }
    }
    return {};
  }

  // A component on a platform, each of them a product of its own.
  Status Relationships(const JsonArray& relationships) {
    for (const Json& item : relationships) {
      const JsonObject* relation = ObjectAt(item);
      const JsonObject* whole = FindObject(relation, "full_product_name");
      const auto part = products_.find(FindText(relation, "product_reference"));
      const auto host = products_.find(FindText(relation, "relates_to_product_reference"));
      if (whole == nullptr || part == products_.end()) {
        continue;
      }
      Product product = part->second.front();
      if (host != products_.end()) {
        product.platform = host->second.front().name;
      }
      RINGFENCE_TRY(Put(FindText(whole, "product_id"), std::move(product)));
    }
    return {};
  }

  const Products& products() const { return products_; }

 private:
  Status Add(const JsonObject& product, const std::string& category, const std::string& name,
             const Ancestors& above) {
    const std::string full = FindText(&product, "name");
    Product entry;
    entry.platform = above.platform;
    if (!IsVersionBranch(category)) {
      entry.name = above.product.empty() ? full : above.product;
    } else if (above.product.empty()) {  // NVIDIA's way: the branch is the product, its text the
      entry.name = name;                 // versions
      entry.versions = full;
    } else {
      entry.name = above.product;
      entry.versions = name;
    }
    return Put(FindText(&product, "product_id"), std::move(entry));
  }

  Status Put(const std::string& id, Product product) {
    if (id.empty()) {
      return Wrong(file_, "product_tree: a product has no product_id");
    }
    if (++count_ > kProductsMax) {
      return Wrong(file_, "product_tree: more than 20000 products");
    }
    products_[id].push_back(std::move(product));
    return {};
  }

  std::string file_;
  Products products_;
  std::size_t count_ = 0;
};

enum class Said { kAffected, kUpTo, kFixed, kUnaffected, kInvestigated };

void AddToRow(BulletinRow& row, Said said, const Product& product) {
  VersionText text = ReadVersionText(product.versions);
  if (!text.component.empty()) {
    row.component = text.component;
  }
  switch (said) {
    case Said::kUpTo:  // CSAF's "last_affected": it, and all before
      for (VersionSpan& span : text.spans) {
        span.low.reset();
      }
      [[fallthrough]];
    case Said::kAffected:
      row.affected.push_back(std::move(text));
      row.affected_texts.push_back(product.versions);
      break;
    case Said::kFixed: {
      const auto fixes = FixesOf(text.spans);
      const auto vgpu = FixesOf(text.vgpu_spans);
      if (text.understood) {
        row.fixes.insert(row.fixes.end(), fixes.begin(), fixes.end());
        row.vgpu_fixes.insert(row.vgpu_fixes.end(), vgpu.begin(), vgpu.end());
      }
      row.fixed.push_back(std::move(text));
      row.fixed_texts.push_back(product.versions);
      break;
    }
    case Said::kUnaffected:
      row.unaffected.push_back(std::move(text));
      break;
    case Said::kInvestigated:
      row.investigated = true;
      break;
  }
}

struct StatusName {
  std::string_view name;
  Said said;
};
constexpr StatusName kStatusNames[] = {
    {"known_affected", Said::kAffected},
    {"first_affected", Said::kAffected},
    {"last_affected", Said::kUpTo},
    {"fixed", Said::kFixed},
    {"first_fixed", Said::kFixed},
    {"known_not_affected", Said::kUnaffected},
    {"under_investigation", Said::kInvestigated},
};

Status ReadStatus(const JsonObject* status, const Products& products, const std::string& file,
                  Flaw& flaw) {
  std::map<std::pair<std::string, std::string>, std::size_t> rows;  // platform, product -> row
  for (const StatusName& kind : kStatusNames) {
    const JsonArray* ids = FindArray(status, kind.name);
    if (ids == nullptr) {
      continue;
    }
    for (const Json& id : *ids) {
      const auto* text = id.if_string();
      const auto found = text == nullptr
                             ? products.end()
                             : products.find(std::string_view(text->data(), text->size()));
      if (found == products.end()) {
        return Wrong(file, flaw.cve + ": product_status." + std::string(kind.name) +
                               " names a product that is not in the product tree");
      }
      for (const Product& product : found->second) {
        const auto [row, fresh] =
            rows.try_emplace({product.platform, product.name}, flaw.rows.size());
        if (fresh) {
          BulletinRow made;
          made.product = product.name;
          made.platform = ReadPlatform(product.platform);
          flaw.rows.push_back(std::move(made));
        }
        AddToRow(flaw.rows[row->second], kind.said, product);
      }
    }
  }
  return {};
}

std::string LowerCase(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) {
    return static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  });
  return text;
}

std::string SeverityOf(int tenths) {
  return tenths >= 90   ? "critical"
         : tenths >= 70 ? "high"
         : tenths >= 40 ? "medium"
         : tenths > 0   ? "low"
                        : "none";
}

// The highest of them: a score may be given per product.
void ReadScores(const JsonObject* vulnerability, Flaw& flaw) {
  const JsonArray* scores = FindArray(vulnerability, "scores");
  for (std::size_t i = 0; scores != nullptr && i < scores->size(); ++i) {
    for (const std::string_view kind : {"cvss_v4", "cvss_v3", "cvss_v2"}) {
      const JsonObject* cvss = FindObject(ObjectAt((*scores)[i]), kind);
      const Json* base = Find(cvss, "baseScore");
      if (base == nullptr || !base->is_number()) {
        continue;
      }
      const double value = base->is_double() ? base->get_double() : base->to_number<double>();
      if (!(value >= 0.0 && value <= 10.0)) {
        continue;
      }
      const int tenths = static_cast<int>(value * 10.0 + 0.5);
      if (tenths > flaw.score_tenths) {
        flaw.score_tenths = tenths;
        flaw.severity = LowerCase(FindText(cvss, "baseSeverity"));
        flaw.severity = flaw.severity.empty() ? SeverityOf(tenths) : flaw.severity;
        flaw.vector = FindText(cvss, "vectorString");
      }
    }
  }
}

Result<Flaw> ReadFlaw(const Json& value, const Products& products, const std::string& file,
                      std::size_t number) {
  const JsonObject* vulnerability = ObjectAt(value);
  const std::string where = "vulnerabilities[" + std::to_string(number) + "]";
  if (vulnerability == nullptr) {
    return Wrong(file, where + " is no object");
  }
  Flaw flaw;
  flaw.cve = FindText(vulnerability, "cve");
  if (flaw.cve.empty()) {
    const JsonArray* ids = FindArray(vulnerability, "ids");
    flaw.cve = ids != nullptr && !ids->empty() ? FindText(ObjectAt(ids->front()), "text") : "";
    flaw.cve = flaw.cve.empty() ? where : flaw.cve;
  }
  const JsonArray* notes = FindArray(vulnerability, "notes");
  for (std::size_t i = 0; notes != nullptr && i < notes->size() && flaw.summary.empty(); ++i) {
    const std::string category = FindText(ObjectAt((*notes)[i]), "category");
    if (category == "summary" || category == "description") {
      flaw.summary = FindText(ObjectAt((*notes)[i]), "text");
    }
  }
  ReadScores(vulnerability, flaw);
  const JsonObject* status = FindObject(vulnerability, "product_status");
  if (status == nullptr) {
    return Wrong(file, flaw.cve + ": no product_status");
  }
  RINGFENCE_TRY(ReadStatus(status, products, file, flaw));
  return flaw;
}

// "2024-09-25T00:00:00Z", with or without a fraction; other zones are near enough for an age.
Result<Timestamp> ReadDate(const JsonObject* tracking, std::string_view name,
                           const std::string& file) {
  const std::string text = FindText(tracking, name);
  if (text.size() >= 10) {
    const auto time = ParseTime(text.substr(0, 10) + "T00:00:00Z");
    if (time.has_value()) {
      return time;
    }
  }
  return Wrong(file, "document.tracking." + std::string(name) + " is no date");
}

Result<Bulletin> ReadHead(const JsonObject* document, const std::string& file) {
  Bulletin bulletin;
  bulletin.file = file;
  const std::string version = FindText(document, "csaf_version");
  if (!version.starts_with("2.")) {
    return Wrong(file, "csaf_version is \"" + version.substr(0, 16) + "\", not 2.0");
  }
  const JsonObject* tracking = FindObject(document, "tracking");
  bulletin.id = FindText(tracking, "id");
  if (bulletin.id.empty()) {
    return Wrong(file, "document.tracking.id is missing");
  }
  bulletin.title = FindText(document, "title");
  RINGFENCE_ASSIGN(bulletin.first, ReadDate(tracking, "initial_release_date", file));
  RINGFENCE_ASSIGN(bulletin.current, ReadDate(tracking, "current_release_date", file));
  return bulletin;
}

}  // namespace

Result<Bulletin> ParseCsaf(std::string_view json, const std::string& file) {
  const auto parsed = ParseJson(json, kCsafBytesMax);
  if (!parsed.has_value()) {
    return Prefix(file, parsed.error());
  }
  const JsonObject* top = ObjectAt(*parsed);
  const JsonObject* document = FindObject(top, "document");
  if (document == nullptr || Find(document, "csaf_version") == nullptr) {
    if (Find(top, "product_tree") != nullptr || Find(top, "vulnerabilities") != nullptr) {
      return Wrong(file, "document.csaf_version is missing");
    }
    return Error{Code::kNotFound, file + ": no CSAF document"};
  }
  RINGFENCE_ASSIGN(Bulletin bulletin, ReadHead(document, file));
  const JsonObject* tree = FindObject(top, "product_tree");
  TreeReader reader(file);
  if (const JsonArray* branches = FindArray(tree, "branches")) {
    RINGFENCE_TRY(reader.Walk(*branches, {}, 0));
  }
  if (const JsonArray* names = FindArray(tree, "full_product_names")) {
    RINGFENCE_TRY(reader.Flat(*names));
  }
  if (const JsonArray* relationships = FindArray(tree, "relationships")) {
    RINGFENCE_TRY(reader.Relationships(*relationships));
  }
  const JsonArray* vulnerabilities = FindArray(top, "vulnerabilities");
  if (vulnerabilities != nullptr && vulnerabilities->size() > kFlawsMax) {
    return Wrong(file, "more than 5000 vulnerabilities");
  }
  for (std::size_t i = 0; vulnerabilities != nullptr && i < vulnerabilities->size(); ++i) {
    RINGFENCE_ASSIGN(Flaw flaw, ReadFlaw((*vulnerabilities)[i], reader.products(), file, i));
    bulletin.flaws.push_back(std::move(flaw));
  }
  return bulletin;
}

}  // namespace ringfence::assure
