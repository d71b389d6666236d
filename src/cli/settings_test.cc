// Goal: each setting comes from where the order says, every wrong one is found with its place and
// its fix, and the token is never shown.
// Method: real files in a temporary folder, and whole command lines.

#include "cli/settings.h"

#include <gtest/gtest.h>

#include "cli/config.h"
#include "cli/context.h"
#include "cli/test_support.h"

namespace ringfence::cli {
namespace {

SettingsInput InputIn(const TestFolder& folder) {
  SettingsInput input;
  input.folder = folder.folder.path();
  input.search_top = folder.folder.path();
  input.system_file = folder.Path("etc/ringfence.yaml");
  return input;
}

TEST(SettingsTest, FlagsOverEnvironmentOverFileOverDefaults) {
  const TestFolder folder;
  SettingsInput input = InputIn(folder);
  const auto listen = [&] { return LoadSettings(input).settings.At(Setting::kServerListen); };
  EXPECT_EQ(listen().text, "127.0.0.1:8443");
  EXPECT_EQ(listen().source, "default");

  folder.Write("etc/ringfence.yaml", "server: {listen: 'a.example:1'}\n");
  EXPECT_EQ(listen().text, "a.example:1");
  EXPECT_EQ(listen().source, folder.Path("etc/ringfence.yaml") + ":1");

  folder.Write(".ringfence/ringfence.yaml", "# mine\nserver:\n  listen: b.example:2\n");
  EXPECT_EQ(listen().text, "b.example:2") << "the state folder's file is before the system's";
  EXPECT_EQ(listen().source, folder.Path(".ringfence/ringfence.yaml") + ":3");

  input.environment["RINGFENCE_CONFIG"] = folder.Write("c.yaml", "server: {listen: 'c:3'}\n");
  EXPECT_EQ(listen().text, "c:3");
  input.flags = {{"config", folder.Write("d.yaml", "server: {listen: 'd:4'}\n")}};
  EXPECT_EQ(listen().text, "d:4");
  input.environment["RINGFENCE_LISTEN"] = "e:5";
  EXPECT_EQ(listen().text, "e:5");
  EXPECT_EQ(listen().source, "environment RINGFENCE_LISTEN");
  input.flags.emplace_back("listen", "f:6");
  EXPECT_EQ(listen().text, "f:6");
  EXPECT_EQ(listen().source, "flag --listen");
  EXPECT_TRUE(LoadSettings(input).findings.empty());
}

TEST(SettingsTest, TheStateFolderIsLookedForUpwards) {
  const TestFolder folder;
  SettingsInput input = InputIn(folder);
  EXPECT_EQ(LoadSettings(input).settings.state(), folder.Path(".ringfence"));
  EXPECT_EQ(LoadSettings(input).settings.At(Setting::kState).origin, Origin::kDefault);
  ASSERT_TRUE(os::MakeDirs(folder.Path(".ringfence")).has_value());
  ASSERT_TRUE(os::MakeDirs(folder.Path("a/b/c")).has_value());
  input.folder = folder.Path("a/b/c");
  const LoadedSettings found = LoadSettings(input);
  EXPECT_EQ(found.settings.state(), folder.Path(".ringfence"));
  EXPECT_EQ(found.settings.At(Setting::kState).origin, Origin::kFound);
  EXPECT_EQ(found.settings.Text(Setting::kPolicyFolder), folder.Path(".ringfence/policy"));
  folder.Write("etc/ringfence.yaml", "state: /system\npolicy: {folder: /system/policy}\n");
  const LoadedSettings own = LoadSettings(input);
  EXPECT_EQ(own.settings.state(), folder.Path(".ringfence")) << "it is an instance of its own";
  EXPECT_EQ(own.settings.Text(Setting::kPolicyFolder), folder.Path(".ringfence/policy"));
  input.folder = folder.Path("etc");
  input.search_top = input.folder;
  EXPECT_EQ(LoadSettings(input).settings.state(), "/system");
  input.folder = folder.Path("a/b/c");
  input.environment["RINGFENCE_STATE"] = "elsewhere";
  EXPECT_EQ(LoadSettings(input).settings.state(), folder.Path("a/b/c/elsewhere"));
  input.flags = {{"state", "/x"}};
  EXPECT_EQ(LoadSettings(input).settings.state(), "/x");
}

TEST(SettingsTest, PathsInAFileAreRelativeToIt) {
  const TestFolder folder;
  SettingsInput input = InputIn(folder);
  folder.Write("etc/ringfence.yaml",
               "policy: {folder: pol}\nnode: {driver_root: auto}\nstate: ../var\n"
               "server: {names: [gpu.example, 10.0.0.7]}\n");
  const LoadedSettings loaded = LoadSettings(input);
  EXPECT_TRUE(loaded.findings.empty());
  EXPECT_EQ(loaded.settings.Text(Setting::kPolicyFolder), folder.Path("etc/pol"));
  EXPECT_EQ(loaded.settings.Text(Setting::kNodeDriverRoot), "auto") << "a word, not a path";
  EXPECT_EQ(loaded.settings.state(), folder.Path("etc/../var"));
  EXPECT_EQ(loaded.settings.Names(Setting::kServerNames),
            (std::vector<std::string>{"gpu.example", "10.0.0.7"}));
}

TEST(SettingsTest, EveryFindingHasItsLineItsKeyAndItsFix) {
  const TestFolder folder;
  const std::string file = folder.Write("bad.yaml",
                                        "server:\n"
                                        "  listne: 1.2.3.4:5\n"
                                        "  listen: nonsense\n"
                                        "  requests_per_second: many\n"
                                        "log: loud\n"
                                        "client:\n"
                                        "  token: rf_very-secret\n"
                                        "node:\n"
                                        "  name:\n"
                                        "output: tabel\n");
  const AppResult result =
      RunLine(folder.folder.path(), {"config", "check", "--config", "bad.yaml"});
  EXPECT_EQ(result.status, 1);
  for (const std::string& line :
       {std::string(":2: server.listne: unknown key\n  fix: did you mean `server.listen`?"),
        std::string(":3: server.listen: \"nonsense\" is no address and port\n  fix: write it as"),
        std::string(":4: server.requests_per_second: \"many\" is out of range"),
        std::string(":5: log: must be a map"),
        std::string(":7: client.token: a token does not belong in a file"),
        std::string(":9: node.name: has no value"),
        std::string(":10: output: \"tabel\" is none of table, json, yaml, csv\n  fix: did you mean "
                    "`table`?")}) {
    EXPECT_NE(result.out.find(file + line), std::string::npos) << line << " in\n" << result.out;
  }
  EXPECT_EQ(result.out.find("very-secret"), std::string::npos);

  const AppResult other = RunLine(folder.folder.path(), {"status", "--config", "bad.yaml"});
  EXPECT_EQ(other.status, 2) << "any other command refuses to guess";
  EXPECT_NE(other.err.find(":3: server.listen"), std::string::npos) << other.err;
}

TEST(SettingsTest, OtherThingsThatAreWrong) {
  const TestFolder folder;
  const auto check = [&](const std::string& yaml) {
    folder.Write("x.yaml", yaml);
    const AppResult result =
        RunLine(folder.folder.path(), {"config", "check", "--config", "x.yaml"});
    EXPECT_EQ(result.status, yaml.empty() ? 0 : 1) << yaml;
    return result.out;
  };
  EXPECT_NE(check("").find("is good"), std::string::npos);
  EXPECT_NE(check("a: b: c\n").find("x.yaml:1"), std::string::npos);
  EXPECT_NE(check("- a\n").find("not a map"), std::string::npos);
  EXPECT_NE(check("output: json\n---\noutput: yaml\n").find("second document"), std::string::npos);
  EXPECT_NE(check("server: {ca: {certificate: a.pem}}\n").find("set server.ca.key too"),
            std::string::npos);
  EXPECT_NE(check("server: {names: [\"a b;c\"]}\n").find("server.names"), std::string::npos);
  EXPECT_NE(RunLine(folder.folder.path(), {"config", "check", "--config", "none.yaml"})
                .out.find("there is no file"),
            std::string::npos);
  folder.Write(".ringfence/ringfence.yaml", "state: /elsewhere\n");
  EXPECT_NE(RunLine(folder.folder.path(), {"config", "check"}).out.find("cannot say where that is"),
            std::string::npos);
}

TEST(SettingsTest, ADatabaseIsAFileOrAUrlWithoutAPassword) {
  const TestFolder folder;
  SettingsInput input = InputIn(folder);
  const auto database = [&] { return LoadSettings(input).settings.Text(Setting::kServerDatabase); };
  input.environment["RINGFENCE_STATE"] = "/s";
  EXPECT_EQ(database(), "/s/server/ringfence.db");
  input.environment["RINGFENCE_DATABASE"] = "x.db";
  EXPECT_EQ(database(), folder.Path("x.db"));
  for (const char* url : {"postgresql://rf@db.example/rf?sslmode=verify-full", "postgres:///x"}) {
    input.environment["RINGFENCE_DATABASE"] = url;
    EXPECT_EQ(database(), url);
  }
  for (const char* url : {"postgresql://rf:very-secret@db.example/rf", "mysql://very-secret/",
                          "postgres:///x?user=rf&password=very-secret"}) {
    const AppResult shown =
        RunLine(folder.folder.path(), {"config", "check"}, {{"RINGFENCE_DATABASE", url}});
    EXPECT_EQ(shown.status, 1) << url;
    EXPECT_NE(shown.out.find("RINGFENCE_DATABASE"), std::string::npos) << shown.out;
    EXPECT_EQ((shown.out + shown.err).find("very-secret"), std::string::npos) << shown.out;
  }
}

TEST(SettingsTest, TheTokenIsNeverShown) {
  const TestFolder folder;
  for (const char* format : {"table", "json", "yaml"}) {
    const AppResult shown = RunLine(folder.folder.path(), {"config", "show", "-o", format},
                                    {{"RINGFENCE_TOKEN", "rf_very-secret"}});
    EXPECT_EQ(shown.status, 0);
    EXPECT_NE(shown.out.find("(set)"), std::string::npos) << format;
    EXPECT_EQ((shown.out + shown.err).find("very-secret"), std::string::npos) << format;
  }
}

TEST(SettingsTest, WhatInitWritesIsGoodAndHoldsEverySetting) {
  const TestFolder folder;
  EXPECT_EQ(RunLine(folder.folder.path(), {"config", "init"}).status, 0);
  const AppResult again = RunLine(folder.folder.path(), {"config", "init"});
  EXPECT_EQ(again.status, 6);
  EXPECT_NE(again.err.find("--force"), std::string::npos);
  EXPECT_EQ(RunLine(folder.folder.path(), {"config", "init", "--force"}).status, 0);
  EXPECT_EQ(RunLine(folder.folder.path(), {"config", "check"}).status, 0);

  // With the comment signs taken away from what has a value it is still good.
  std::string uncommented;
  std::istringstream lines(ConfigTemplate());
  for (std::string line; std::getline(lines, line);) {
    const bool setting = line.starts_with('#') && line.rfind('#') == 0 &&
                         (line[1] != ' ' || line.starts_with("#  "));
    const bool has_value = setting && !line.ends_with(':');
    const bool is_group = setting && (line == "#server:" || line == "#node:" || line == "#log:" ||
                                      line == "#policy:");
    if (has_value || is_group) {
      uncommented += line.substr(1) + "\n";
    }
  }
  folder.Write("u.yaml", uncommented);
  const AppResult check = RunLine(folder.folder.path(), {"config", "check", "--config", "u.yaml"});
  EXPECT_EQ(check.status, 0) << check.out << uncommented;
  EXPECT_NE(uncommented.find("  listen: 127.0.0.1:8443"), std::string::npos) << uncommented;
  for (const SettingSpec& spec : SettingTable()) {
    if (spec.kind != ValueKind::kSecret) {
      EXPECT_NE(ConfigTemplate().find(std::string(spec.environment)), std::string::npos);
    }
  }
}

Settings Loaded(const TestFolder& folder, std::map<std::string, std::string> environment) {
  SettingsInput input = InputIn(folder);
  input.environment = std::move(environment);
  return std::move(LoadSettings(input).settings);
}

TEST(ContextTest, NothingThereIsUnavailableWithWhatToDo) {
  const TestFolder folder;
  const AppResult result = RunLine(folder.folder.path(), {"status"});
  EXPECT_EQ(result.status, 5);
  EXPECT_NE(result.err.find("no Ringfence is running here"), std::string::npos);
  EXPECT_NE(result.err.find("ringfence up"), std::string::npos);
  EXPECT_NE(result.err.find("--server"), std::string::npos);
}

TEST(ContextTest, TheStateFoldersTokenGoesOnlyWhereItsCaVouches) {
  const TestFolder folder;
  Connection saved;
  saved.server = "127.0.0.1:1";
  saved.ca_pem = "CA-ONE";
  saved.token = SecretBytes(AsBytes("rf_one"));
  saved.log_vkey = "key";
  ASSERT_TRUE(os::MakeDirs(folder.Path(".ringfence/cli")).has_value());
  const std::string path = folder.Path(".ringfence/cli/context.json");
  ASSERT_TRUE(WriteContext(path, saved).has_value());
  const std::string other_ca = folder.Write("other.pem", "CA-TWO");

  const auto plain = Connect(Loaded(folder, {}));
  ASSERT_TRUE(plain.has_value());
  EXPECT_EQ(plain->server, "127.0.0.1:1");
  EXPECT_TRUE(plain->token.Equals(AsBytes("rf_one")));

  const auto other_server = Connect(Loaded(folder, {{"RINGFENCE_SERVER", "h:2"}}));
  ASSERT_TRUE(other_server.has_value());
  EXPECT_EQ(other_server->server, "h:2");
  EXPECT_EQ(other_server->ca_pem, "CA-ONE");

  const auto other =
      Connect(Loaded(folder, {{"RINGFENCE_SERVER", "h:2"}, {"RINGFENCE_CA", other_ca}}));
  ASSERT_FALSE(other.has_value()) << "another CA must not get this token";
  EXPECT_EQ(other.error().code, Code::kUnauthenticated);

  const auto own = Connect(Loaded(
      folder,
      {{"RINGFENCE_SERVER", "h:2"}, {"RINGFENCE_CA", other_ca}, {"RINGFENCE_TOKEN", "rf_two"}}));
  ASSERT_TRUE(own.has_value());
  EXPECT_TRUE(own->token.Equals(AsBytes("rf_two")));
  EXPECT_EQ(own->ca_pem, "CA-TWO");
}

TEST(ContextTest, ADamagedContextIsSaidSo) {
  const TestFolder folder;
  for (const char* text : {"", "{}", "[]", "{\"server\":1}", "\xff"}) {
    folder.Write(".ringfence/cli/context.json", text);
    const AppResult result = RunLine(folder.folder.path(), {"whoami"});
    EXPECT_EQ(result.status, 8) << text;
    EXPECT_NE(result.err.find("context.json"), std::string::npos) << result.err;
  }
}

}  // namespace
}  // namespace ringfence::cli
