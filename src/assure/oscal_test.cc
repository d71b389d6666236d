// Goal: catalogs and profiles of NIST's OSCAL are read, and a profile chooses what OSCAL says it
// does; what is wrong is named with its place. Method: NIST's LOW baseline, small documents.

#include <gtest/gtest.h>

#include <cstdlib>

#include "assure/oscal_catalog.h"
#include "os/file.h"

namespace ringfence::assure {
namespace {

constexpr std::string_view kCatalog = R"({"catalog":{"uuid":"u","metadata":{"title":"T"},
  "groups":[{"id":"ac","title":"Access","controls":[
    {"id":"ac-1","title":"One"},
    {"id":"ac-2","title":"Two","controls":[{"id":"ac-2.1","title":"Two one"},
      {"id":"ac-2.2","title":"Gone","props":[{"name":"status","value":"withdrawn"}]}]}],
    "groups":[{"title":"Inner","controls":[{"id":"ac-9","title":"Nine"}]}]}]}})";

std::string Chosen(const std::string& imports) {
  const auto catalog = ParseOscalCatalog(kCatalog, "c");
  EXPECT_TRUE(catalog.has_value()) << catalog.error().message;
  const auto profile =
      ParseOscalProfile(R"({"profile":{"uuid":"u","imports":)" + imports + "}}", "p.json");
  if (!profile.has_value()) {
    return profile.error().message;
  }
  const auto controls = ResolveProfile(*profile, *catalog);
  if (!controls.has_value()) {
    return controls.error().message;
  }
  std::string ids;
  for (const OscalControl& control : *controls) {
    ids += (ids.empty() ? "" : " ") + control.id;
  }
  return ids;
}

TEST(OscalTest, ProfilesChoose) {
  EXPECT_EQ(Chosen(R"([{"href":"#x","include-all":{}}])"), "ac-1 ac-2 ac-2.1 ac-9");
  EXPECT_EQ(Chosen(R"([{"href":"#x"}])"), "ac-1 ac-2 ac-2.1 ac-9") << "no choice takes all";
  EXPECT_EQ(Chosen(R"([{"href":"#x","include-controls":[{"with-ids":["ac-9","ac-2"]}]}])"),
            "ac-2 ac-9")
      << "in the catalog's order";
  EXPECT_EQ(Chosen(R"([{"href":"#x","include-controls":[{"with-ids":["ac-2"],
                       "with-child-controls":"yes"}]}])"),
            "ac-2 ac-2.1");
  EXPECT_EQ(Chosen(R"([{"href":"#x","include-controls":[{"matching":[{"pattern":"ac-?"}]}]}])"),
            "ac-1 ac-2 ac-9");
  EXPECT_EQ(Chosen(R"([{"href":"#x","include-all":{},"exclude-controls":[{"with-ids":["ac-2"],
                       "with-child-controls":"yes"}]}])"),
            "ac-1 ac-9");
  EXPECT_EQ(Chosen(R"([{"href":"#x","include-controls":[{"with-ids":["ac-1"]}]},
                       {"href":"#y","include-controls":[{"with-ids":["ac-2.2"]}]}])"),
            "ac-1 ac-2.2")
      << "a withdrawn one that is named is what was asked for";
}

TEST(OscalTest, WhatIsWrongIsNamed) {
  const std::pair<const char*, const char*> profiles[] = {
      {R"([])", "at least one catalog"},
      {R"({})", "p.json: profile.imports: must be a list"},
      {R"([{"include-all":{}}])", "imports[0].href"},
      {R"([{"href":"#","include-controls":[{}]}])", "include-controls[0]: chooses nothing"},
      {R"([{"href":"#","include-controls":[{"with-ids":[7]}]}])", "with-ids"},
      {R"([{"href":"#","include-all":{},"include-controls":[{"with-ids":["ac-1"]}]}])", "both"},
      {R"([{"href":"#","include-controls":[{"with-ids":["zz-1"]}]}])", "zz-1"},
      {R"([{"href":"#","include-controls":[{"matching":[{"pattern":"zz*"}]}]}])",
       "chooses no control"},
  };
  for (const auto& [imports, said] : profiles) {
    EXPECT_NE(Chosen(imports).find(said), std::string::npos) << imports << ": " << Chosen(imports);
  }
  const std::pair<const char*, const char*> catalogs[] = {
      {"{", "c.json"},
      {R"({"profile":{}})", "holds no OSCAL catalog"},
      {R"({"catalog":{}})", "holds no control"},
      {R"({"catalog":{"groups":[{}]}})", "groups[0]"},
      {R"({"catalog":{"controls":[{"id":"a"}]}})", "controls[0]: must have an id and a title"},
      {R"({"catalog":{"controls":[{"id":"a","title":"t"},{"id":"a","title":"t"}]}})", "twice"},
      {R"({"catalog":{"controls":7}})", "must be a list"},
  };
  for (const auto& [text, said] : catalogs) {
    const auto catalog = ParseOscalCatalog(text, "c.json");
    ASSERT_FALSE(catalog.has_value()) << text;
    EXPECT_NE(catalog.error().message.find(said), std::string::npos) << catalog.error().message;
  }
  std::string deep = R"({"id":"x","title":"t"})";
  for (int i = 0; i < 12; ++i) {
    deep = R"({"id":"y)" + std::to_string(i) + R"(","title":"t","controls":[)" + deep + "]}";
  }
  EXPECT_FALSE(ParseOscalCatalog(R"({"catalog":{"controls":[)" + deep + "]}}", "c").has_value());
}

// NIST's whole resolved catalog, where the shared test data is at hand.
TEST(OscalTest, NistsResolvedCatalog) {
  const char* const shared = std::getenv("RINGFENCE_SHARED");
  const std::string path =
      std::string(shared == nullptr ? "" : shared) +
      "/data/oscal/NIST_SP-800-53_rev5_LOW-baseline-resolved-profile_catalog-min.json";
  const auto text = os::ReadText(path, kOscalBytesMax);
  if (!text.has_value()) {
    return;  // the cut in tests/vectors is all that can be tried without it
  }
  const auto catalog = ParseOscalCatalog(*text, "catalog");
  ASSERT_TRUE(catalog.has_value()) << catalog.error().message;
  EXPECT_EQ(catalog->controls.size(), 149U);
  EXPECT_EQ(catalog->controls[0].group, "Access Control");
}

}  // namespace
}  // namespace ringfence::assure
