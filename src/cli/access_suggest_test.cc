// Goal: what is suggested takes away what was not used and nothing else, leaves an administrator,
// and comes as a patch that gives exactly the suggested files.
// Method: a small policy with bindings of each kind; the patch is applied by patch(1).

#include "cli/access_suggest.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "crypto/random.h"
#include "policy/policy.h"

namespace ringfence::cli {
namespace {

std::string Binding(const std::string& name, const std::string& role, const std::string& tenant) {
  return "# why " + name +
         " is here\napiVersion: ringfence.dev/v1\nkind: Binding\nmetadata:\n  name: " + name +
         "-binding\nspec:\n  principal: " + name + "\n  role: " + role +
         "  # for now\n  tenant: " + tenant + "\n";
}
std::string Principal(const std::string& name) {
  return "apiVersion: ringfence.dev/v1\nkind: Principal\nmetadata:\n  name: " + name +
         "\nspec:\n  kind: user\n";
}

Files Sample() {
  return {{"bindings.yaml",
           Binding("ada", "admin", "/") + "---\n" + Binding("bob", "developer", "acme") + "---\n" +
               Binding("cyd", "operator", "/") + "---\n" + Binding("dan", "auditor", "/")},
          {"who.yaml", Principal("ada") + "---\n" + Principal("bob") + "---\n" + Principal("cyd") +
                           "---\n" + Principal("dan")},
          {"tenants.yaml",
           "apiVersion: ringfence.dev/v1\nkind: Tenant\nmetadata:\n  name: acme\nspec: {}\n"}};
}

class AccessSuggestTest : public testing::Test {
 protected:
  AccessSuggestTest() {
    const auto policy = policy::Policy::Parse(Sample());
    EXPECT_TRUE(policy.has_value()) << policy.error().message;
    for (const policy::Role& role : (*policy)->roles()) {
      for (const policy::Action action : role.allows) {
        roles_[role.name].insert(std::string(Name(action)));
      }
    }
    for (const policy::Binding& one : (*policy)->bindings()) {
      held_.push_back(
          {one.principal, one.role, one.tenant.text(), one.source.file, one.source.line, {}});
    }
  }
  Held& Of(const std::string& principal) {
    for (Held& held : held_) {
      if (held.principal == principal) {
        return held;
      }
    }
    ADD_FAILURE() << principal;
    return held_.front();
  }

  Roles roles_;
  std::vector<Held> held_;
};

TEST_F(AccessSuggestTest, TakesAwayWhatWasNotUsedAndNothingElse) {
  Of("bob").used = {"lease.request", "lease.read"};
  Of("dan").used = roles_.at("auditor");
  const auto suggestions = Suggest(held_, roles_);
  ASSERT_EQ(suggestions.size(), 2U) << "ada is the last administrator, dan used everything";
  EXPECT_EQ(suggestions[0].held.principal, "bob");
  EXPECT_EQ(suggestions[0].what, Narrowing::kNewRole);
  EXPECT_EQ(suggestions[0].role, "developer-narrowed");
  EXPECT_EQ(suggestions[1].held.principal, "cyd");
  EXPECT_EQ(suggestions[1].what, Narrowing::kRemove);
  const auto after = Apply(Sample(), suggestions);
  ASSERT_TRUE(after.has_value()) << after.error().message;
  const auto policy = policy::Policy::Parse(*after);
  ASSERT_TRUE(policy.has_value()) << policy.error().message;
  EXPECT_EQ((*policy)->bindings().size(), 3U);
  const auto may = [&](const std::string& who, policy::Action action) {
    return (*policy)->Decide({who, action, model::TenantPath::Create("acme").value()}).allowed;
  };
  EXPECT_TRUE(may("bob", policy::Action::kLeaseRequest));
  EXPECT_FALSE(may("bob", policy::Action::kLeaseEnd));
  EXPECT_FALSE(may("cyd", policy::Action::kGpuScrub));
  EXPECT_TRUE(may("dan", policy::Action::kAuditRead));
  EXPECT_TRUE(may("ada", policy::Action::kPolicyApply));
}

TEST_F(AccessSuggestTest, OneOfTwoAdministratorsStays) {
  Held second = Of("ada");
  second.principal = "eve";
  held_.push_back(second);
  const auto suggestions = Suggest(held_, roles_);
  const auto admins = std::count_if(suggestions.begin(), suggestions.end(),
                                    [](const auto& one) { return one.held.role == "admin"; });
  EXPECT_EQ(admins, 1);
}

TEST_F(AccessSuggestTest, ARoleThatFitsIsTakenAndTheSameNeedGetsTheSameNewRole) {
  Of("bob").used = roles_.at("service");
  Of("cyd").used = {"node.read"};
  Of("dan").used = {"node.read"};
  const auto suggestions = Suggest(held_, roles_);
  ASSERT_EQ(suggestions.size(), 3U);
  EXPECT_EQ(suggestions[0].what, Narrowing::kOtherRole);
  EXPECT_EQ(suggestions[0].role, "service");
  EXPECT_EQ(suggestions[1].role, suggestions[2].role);
  EXPECT_TRUE(policy::Policy::Parse(Apply(Sample(), suggestions).value()).has_value());
}

TEST_F(AccessSuggestTest, WhatWasApartStaysApart) {
  Of("bob").used = roles_.at("developer");
  Of("cyd").used = {"node.read", "gpu.scrub"};
  Of("dan").used = {"audit.read"};
  Files files = Apply(Sample(), Suggest(held_, roles_)).value();
  ASSERT_TRUE(policy::Policy::Parse(files).has_value());
  for (const char* role : {"operator", "operator-narrowed"}) {
    Files both = files;
    both["more.yaml"] =
        "apiVersion: ringfence.dev/v1\nkind: Binding\nmetadata:\n  name: more\n"
        "spec:\n  principal: dan\n  role: " +
        std::string(role) + "\n  tenant: /\n";
    const auto parsed = policy::Policy::Parse(both);
    ASSERT_FALSE(parsed.has_value()) << role;
    EXPECT_NE(parsed.error().message.find("must be apart"), std::string::npos) << role;
  }
}

TEST_F(AccessSuggestTest, WhatTheFolderHoldsApartStaysApart) {
  Of("bob").used = {"lease.read"};
  Of("cyd").used = roles_.at("operator");
  Of("dan").used = roles_.at("auditor");
  Files files = Sample();
  files["steward.yaml"] =
      "apiVersion: ringfence.dev/v1\nkind: Role\nmetadata:\n  name: steward\n"
      "spec:\n  allows: [asset.share]\n  apartFrom: [developer]\n";
  Files after = Apply(files, Suggest(held_, roles_)).value();
  ASSERT_TRUE(policy::Policy::Parse(after).has_value());
  after["more.yaml"] =
      "apiVersion: ringfence.dev/v1\nkind: Binding\nmetadata:\n  name: more\n"
      "spec:\n  principal: bob\n  role: steward\n  tenant: /\n";
  const auto parsed = policy::Policy::Parse(after);
  ASSERT_FALSE(parsed.has_value());
  EXPECT_NE(parsed.error().message.find("must be apart"), std::string::npos);
}

TEST_F(AccessSuggestTest, ThePatchGivesTheSuggestedFiles) {
  Of("bob").used = {"lease.read"};
  const Files before = Sample();
  const Files after = Apply(before, Suggest(held_, roles_)).value();
  const auto folder = std::filesystem::temp_directory_path() / crypto::RandomId("suggest");
  std::filesystem::create_directories(folder / "policy");
  for (const auto& [name, text] : before) {
    std::ofstream(folder / "policy" / name) << text;
  }
  std::ofstream(folder / "patch") << Diff(before, after);
  const std::string command =
      "patch -s -p1 -d " + (folder / "policy").string() + " < " + (folder / "patch").string();
  EXPECT_EQ(std::system(command.c_str()), 0) << Diff(before, after);
  Files patched;
  for (const auto& file : std::filesystem::directory_iterator(folder / "policy")) {
    std::ostringstream text;
    text << std::ifstream(file.path()).rdbuf();
    patched[file.path().filename()] = text.str();
  }
  EXPECT_EQ(patched, after);
  EXPECT_EQ(Diff(before, before), "");
  std::filesystem::remove_all(folder);
}

TEST_F(AccessSuggestTest, ABindingThatIsNotWhereItShouldBeIsAnError) {
  Of("bob").line = 4000;
  EXPECT_FALSE(Apply(Sample(), Suggest(held_, roles_)).has_value());
  Of("bob").line = 3;  // ada's
  EXPECT_FALSE(Apply(Sample(), Suggest(held_, roles_)).has_value());
}

}  // namespace
}  // namespace ringfence::cli
