// Goal: everything that can be wrong in a policy folder is refused with file, line and a way out,
// all of it at once, and nothing is ever half loaded.
// Method: a table of faulty documents beside a good folder, with their exact messages; the sample
// folder cut at every byte.

#include <gtest/gtest.h>

#include <map>

#include "os/file.h"
#include "policy/limits.h"
#include "policy/policy.h"

namespace ringfence::policy {
namespace {

constexpr std::string_view kHead = "apiVersion: ringfence.dev/v1\n";

std::string Doc(std::string_view kind, std::string_view name, std::string_view spec) {
  return std::string(kHead) + "kind: " + std::string(kind) +
         "\nmetadata: {name: " + std::string(name) + "}\nspec: " + std::string(spec) + "\n";
}

// Tenants acme, acme/research, acme/finance and globex; admin and alice; admin holds admin at "/".
std::map<std::string, std::string> Good() {
  return {{"base.yaml",
           Doc("Tenant", "acme", "{}") + "---\n" + Doc("Tenant", "acme/research", "{}") + "---\n" +
               Doc("Tenant", "acme/finance", "{}") + "---\n" + Doc("Tenant", "globex", "{}") +
               "---\n" + Doc("Principal", "admin", "{kind: user}") + "---\n" +
               Doc("Principal", "alice@acme.example", "{kind: user}") + "---\n" +
               Doc("Binding", "root", "{principal: admin, role: admin, tenant: /}")}};
}

// What is said of the text as file x.yaml beside the good folder; empty when nothing.
std::string ErrorOf(std::string_view text) {
  auto files = Good();
  files["x.yaml"] = text;
  const auto policy = Policy::Parse(files);
  if (policy.has_value()) {
    return {};
  }
  EXPECT_EQ(policy.error().code, Code::kInvalidArgument);
  EXPECT_FALSE(policy.error().hint.empty());
  return policy.error().message;
}

struct Case {
  std::string text;
  std::string message;
};

void Check(const std::vector<Case>& cases) {
  ASSERT_EQ(ErrorOf(""), "");  // what the cases add to is itself good
  for (const auto& [text, message] : cases) {
    EXPECT_EQ(ErrorOf(text), message) << text;
  }
}

TEST(PolicyErrorsTest, TheFrameOfADocument) {
  const std::string kinds =
      "the kinds are Tenant, Principal, Role, Binding, Boundary, Quota, NetworkRule, BoxRule, "
      "Exception, Case";
  Check({
      {"- a\n",
       "x.yaml:1: must be a map, but is a list (write \"name: value\" lines below it, or {} for "
       "none)"},
      {"kind: Tenant\nmetadata: {name: a}\nspec: {}\n",
       "x.yaml:1: apiVersion: missing (give a text)"},
      {"apiVersion: ringfence.dev/v2\nkind: Tenant\nmetadata: {name: a}\nspec: {}\n",
       "x.yaml:1: apiVersion: unknown version \"ringfence.dev/v2\" (write ringfence.dev/v1)"},
      {std::string(kHead) + "metadata: {name: a}\nspec: {}\n",
       "x.yaml:1: kind: missing (give a text)"},
      {Doc("Tennant", "a", "{}"),
       "x.yaml:2: kind: unknown kind \"Tennant\" (did you mean "
       "\"Tenant\"?)"},
      {Doc("Widget", "a", "{}"), "x.yaml:2: kind: unknown kind \"Widget\" (" + kinds + ")"},
      {std::string(kHead) + "kind: Tenant\nspec: {}\n",
       "x.yaml:1: metadata: missing (write \"name: value\" lines below it, or {} for none)"},
      {std::string(kHead) + "kind: Tenant\nmetadata: {}\nspec: {}\n",
       "x.yaml:3: metadata.name: missing (give a text)"},
      {std::string(kHead) + "kind: Tenant\nmetadata: {name: a}\n",
       "x.yaml:1: spec: missing (write \"name: value\" lines below it, or {} for none)"},
      {std::string(kHead) + "kind: Tenant\nmetadata: {name: a}\nspec:\n",
       "x.yaml:4: spec: must be a map, but is nothing (write \"name: value\" lines below it, or {} "
       "for none)"},
      {Doc("Tenant", "a", "{}") + "status: ok\n",
       "x.yaml:5: status: unknown field (the fields here are apiVersion, kind, metadata, spec)"},
      {Doc("Tenant", "a, lable: b", "{}"),
       "x.yaml:3: metadata.lable: unknown field (the fields here are name)"},
      {Doc("Tenant", "a", "{}") + "spec: {}\n",
       "x.yaml:5: the key \"spec\" is there twice (keep one of the two)"},
      {Doc("Tenant", "a", "{}") + "# cut",
       "x.yaml: the last line has no end: the file may be cut short (end the file with a newline)"},
      {Doc("Tenant", "&a a", "{}"),
       "x.yaml:3: anchors (&) and aliases (*) are not allowed (write the value out, or put text "
       "that begins with & or * in quotes)"},
      {Doc("Role", "A", "{allows: [lease.read]}"),
       "x.yaml:3: metadata.name: \"A\" is no name (use up to 128 of a-z, 0-9, '.' and '-', "
       "beginning with a letter or digit)"},
      {Doc("Role", "1", "{allows: [lease.read]}"),
       "x.yaml:3: metadata.name: must be text, but 1 reads as another type (put it in quotes)"},
  });
}

TEST(PolicyErrorsTest, TenantsAndPrincipals) {
  const std::string path =
      " (write department/team/project, such as acme/research/vision: up to three names of a-z, "
      "0-9 "
      "and '-', each beginning with a letter)";
  const std::string visible = " (leave out control and direction marks)";
  Check({
      {Doc("Tenant", "Acme", "{}"),
       "x.yaml:3: metadata.name: \"Acme\" is no tenant: names are of "
       "a-z, 0-9 and '-' only" +
           path},
      {Doc("Tenant", "/", "{}"),
       "x.yaml:3: metadata.name: \"/\" is no tenant: it stands for the "
       "whole cluster" +
           path},
      {Doc("Tenant", "acme/reserch/vision", "{}"),
       "x.yaml:3: metadata.name: the parent \"acme/reserch\" of \"acme/reserch/vision\" is not "
       "declared (did you mean \"acme/research\"?)"},
      {Doc("Tenant", "initech/sales", "{}"),
       "x.yaml:3: metadata.name: the parent \"initech\" of \"initech/sales\" is not declared (add "
       "a "
       "Tenant named initech)"},
      {Doc("Tenant", "acme", "{}"),
       "x.yaml:3: metadata.name: a second Tenant named \"acme\"; the "
       "first is at base.yaml:1 (rename or remove one of the two)"},
      {Doc("Tenant", "a", "{displayname: A}"),
       "x.yaml:4: spec.displayname: unknown field (did you mean \"displayName\"?)"},
      {Doc("Tenant", "a", "{displayName: 7}"),
       "x.yaml:4: spec.displayName: must be text, but 7 reads as another type (put it in quotes)"},
      {Doc("Tenant", "a", "{displayName: [A]}"),
       "x.yaml:4: spec.displayName: must be text, but is a list"},
      {Doc("Tenant", "a", "{displayName: \"a\\nb\"}"),
       "x.yaml:4: spec.displayName: must be one line of visible text" + visible},
      {Doc("Tenant", "a", "{displayName: \"a\\u202eb\"}"),
       "x.yaml:4: spec.displayName: must be one line of visible text" + visible},
      {Doc("Tenant", "a", "{displayName: " + std::string(129, 'a') + "}"),
       "x.yaml:4: spec.displayName: must have from 1 to 128 bytes"},
      {Doc("Principal", "Bob", "{kind: user}"),
       "x.yaml:3: metadata.name: \"Bob\" is no name of a principal (use up to 128 of a-z, 0-9 and "
       ". "
       "_ @ + -, beginning with a letter or digit, such as alice@acme.example)"},
      {Doc("Principal", "bob", "{kind: robot}"),
       "x.yaml:4: spec.kind: unknown kind of principal \"robot\" (write user for a person, service "
       "for a program)"},
      {Doc("Principal", "bob", "{}"), "x.yaml:4: spec.kind: missing (give a text)"},
      {Doc("Principal", "admin", "{kind: user}"),
       "x.yaml:3: metadata.name: a second Principal named \"admin\"; the first is at base.yaml:21 "
       "(rename or remove one of the two)"},
  });
}

TEST(PolicyErrorsTest, RolesAndBindings) {
  const std::string built_in =
      " (built in are admin, auditor, developer, operator, security, service; declare others as a "
      "Role)";
  Check({
      {Doc("Role", "r", "{allows: [lease.reqest]}"),
       "x.yaml:4: spec.allows: unknown action \"lease.reqest\" (did you mean \"lease.request\"?)"},
      {Doc("Role", "r", "{allows: [everything]}"),
       "x.yaml:4: spec.allows: unknown action \"everything\" (docs/permissions.md lists the "
       "actions)"},
      {Doc("Role", "r", "{allows: [lease.read, lease.read]}"),
       "x.yaml:4: spec.allows: the action \"lease.read\" is there twice (keep one of the two)"},
      {Doc("Role", "r", "{allows: []}"),
       "x.yaml:4: spec.allows: must have from 1 to 64 entries, but has 0"},
      {Doc("Role", "r", "{allows: lease.read}"),
       "x.yaml:4: spec.allows: must be a list, but is a single value (write [a, b], or a \"- \" "
       "line "
       "for each)"},
      {Doc("Role", "r", "{allow: [lease.read]}"),
       "x.yaml:4: spec.allow: unknown field (did you mean \"allows\"?)\n"
       "x.yaml:4: spec.allows: missing (give a list)"},
      {Doc("Role", "auditor", "{allows: [lease.end]}"),
       "x.yaml:3: metadata.name: the role \"auditor\" is built in and may not be redefined (choose "
       "another name)"},
      {Doc("Binding", "b", "{principal: alise@acme.example, role: developer, tenant: acme}"),
       "x.yaml:4: spec.principal: unknown principal \"alise@acme.example\" (did you mean "
       "\"alice@acme.example\"?)"},
      {Doc("Binding", "b", "{principal: nobody, role: developer, tenant: acme}"),
       "x.yaml:4: spec.principal: unknown principal \"nobody\" (declare it as a Principal)"},
      {Doc("Binding", "b", "{principal: admin, role: develper, tenant: acme}"),
       "x.yaml:4: spec.role: unknown role \"develper\" (did you mean \"developer\"?)"},
      {Doc("Binding", "b", "{principal: admin, role: wizard, tenant: acme}"),
       "x.yaml:4: spec.role: unknown role \"wizard\"" + built_in},
      {Doc("Binding", "b", "{principal: admin, role: developer, tenant: acme/reserch}"),
       "x.yaml:4: spec.tenant: unknown tenant \"acme/reserch\" (did you mean \"acme/research\"?)"},
      {Doc("Binding", "b", "{principal: admin, role: developer}"),
       "x.yaml:4: spec.tenant: missing (give a text)"},
      {Doc("Binding", "b", "{principal: admin, role: admin, tenant: /}"),
       "x.yaml:1: spec: admin is bound to admin at / already, at base.yaml:31 (remove one of the "
       "two)"},
      {Doc("Binding", "root", "{principal: admin, role: developer, tenant: /}"),
       "x.yaml:3: metadata.name: a second Binding named \"root\"; the first is at base.yaml:31 "
       "(rename or remove one of the two)"},
  });
}

TEST(PolicyErrorsTest, BoundariesAndQuotas) {
  const std::string apart = " (name two tenants of which neither contains the other)";
  const std::string boundary = Doc("Boundary", "b", "{between: [acme, globex], least: mig}");
  const std::string quota = Doc("Quota", "q", "{tenant: acme, gpus: 4}") + "---\n";
  Check({
      {boundary, ""},
      {quota + Doc("Quota", "r", "{tenant: acme/research, gpus: 4}"), ""},
      {Doc("Boundary", "b", "{between: [acme], least: mig}"),
       "x.yaml:4: spec.between: must have exactly 2 entries, but has 1"},
      {Doc("Boundary", "b", "{between: [acme, globx], least: mig}"),
       "x.yaml:4: spec.between: unknown tenant \"globx\" (did you mean \"globex\"?)"},
      {Doc("Boundary", "b", "{between: [acme, globex], least: MIG}"),
       "x.yaml:4: spec.least: unknown isolation class \"MIG\" (the classes are, strongest first: "
       "node, gpu, mig, time, mps)"},
      {Doc("Boundary", "b", "{between: [acme, globex], least: mps}"),
       "x.yaml:4: spec.least: mps keeps no memory private, so it is no boundary between two "
       "tenants "
       "(write time or stronger)"},
      {Doc("Boundary", "b", "{between: [acme, acme], least: mig}"),
       "x.yaml:4: spec.between: \"acme\" is there twice" + apart},
      {Doc("Boundary", "b", "{between: [acme/research, acme], least: mig}"),
       "x.yaml:4: spec.between: one of \"acme/research\" and \"acme\" contains the other" + apart},
      {boundary + "---\n" + Doc("Boundary", "c", "{between: [globex, acme], least: gpu}"),
       "x.yaml:6: spec.between: a second boundary between \"acme\" and \"globex\" contradicts the "
       "one at x.yaml:1, which says mig (keep one of the two)"},
      {boundary + "---\n" + Doc("Boundary", "c", "{between: [globex, acme], least: mig}"),
       "x.yaml:6: spec.between: a second boundary between \"acme\" and \"globex\"; the first is at "
       "x.yaml:1 (keep one of the two)"},
      {Doc("Quota", "q", "{tenant: acme, gpus: -1}"),
       "x.yaml:4: spec.gpus: must be a whole number from 0 to 1000000"},
      {Doc("Quota", "q", "{tenant: acme, gpus: \"4\"}"),
       "x.yaml:4: spec.gpus: must be a whole number from 0 to 1000000 (write it without quotes)"},
      {Doc("Quota", "q", "{tenant: acme, gpus: 4.5}"),
       "x.yaml:4: spec.gpus: must be a whole number from 0 to 1000000"},
      {Doc("Quota", "q", "{tenant: acme}"),
       "x.yaml:4: spec.gpus: missing (give a whole number from 0 to 1000000)"},
      {quota + Doc("Quota", "r", "{tenant: acme, gpus: 5}"),
       "x.yaml:9: spec.tenant: a second quota of \"acme\"; the first is at x.yaml:1 (keep one of "
       "the "
       "two)"},
      {quota + Doc("Quota", "r", "{tenant: acme/research, gpus: 5}"),
       "x.yaml:9: spec.gpus: 5 is more than the 4 of acme at x.yaml:1 (lower this quota or raise "
       "that one)"},
  });
}

TEST(PolicyErrorsTest, AFolderThatLocksEveryoneOutOrHoldsNothing) {
  const std::string locked =
      "policy folder: nobody holds the role admin at \"/\": everyone would be locked out (add a "
      "Binding with role: admin and tenant: /)";
  const std::string people =
      Doc("Tenant", "acme", "{}") + "---\n" + Doc("Principal", "a", "{kind: user}") + "---\n";
  const auto message = [](const std::string& text) {
    const auto policy = Policy::Parse({{"x.yaml", text}});
    return policy.has_value() ? "" : policy.error().message;
  };
  EXPECT_EQ(message(people), locked);
  EXPECT_EQ(message(people + Doc("Binding", "b", "{principal: a, role: admin, tenant: acme}")),
            locked);
  EXPECT_EQ(message(people + Doc("Binding", "b", "{principal: a, role: operator, tenant: /}")),
            locked);
  EXPECT_EQ(message(people + Doc("Binding", "b", "{principal: a, role: admin, tenant: /}")), "");
  const std::string empty =
      "policy folder: there is no document in it (put *.yaml files there; content/sample-policy "
      "shows how)";
  EXPECT_EQ(message(""), empty);
  EXPECT_EQ(message("# nothing\n---\n"), empty);
  EXPECT_EQ(Policy::Parse({}).error().message, empty);
}

TEST(PolicyErrorsTest, AllErrorsAtOnceSortedAndOneMistakeGivesOneLine) {
  auto files = Good();
  files["b.yaml"] = Doc("Tenant", "acme/ops", "{colour: red}") + "---\n" +
                    Doc("Binding", "b", "{principal: admin, role: develper, tenant: acme/ops}");
  files["a.yaml"] = Doc("Quota", "q", "{tenant: acme/opps, gpus: many}");
  EXPECT_EQ(
      Policy::Parse(files).error().message,
      "a.yaml:4: spec.gpus: must be a whole number from 0 to 1000000\n"
      "a.yaml:4: spec.tenant: unknown tenant \"acme/opps\" (did you mean \"acme/ops\"?)\n"
      "b.yaml:4: spec.colour: unknown field (the fields here are displayName, classification)\n"
      "b.yaml:9: spec.role: unknown role \"develper\" (did you mean \"developer\"?)");
  // Where one file is no YAML, what would refer into it is not reported too.
  files["base.yaml"] = "a: b: c\n";
  files.erase("a.yaml");
  EXPECT_EQ(
      Policy::Parse(files).error().message,
      "b.yaml:4: spec.colour: unknown field (the fields here are displayName, classification)\n"
      "base.yaml:1: not valid YAML: illegal map value (check indentation, colons and quotes at "
      "and above this line)");
}

TEST(PolicyErrorsTest, LimitsAndFloodsStayBounded) {
  std::string many;
  for (int i = 0; i < 20000; ++i) {
    many += "--- {kind: x" + std::to_string(i) + "}\n";
  }
  const std::string message = ErrorOf(many);
  EXPECT_LT(message.size(), 100'000U);
  EXPECT_TRUE(message.ends_with(" more")) << message.substr(message.size() - 40);
  auto files = Good();
  for (std::size_t i = 0; i < kPolicyFilesMax; ++i) {
    files["f" + std::to_string(i)] = "";
  }
  EXPECT_FALSE(Policy::Parse(files).has_value());
  files.erase("f0");
  EXPECT_TRUE(Policy::Parse(files).has_value());
  for (int i = 1; i < 10; ++i) {
    files["f" + std::to_string(i)] = "#" + std::string(1 << 20, ' ').substr(2) + "\n";
  }
  EXPECT_FALSE(Policy::Parse(files).has_value());
}

// Counts what a policy holds of the declared kinds.
std::size_t CountOf(const Policy& policy) {
  std::size_t declared = 0;
  for (const Role& role : policy.roles()) {
    declared += role.source.file.empty() ? 0 : 1;
  }
  return declared + policy.tenants().size() + policy.principals().size() +
         policy.bindings().size() + policy.boundaries().size() + policy.quotas().size();
}

std::size_t DocumentsIn(std::string_view text) {
  std::size_t count = 0;
  for (std::size_t at = text.find("kind: "); at != text.npos; at = text.find("kind: ", at + 1)) {
    count += at == 0 || text[at - 1] == '\n' ? 1 : 0;
  }
  return count;
}

TEST(PolicyErrorsTest, TheSampleCutAnywhereIsRefusedOrWholeDocuments) {
  const std::string folder = std::string(RINGFENCE_SOURCE_DIR) + "/content/sample-policy/";
  std::string sample;
  for (const char* name : {"tenants.yaml", "principals.yaml", "roles.yaml", "bindings.yaml",
                           "boundaries.yaml", "quotas.yaml"}) {
    sample += os::ReadText(folder + name, 1 << 20).value() + "---\n";
  }
  const auto whole = Policy::Parse({{"all.yaml", sample}});
  ASSERT_TRUE(whole.has_value()) << whole.error().message;
  EXPECT_EQ(CountOf(**whole), DocumentsIn(sample));
  std::size_t taken = 0;
  for (std::size_t cut = 0; cut < sample.size(); ++cut) {
    const std::string shorter = sample.substr(0, cut);
    const auto policy = Policy::Parse({{"all.yaml", shorter}});
    if (!policy.has_value()) {
      EXPECT_FALSE(policy.error().message.empty());
      continue;
    }
    ++taken;
    EXPECT_EQ(sample[cut - 1], '\n') << "cut at " << cut;
    EXPECT_EQ(CountOf(**policy), DocumentsIn(shorter)) << "cut at " << cut;
    EXPECT_NE((*policy)->digest(), (*whole)->digest());
  }
  EXPECT_GT(taken, 10U);  // cut between two bindings, boundaries or quotas
  EXPECT_LT(taken, sample.size() / 50);
}

}  // namespace
}  // namespace ringfence::policy
