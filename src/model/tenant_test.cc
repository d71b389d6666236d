// Goal: a TenantPath is always a well-formed place in the tree, and "below" means below.
// Method: every byte value in every position; near misses of containment ("acme" and "acme-2").

#include "model/tenant.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "model/isolation.h"

namespace ringfence::model {
namespace {

TenantPath Path(std::string_view text) {
  return text == "/" ? TenantPath::Root() : TenantPath::Create(text).value();
}

TEST(TenantPathTest, TakesOneToThreeNames) {
  EXPECT_EQ(Path("acme").kind(), TenantKind::kDepartment);
  EXPECT_EQ(Path("acme/research").kind(), TenantKind::kTeam);
  EXPECT_EQ(Path("acme/research/vision-2").kind(), TenantKind::kProject);
  EXPECT_EQ(Name(TenantKind::kDepartment), "department");
  EXPECT_EQ(Name(TenantKind::kTeam), "team");
  EXPECT_EQ(Name(TenantKind::kProject), "project");
  EXPECT_TRUE(TenantPath::Create(std::string(40, 'a')).has_value());
}

TEST(TenantPathTest, RefusesTheRestAndSaysWhy) {
  const std::pair<std::string, std::string> cases[] = {
      {"", "\"\" is no tenant: it is empty"},
      {"/", "\"/\" is no tenant: it stands for the whole cluster"},
      {"a/b/c/d", "\"a/b/c/d\" is no tenant: it has more than three levels"},
      {"/acme", "\"/acme\" is no tenant: a name between slashes is empty"},
      {"acme/", "\"acme/\" is no tenant: a name between slashes is empty"},
      {"acme//x", "\"acme//x\" is no tenant: a name between slashes is empty"},
      {"1acme", "\"1acme\" is no tenant: each name begins with a letter"},
      {"acme/-x", "\"acme/-x\" is no tenant: each name begins with a letter"},
      {"Acme", "\"Acme\" is no tenant: names are of a-z, 0-9 and '-' only"},
      {"a b", "\"a b\" is no tenant: names are of a-z, 0-9 and '-' only"},
      {"a\x1b[2J", "\"a?[2J\" is no tenant: names are of a-z, 0-9 and '-' only"},
      {std::string(41, 'a'),
       "\"" + std::string(41, 'a') + "\" is no tenant: a name is longer than 40 bytes"},
  };
  for (const auto& [text, message] : cases) {
    const auto path = TenantPath::Create(text);
    ASSERT_FALSE(path.has_value()) << text;
    EXPECT_EQ(path.error().message, message);
    EXPECT_EQ(path.error().code, Code::kInvalidArgument);
    EXPECT_EQ(path.error().field, "tenant");
    EXPECT_FALSE(path.error().hint.empty());
  }
  EXPECT_LT(TenantPath::Create(std::string(1 << 20, 'a')).error().message.size(), 300U);
}

TEST(TenantPathTest, EveryByteInEveryPlace) {
  for (int byte = 0; byte < 256; ++byte) {
    for (std::size_t at = 0; at < 4; ++at) {
      std::string text = "ab/c";
      text[at] = static_cast<char>(byte);
      const bool letter = byte >= 'a' && byte <= 'z';
      const bool inside = letter || (byte >= '0' && byte <= '9') || byte == '-';
      // At 1 a slash leaves an empty name, at 2 anything allowed in a name joins the two.
      const bool expected = at == 1 ? inside : at == 2 ? inside || byte == '/' : letter;
      EXPECT_EQ(TenantPath::Create(text).has_value(), expected) << at << ' ' << byte;
    }
  }
}

TEST(TenantPathTest, ContainsIsItselfAndBelow) {
  const std::string_view all[] = {
      "/",   "acme",    "acme/research", "acme/research/vision", "acme-2", "acme-2/research",
      "acm", "acme/res"};
  const std::pair<std::string_view, std::string_view> below[] = {
      {"acme", "acme/research"},     {"acme", "acme/research/vision"},
      {"acme", "acme/res"},          {"acme/research", "acme/research/vision"},
      {"acme-2", "acme-2/research"},
  };
  for (const auto a : all) {
    for (const auto b : all) {
      const bool expected =
          a == b || a == "/" ||
          std::find(std::begin(below), std::end(below), std::pair(a, b)) != std::end(below);
      EXPECT_EQ(Path(a).Contains(Path(b)), expected) << a << " contains " << b;
    }
  }
}

TEST(TenantPathTest, ParentsEndAtTheRoot) {
  EXPECT_EQ(Path("acme/research/vision").parent(), Path("acme/research"));
  EXPECT_EQ(Path("acme/research").parent(), Path("acme"));
  EXPECT_EQ(Path("acme").parent(), TenantPath::Root());
  EXPECT_EQ(TenantPath::Root().parent(), TenantPath::Root());
  EXPECT_TRUE(TenantPath::Root().is_root());
  EXPECT_EQ(TenantPath::Root().text(), "/");
}

TEST(IsolationTest, NamesGoBothWaysAndOrderIsStrength) {
  using enum IsolationClass;
  for (const auto isolation : {kMps, kTime, kMig, kGpu, kNode}) {
    EXPECT_EQ(ParseIsolationClass(Name(isolation)).value(), isolation);
  }
  EXPECT_LT(kMps, kTime);
  EXPECT_LT(kTime, kMig);
  EXPECT_LT(kMig, kGpu);
  EXPECT_LT(kGpu, kNode);
  for (const std::string_view text : {"", "MIG", "mig ", "unknown"}) {
    EXPECT_FALSE(ParseIsolationClass(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace ringfence::model
