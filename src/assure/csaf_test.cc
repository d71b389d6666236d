// Goal: CSAF 2.0 of any shape is read, damaged files are named and the rest go on.
// Method: NVIDIA's shape and the standard's, each cut and changed; a folder with bad files in it.

#include "assure/csaf.h"

#include <gtest/gtest.h>

#include "assure/advisory_inventory.h"
#include "os/file.h"

namespace ringfence::assure {
namespace {

std::string Read(const std::string& name) {
  return os::ReadText(RINGFENCE_SOURCE_DIR "/tests/" + name, kCsafBytesMax).value();
}

std::string Replaced(std::string text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(CsafTest, TheStandardShape) {
  const auto bulletin = ParseCsaf(Read("corpus/csaf_fuzz/standard.json"), "s");
  ASSERT_TRUE(bulletin.has_value()) << bulletin.error().message;
  ASSERT_EQ(bulletin->flaws.size(), 1U);
  const Flaw& flaw = bulletin->flaws[0];
  EXPECT_EQ(flaw.cve, "X-1");
  EXPECT_EQ(flaw.severity, "medium") << "by its score, as none is given";
  ASSERT_EQ(flaw.rows.size(), 3U);
  EXPECT_EQ(flaw.rows[0].product, "Widget");
  EXPECT_TRUE(flaw.rows[0].affected[0].understood);
  EXPECT_EQ(flaw.rows[0].fixes.size(), 1U);
  EXPECT_EQ(flaw.rows[1].platform.text, "Host");
  EXPECT_TRUE(flaw.rows[2].investigated);
}

TEST(CsafTest, WhatIsWrongIsNamed) {
  const std::string good = Read("vectors/bulletins/2030/9002.json");
  ASSERT_TRUE(ParseCsaf(good, "b.json").has_value());
  const std::pair<std::string, const char*> bad[] = {
      {good.substr(0, good.size() / 2), "b.json"},
      {Replaced(good, "\"csaf_version\": \"2.0\"", "\"csaf_version\": \"1.2\""), "csaf_version"},
      {Replaced(good, "\"csaf_version\": \"2.0\"", "\"csaf_versio\": \"2.0\""), "csaf_version"},
      {Replaced(good, "2030-06-01T", "soon"), "initial_release_date"},
      {Replaced(good, "\"id\": \"9002\"", "\"id\": 3"), "tracking.id"},
      {Replaced(good, "\"known_affected\": [\n     \"", "\"known_affected\": [\n     \"x"),
       "not in the product tree"},
      {Replaced(good, "\"product_status\": {", "\"product_statu\": {"), "no product_status"},
  };
  for (const auto& [text, part] : bad) {
    const auto bulletin = ParseCsaf(text, "b.json");
    ASSERT_FALSE(bulletin.has_value()) << part;
    EXPECT_NE(bulletin.error().message.find(part), std::string::npos) << bulletin.error().message;
    EXPECT_EQ(bulletin.error().message.rfind("b.json", 0), 0U) << bulletin.error().message;
  }
}

TEST(CsafTest, Platforms) {
  const Platform linux_guest = ReadPlatform("Linux(R535 vGPU 16)");
  EXPECT_EQ(linux_guest.families, static_cast<unsigned>(kLinux));
  EXPECT_EQ(linux_guest.branch, 535U);
  EXPECT_EQ(linux_guest.vgpu, 16U);
  const Platform old = ReadPlatform("Windows 7 and 8.x(R470)");
  EXPECT_EQ(old.releases, (std::vector<std::uint32_t>{7, 8}));
  EXPECT_TRUE(ReadPlatform("Red Hat Enterprise Linux KVM, VMware vSphere(R550 Gaming)").gaming);
  EXPECT_EQ(ReadPlatform("XenServer, VMware vSphere(vGPU 19)").vgpu, 19U);
  EXPECT_EQ(ReadPlatform("DGX A100").families, 0U);
  EXPECT_TRUE(ReadPlatform("Windows, Linux").releases.empty());
}

TEST(CsafTest, AFolderWithBadFiles) {
  const std::string folder = ::testing::TempDir() + "/csaf_folder";
  ASSERT_TRUE(os::RemoveTree(folder).has_value());
  ASSERT_TRUE(os::MakeDirs(folder + "/2030/9002").has_value());
  const auto write = [&folder](const std::string& name, const std::string& text) {
    ASSERT_TRUE(os::WriteFile(folder + "/" + name, AsBytes(text)).has_value());
  };
  const std::string good = Read("vectors/bulletins/2030/9002.json");
  write("2030/9002/9002.json", good);
  write("2030/9002/later.json", Replaced(Replaced(good, "2030-06-01T00:00:00Z\",\n   \"current",
                                                  "2030-06-01T00:00:00Z\",\n   \"current"),
                                         "\"current_release_date\": \"2030-06-01",
                                         "\"current_release_date\": \"2030-08-01"));
  write("2030/9002/CVE-2030-0010.json", "{\"dataType\": \"CVE_RECORD\"}");
  write("2030/9002/9002.json.sha256", "0");
  write("2030/cut.json", good.substr(0, 900));
  write("2030/twice.json", "{\"document\": {}, \"document\": {}}");
  const auto set = LoadBulletins(folder);
  ASSERT_TRUE(set.has_value());
  ASSERT_EQ(set->bulletins.size(), 1U);
  EXPECT_EQ(FormatTime(set->bulletins[0].current).substr(0, 10), "2030-08-01") << "the later one";
  EXPECT_EQ(set->passed_over, 1U);
  ASSERT_EQ(set->problems.size(), 2U);
  EXPECT_EQ(set->problems[0].rfind("2030/cut.json", 0), 0U) << set->problems[0];
  EXPECT_FALSE(LoadBulletins(folder + "/none").has_value());
}

TEST(AdvisoryInventoryTest, CsvAndJson) {
  const auto csv = ParseInventory(
      "# fleet\nnode,version,product,site\nn1,535.1.2,gpu-driver,x\r\n\"n,2\",1.2,\"a "
      "\"\"b\"\"\"\n",
      "f.csv");
  ASSERT_TRUE(csv.has_value()) << csv.error().message;
  ASSERT_EQ(csv->size(), 2U);
  EXPECT_EQ((*csv)[0].platform, "Linux");
  EXPECT_EQ((*csv)[1].node, "n,2");
  EXPECT_EQ((*csv)[1].product, "a \"b\"");
  const auto json = ParseInventory(
      R"({"nodes": [{"name": "n1", "components": [{"product": "dcgm", "version": "1.2"}]},
                    {"node": "n2", "product": "p", "platform": "Windows", "version": "3"}]})",
      "f.json");
  ASSERT_TRUE(json.has_value()) << json.error().message;
  ASSERT_EQ(json->size(), 2U);
  EXPECT_EQ((*json)[0].node, "n1");
  EXPECT_EQ((*json)[1].platform, "Windows");
}

TEST(AdvisoryInventoryTest, WhatIsWrongIsNamed) {
  const std::pair<const char*, const char*> bad[] = {
      {"node,product\nx,y\n", "f:1"},
      {"node,product,version\nx,y,1\nx,,1\n", "f:3"},
      {"node,product,version\n\"x,y,1\n", "f:2"},
      {"[{\"node\": \"x\"}]", "entry 1"},
      {"{\"node\": []}", "nodes"},
      {"[1]", "entry 1"},
      {"[", "f"},
  };
  for (const auto& [text, part] : bad) {
    const auto items = ParseInventory(text, "f");
    ASSERT_FALSE(items.has_value()) << text;
    EXPECT_NE(items.error().message.find(part), std::string::npos) << items.error().message;
  }
}

}  // namespace
}  // namespace ringfence::assure
