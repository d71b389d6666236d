// Goal: the format does not change by accident, and docs/formats/audit-log.md tells the truth.
// Method: make the page's worked example and look for each of its bytes on the page.

#include <gtest/gtest.h>

#include "audit/audit_test_util.h"
#include "audit/log_writer.h"
#include "audit/note.h"
#include "base/encoding.h"

namespace ringfence::audit {
namespace {

TEST(FormatTest, TheWorkedExampleOnThePageIsWhatIsWritten) {
  const std::string page =
      testing::Slurp(std::string(RINGFENCE_SOURCE_DIR) + "/docs/formats/audit-log.md");
  ASSERT_FALSE(page.empty());
  const auto on_page = [&](const std::string& text) {
    return page.find(text) != std::string::npos;
  };
  const testing::TempFolder folder;
  const crypto::SigningKey key = testing::KeyOf(1);
  const crypto::SigningKey witness = testing::KeyOf(2);
  const std::string origin = "ringfence.example/log";
  const auto writer = LogWriter::Open(folder.path(), origin, key).value();
  const TreeHead head = writer->Append(testing::Samples(0, 3)).value();
  ASSERT_TRUE(writer
                  ->AddCosignature(Cosign(writer->checkpoint(), "w.example/1", witness,
                                          Timestamp(std::chrono::seconds(1700000000))))
                  .has_value());
  testing::Files files = testing::FilesOf(folder.path());
  EXPECT_EQ(files.size(), 3U);
  EXPECT_TRUE(on_page("```\n" + files["checkpoint"] + "```")) << files["checkpoint"];
  EXPECT_TRUE(on_page("```\n" + Hex(AsBytes(files["tile/entries/000.p/3"])) + "\n```"));
  const std::string tile = Hex(AsBytes(files["tile/0/000.p/3"]));
  EXPECT_TRUE(on_page("```\n" + tile.substr(0, 64) + "\n" + tile.substr(64, 64) + "\n" +
                      tile.substr(128) + "\n```"));
  EXPECT_TRUE(on_page("`" + Hex(head.root) + "`"));
  EXPECT_TRUE(on_page("`" + VerifierKey(origin, 1, key.public_key()) + "`"));
  EXPECT_TRUE(on_page("`" + VerifierKey("w.example/1", 4, witness.public_key()) + "`"));
}

}  // namespace
}  // namespace ringfence::audit
