#include "sigma/rule.h"

namespace ringfence::sigma {

std::string Problem::Text() const {
  std::string text = place.file;
  if (place.line > 0) {
    text += ":" + std::to_string(place.line);
  }
  text += ": ";
  if (!field.empty()) {
    text += field + ": ";
  }
  text += what;
  if (!hint.empty()) {
    text += " (" + hint + ")";
  }
  return text;
}

std::string Item::Name() const {
  std::string name = field;
  for (const std::string& modifier : modifiers) {
    name += "|" + modifier;
  }
  return name.empty() ? "keywords" : name;
}

bool LogSource::Has(const LogSource& wanted) const {
  const auto same = [](const std::string& want, const std::string& have) {
    return want.empty() || want == have;
  };
  return same(wanted.category, category) && same(wanted.product, product) &&
         same(wanted.service, service);
}

std::string LogSource::Text() const {
  std::string text;
  for (const std::string* part : {&product, &category, &service}) {
    if (!part->empty()) {
      text += (text.empty() ? "" : "/") + *part;
    }
  }
  return text;
}

bool Bound::Holds(double number) const {
  switch (op) {
    case Op::kLess:
      return number < value;
    case Op::kLessOrEqual:
      return number <= value;
    case Op::kGreater:
      return number > value;
    case Op::kGreaterOrEqual:
      return number >= value;
    case Op::kEqual:
      return number == value;
    case Op::kNotEqual:
      return number != value;
  }
  return false;
}

std::string Rule::Key() const {
  if (!id.empty()) {
    return id;
  }
  return name.empty() ? place.file + ":" + std::to_string(place.line) : name;
}

}  // namespace ringfence::sigma
