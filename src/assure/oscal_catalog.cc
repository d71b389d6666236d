#include "assure/oscal_catalog.h"

#include <algorithm>
#include <set>

#include "base/json.h"

namespace ringfence::assure {
namespace {

constexpr std::size_t kControlsMax = 20'000;
constexpr int kNestingMax = 8;  // groups in groups, enhancements of enhancements

Error Wrong(const std::string& where, const std::string& what) {
  return {Code::kInvalidArgument, where + ": " + what,
          "OSCAL 1.1 JSON is expected: a catalog with --catalog, a profile with --profile"};
}

const Json* Member(const Json& value, std::string_view name) {
  const JsonObject* const object = value.if_object();
  return object == nullptr ? nullptr : object->if_contains(name);
}

std::string TextOr(const Json& value, std::string_view name) {
  const Json* const member = Member(value, name);
  const auto* const text = member == nullptr ? nullptr : member->if_string();
  return text == nullptr ? std::string() : std::string(text->data(), text->size());
}

// A member that is a list; absent counts as empty, anything else is wrong.
Result<const JsonArray*> List(const Json& value, std::string_view name, const std::string& path) {
  static const JsonArray kNone;
  const Json* const member = Member(value, name);
  if (member == nullptr) {
    return &kNone;
  }
  if (const JsonArray* const array = member->if_array()) {
    return array;
  }
  return Wrong(path + "." + std::string(name), "must be a list");
}

std::string At(const std::string& path, std::string_view name, std::size_t i) {
  return path + "." + std::string(name) + "[" + std::to_string(i) + "]";
}

bool IsWithdrawn(const Json& control) {
  const Json* const props = Member(control, "props");
  const JsonArray* const list = props == nullptr ? nullptr : props->if_array();
  return list != nullptr && std::any_of(list->begin(), list->end(), [](const Json& prop) {
           return TextOr(prop, "name") == "status" &&
                  (TextOr(prop, "value") == "withdrawn" || TextOr(prop, "value") == "Withdrawn");
         });
}

class CatalogReading {
 public:
  CatalogReading(std::string file, OscalCatalog& catalog)
      : file_(std::move(file)), catalog_(catalog) {}

  Status Groups(const Json& holder, const std::string& path, int depth) {
    if (depth > kNestingMax) {
      return Wrong(path, "groups are nested too deep");
    }
    RINGFENCE_ASSIGN(const JsonArray* groups, List(holder, "groups", path));
    for (std::size_t i = 0; i < groups->size(); ++i) {
      const std::string at = At(path, "groups", i);
      const std::string title = TextOr((*groups)[i], "title");
      if (!(*groups)[i].is_object() || title.empty()) {
        return Wrong(at, "must be a group with a title");
      }
      RINGFENCE_TRY(Controls((*groups)[i], at, title, "", depth + 1));
      RINGFENCE_TRY(Groups((*groups)[i], at, depth + 1));
    }
    return {};
  }

  Status Controls(const Json& holder, const std::string& path, const std::string& group,
                  const std::string& parent, int depth) {
    if (depth > kNestingMax) {
      return Wrong(path, "controls are nested too deep");
    }
    RINGFENCE_ASSIGN(const JsonArray* controls, List(holder, "controls", path));
    for (std::size_t i = 0; i < controls->size(); ++i) {
      const Json& control = (*controls)[i];
      const std::string at = At(path, "controls", i);
      OscalControl one{.id = TextOr(control, "id"),
                       .title = TextOr(control, "title"),
                       .group = group,
                       .parent = parent,
                       .withdrawn = IsWithdrawn(control)};
      if (one.id.empty() || one.title.empty() || one.id.size() > 128 || one.title.size() > 1024) {
        return Wrong(at, "must have an id and a title");
      }
      if (!seen_.insert(one.id).second) {
        return Wrong(at + ".id", "\"" + one.id + "\" is in the catalog twice");
      }
      if (catalog_.controls.size() >= kControlsMax) {
        return Wrong(file_, "more than " + std::to_string(kControlsMax) + " controls");
      }
      const std::string id = one.id;
      catalog_.controls.push_back(std::move(one));
      RINGFENCE_TRY(Controls(control, at, group, id, depth + 1));
    }
    return {};
  }

 private:
  std::string file_;
  OscalCatalog& catalog_;
  std::set<std::string> seen_;
};

// The one object that a document of this kind holds.
Result<const Json*> Root(const Json& document, std::string_view kind, const std::string& file) {
  const Json* const root = Member(document, kind);
  if (root == nullptr || !root->is_object()) {
    std::string hint;
    for (const std::string_view other : {"catalog", "profile"}) {
      hint = Member(document, other) != nullptr
                 ? "it is a " + std::string(other) + ": use --" + std::string(other)
                 : hint;
    }
    return Error{
        Code::kInvalidArgument, file + ": holds no OSCAL " + std::string(kind),
        hint.empty() ? "give an OSCAL 1.1 JSON file with \"" + std::string(kind) + "\"" : hint};
  }
  return root;
}

Result<Json> Document(std::string_view json, const std::string& file) {
  auto document = ParseJson(json, kOscalBytesMax);
  if (!document.has_value()) {
    return Prefix(file, document.error());
  }
  return document;
}

Result<std::vector<OscalProfile::Selection>> Selections(const Json& import, std::string_view name,
                                                        const std::string& path) {
  std::vector<OscalProfile::Selection> selections;
  RINGFENCE_ASSIGN(const JsonArray* list, List(import, name, path));
  for (std::size_t i = 0; i < list->size(); ++i) {
    const std::string at = At(path, name, i);
    OscalProfile::Selection selection;
    selection.with_children = TextOr((*list)[i], "with-child-controls") == "yes";
    RINGFENCE_ASSIGN(const JsonArray* ids, List((*list)[i], "with-ids", at));
    for (const Json& id : *ids) {
      const auto* const text = id.if_string();
      if (text == nullptr || text->empty()) {
        return Wrong(at + ".with-ids", "must hold ids");
      }
      selection.ids.emplace_back(text->data(), text->size());
    }
    RINGFENCE_ASSIGN(const JsonArray* patterns, List((*list)[i], "matching", at));
    for (const Json& pattern : *patterns) {
      selection.patterns.push_back(TextOr(pattern, "pattern"));
      if (selection.patterns.back().empty() || selection.patterns.back().size() > 128) {
        return Wrong(at + ".matching", "must hold patterns");
      }
    }
    if (selection.ids.empty() && selection.patterns.empty()) {
      return Wrong(at, "chooses nothing: neither with-ids nor matching");
    }
    selections.push_back(std::move(selection));
  }
  return selections;
}

// '*' any text, '?' any one character.
bool Matches(std::string_view pattern, std::string_view text) {
  std::size_t p = 0;
  std::size_t t = 0;
  std::size_t star = std::string_view::npos;
  std::size_t mark = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      mark = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++mark;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

// Adds what the selections name.
Status Choose(const std::vector<OscalProfile::Selection>& selections, const OscalCatalog& catalog,
              std::set<std::string>& chosen) {
  for (const OscalProfile::Selection& selection : selections) {
    std::set<std::string> some;
    for (const std::string& id : selection.ids) {
      const bool known = std::any_of(catalog.controls.begin(), catalog.controls.end(),
                                     [&](const OscalControl& one) { return one.id == id; });
      if (!known) {
        return Error{Code::kInvalidArgument,
                     "the profile asks for \"" + id + "\", and the catalog \"" + catalog.title +
                         "\" has no such control",
                     "give the catalog that the profile imports with --catalog"};
      }
      some.insert(id);
    }
    for (const OscalControl& control : catalog.controls) {
      for (const std::string& pattern : selection.patterns) {
        if (!control.withdrawn && Matches(pattern, control.id)) {
          some.insert(control.id);
        }
      }
      // A control's enhancements come after it, so one pass reaches all generations.
      if (selection.with_children && !control.withdrawn && some.contains(control.parent)) {
        some.insert(control.id);
      }
    }
    chosen.merge(some);
  }
  return {};
}

}  // namespace

Result<OscalCatalog> ParseOscalCatalog(std::string_view json, const std::string& file) {
  RINGFENCE_ASSIGN(const Json document, Document(json, file));
  RINGFENCE_ASSIGN(const Json* root, Root(document, "catalog", file));
  OscalCatalog catalog;
  catalog.uuid = TextOr(*root, "uuid");
  if (const Json* const metadata = Member(*root, "metadata")) {
    catalog.title = TextOr(*metadata, "title");
    catalog.version = TextOr(*metadata, "version");
  }
  CatalogReading reading(file, catalog);
  const std::string path = file + ": catalog";
  RINGFENCE_TRY(reading.Controls(*root, path, "", "", 0));
  RINGFENCE_TRY(reading.Groups(*root, path, 0));
  if (catalog.controls.empty()) {
    return Wrong(path, "holds no control");
  }
  return catalog;
}

Result<OscalProfile> ParseOscalProfile(std::string_view json, const std::string& file) {
  RINGFENCE_ASSIGN(const Json document, Document(json, file));
  RINGFENCE_ASSIGN(const Json* root, Root(document, "profile", file));
  OscalProfile profile;
  profile.uuid = TextOr(*root, "uuid");
  if (const Json* const metadata = Member(*root, "metadata")) {
    profile.title = TextOr(*metadata, "title");
  }
  const std::string path = file + ": profile";
  RINGFENCE_ASSIGN(const JsonArray* imports, List(*root, "imports", path));
  for (std::size_t i = 0; i < imports->size(); ++i) {
    const Json& one = (*imports)[i];
    const std::string at = At(path, "imports", i);
    OscalProfile::Import import;
    import.href = TextOr(one, "href");
    import.all = Member(one, "include-all") != nullptr;
    RINGFENCE_ASSIGN(import.include, Selections(one, "include-controls", at));
    RINGFENCE_ASSIGN(import.exclude, Selections(one, "exclude-controls", at));
    if (import.href.empty()) {
      return Wrong(at + ".href", "must say what is imported");
    }
    if (import.all && !import.include.empty()) {
      return Wrong(at, "has both include-all and include-controls");
    }
    // OSCAL: an import that chooses nothing takes all.
    import.all = import.all || import.include.empty();
    profile.imports.push_back(std::move(import));
  }
  if (profile.imports.empty()) {
    return Wrong(path + ".imports", "must import at least one catalog");
  }
  return profile;
}

Result<std::vector<OscalControl>> ResolveProfile(const OscalProfile& profile,
                                                 const OscalCatalog& catalog) {
  std::set<std::string> chosen;
  for (const OscalProfile::Import& import : profile.imports) {
    std::set<std::string> some;
    if (import.all) {
      for (const OscalControl& control : catalog.controls) {
        if (!control.withdrawn) {
          some.insert(control.id);
        }
      }
    }
    RINGFENCE_TRY(Choose(import.include, catalog, some));
    std::set<std::string> left_out;
    RINGFENCE_TRY(Choose(import.exclude, catalog, left_out));
    for (const std::string& id : left_out) {
      some.erase(id);
    }
    chosen.merge(some);
  }
  std::vector<OscalControl> controls;
  std::copy_if(catalog.controls.begin(), catalog.controls.end(), std::back_inserter(controls),
               [&](const OscalControl& control) { return chosen.contains(control.id); });
  if (controls.empty()) {
    return Error{Code::kInvalidArgument, "the profile chooses no control of the catalog"};
  }
  return controls;
}

}  // namespace ringfence::assure
