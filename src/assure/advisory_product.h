#pragma once

// What users call a product, and what bulletins call it.

#include <string>
#include <string_view>
#include <vector>

#include "assure/csaf.h"
#include "base/result.h"

namespace ringfence::assure {

// How the versions of a product are numbered, and so how a row of a bulletin applies.
enum class Line {
  kDriver,  // branches side by side: R535, R550, each with its own fix
  kVgpu,    // the same, and numbers of its own: vGPU 16.5
  kGaming,  // one monthly train
  kPlain,
};

struct KnownProduct {
  std::string_view id;
  std::string_view title;
  Line line;
  // Names, as NormalName() writes them, that users give it.
  std::vector<std::string_view> aliases;
  // A row is of this product when its name has one of these words...
  std::vector<std::string_view> words;
  // ... and none of these.
  std::vector<std::string_view> not_words;
};
const std::vector<KnownProduct>& KnownProducts();

// "NVIDIA RTX/ Quadro, NVS" -> "rtx quadro nvs".
std::string NormalName(std::string_view name);

// What a question is about.
struct ProductQuery {
  const KnownProduct* known = nullptr;  // null: by the words of its name
  std::string name;                     // NormalName of what was asked for
  std::vector<std::string> words;       // of `name`, for an unknown product
  std::string component;                // "bmc", "sbios"; may be empty
  Line line = Line::kPlain;
};

// The names of a row, made ready for many questions.
struct RowNames {
  std::uint64_t known = 0;  // a bit for each of KnownProducts() that it is of
  std::string whole;        // product and platform, normal
};
RowNames NamesOf(const BulletinRow& row);
bool IsRowOf(const BulletinRow& row, const RowNames& names, const ProductQuery& query);
// Of the same line, whatever the edition: GeForce and Tesla share branches.
bool IsRowOfLine(const RowNames& names, Line line);

// kNotFound, with the nearest names, when no bulletin speaks of it.
Result<ProductQuery> ResolveProduct(std::string_view name, const std::vector<Bulletin>& bulletins);

}  // namespace ringfence::assure
