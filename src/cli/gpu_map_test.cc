// Goal: every GPU is drawn once with the mark of its state, tenants can be told apart without
// colours, colours come only where the terminal has them, and no name drives the terminal.
// Method: exact pictures of a small fleet.

#include "cli/gpu_map.h"

#include <gtest/gtest.h>

#include "cli/test_support.h"

namespace ringfence::cli {
namespace {

Json GpuOf(const char* node, int index, const char* state, const char* tenant = "",
           const char* reason = "") {
  return JsonObject{{"uuid", std::string("GPU-") + node + std::to_string(index)},
                    {"node", node},
                    {"index", index},
                    {"model", "H100"},
                    {"state", state},
                    {"tenant", tenant},
                    {"lease", tenant[0] == 0 ? "" : "lease-1"},
                    {"reason", reason}};
}

Json NodeOf(const char* name, const char* state, const char* proof) {
  return JsonObject{{"name", name},
                    {"state", state},
                    {"proof", proof},
                    {"proof_time", "2026-11-16T10:00:00.000Z"},
                    {"simulated", false}};
}

const Timestamp kNow = ParseTime("2026-11-16T12:00:00Z").value();

TEST(GpuMapTest, EveryStateHasItsMarkAndEveryTenantItsLetter) {
  const JsonArray nodes = {NodeOf("n1", "ready", "held"),
                           NodeOf("n2", "silent", "could not be tried")};
  const JsonArray gpus = {GpuOf("n1", 0, "leased", "globex"),
                          GpuOf("n1", 1, "free"),
                          GpuOf("n1", 2, "leased", "acme/a"),
                          GpuOf("n1", 3, "leased", "acme/a", "to be scrubbed"),
                          GpuOf("n1", 4, "leased"),
                          GpuOf("n2", 0, "dirty"),
                          GpuOf("n2", 1, "quarantined", "acme/a", "residue"),
                          GpuOf("n2", 2, "lost")};
  TestConsole test;
  DrawMap(test.console, MapOf(nodes, gpus), kNow);
  EXPECT_EQ(test.out.str(),
            "n1  ready  proven 2h ago  5 x H100\n"
            "  [BBBB] [....] [AAAA] [~~~~] [****]\n"
            "n2  silent  ? unproven  3 x H100\n"
            "  [~~~~] [!!!!] [xxxx]\n"
            "\n"
            "[****]  a tenant that you may not see: 1 GPU\n"
            "[AAAA]  acme/a: 1 GPU\n"
            "[BBBB]  globex: 1 GPU\n"
            "[....]  free and clean: 1 GPU\n"
            "[~~~~]  being scrubbed, or waiting for it: 2 GPUs\n"
            "[!!!!]  quarantined: `ringfence gpu list` says why: 1 GPU\n"
            "[xxxx]  lost: its node no longer reports it: 1 GPU\n");
}

TEST(GpuMapTest, ColoursOnlyOnATerminalAndNamesMadeSafe) {
  const JsonArray nodes = {NodeOf("n\x1b[2J", "ready", "leaked")};
  const JsonArray gpus = {GpuOf("n\x1b[2J", 0, "leased", "acme")};
  TestConsole plain;
  DrawMap(plain.console, MapOf(nodes, gpus), kNow);
  EXPECT_EQ(plain.out.str().find('\x1b'), std::string::npos);
  EXPECT_NE(plain.out.str().find("LEAKED"), std::string::npos);
  std::ostringstream out;
  std::ostringstream err;
  ConsoleOptions options;
  options.colour_out = true;
  Console colour(out, err, options);
  DrawMap(colour, MapOf(nodes, gpus), kNow);
  EXPECT_NE(out.str().find("\x1b[30;42mAAAA\x1b[0m"), std::string::npos);
  EXPECT_EQ(out.str().find("\x1b[2J"), std::string::npos);
}

TEST(GpuMapTest, MoreTenantsThanLettersAndMoreGpusThanALine) {
  JsonArray gpus;
  for (int i = 0; i < 60; ++i) {
    gpus.push_back(GpuOf("n1", i, "leased", ("t" + std::to_string(100 + i)).c_str()));
  }
  const JsonObject map = MapOf({NodeOf("n1", "ready", "held")}, gpus);
  EXPECT_EQ(map.at("tenants").get_array().size(), 60U);
  EXPECT_EQ(map.at("tenants").get_array()[51].at("letter"), "z");
  EXPECT_EQ(map.at("tenants").get_array()[52].at("letter"), "*");
  TestConsole test;
  DrawMap(test.console, map, kNow);
  const std::string text = test.out.str();
  EXPECT_EQ(std::count(text.begin(), text.begin() + static_cast<long>(text.find("\n\n")), '\n'), 8);
}

}  // namespace
}  // namespace ringfence::cli
