// Goal: mig-parted's own file is read whole, every layout checked against the boards it is for; a
// file with faults is refused with every line of them.
// Method: the file that mig-parted ships (tests/vectors/mig); broken copies of small ones.

#include "place/mig_parted.h"

#include <gtest/gtest.h>

#include <set>

#include "os/file.h"

namespace ringfence::place {
namespace {

MigPartedFile Shipped() {
  const auto text =
      os::ReadText(RINGFENCE_SOURCE_DIR "/tests/vectors/mig/config-default.yaml", 1 << 20);
  EXPECT_TRUE(text.has_value());
  const auto parted = ParseMigParted(*text, "config-default.yaml");
  EXPECT_TRUE(parted.has_value()) << (parted.has_value() ? "" : parted.error().message);
  return *parted;
}

std::string ErrorOf(const std::string& text) {
  const auto parted = ParseMigParted(text, "f.yaml");
  return parted.has_value() ? "read" : parted.error().message;
}

TEST(MigParted, ShippedFileIsPossibleOnEveryBoardItNames) {
  const MigPartedFile parted = Shipped();
  EXPECT_EQ(parted.configs.size(), 81U);
  std::size_t possible = 0;
  std::set<std::string> unknown;
  for (const MigConfig& config : parted.configs) {
    for (const MigVerdict& verdict : CheckMigConfig(config)) {
      EXPECT_NE(verdict.kind, MigVerdict::Kind::kImpossible)
          << config.name << " line " << verdict.line << ": " << verdict.reason;
      possible += verdict.kind == MigVerdict::Kind::kPossible ? 1 : 0;
      if (verdict.kind == MigVerdict::Kind::kUnknownBoard) {
        unknown.insert(config.name);
      }
    }
  }
  EXPECT_GT(possible, 80U);
  // RTX PRO 6000 Blackwell, with graphics, and parts whose smaller profiles the file does not name.
  EXPECT_EQ(unknown, (std::set<std::string>{"all-1g.24gb-me", "all-1g.24gb.gfx", "all-1g.24gb.me",
                                            "all-1g.24gb.me.all", "all-2g.48gb", "all-2g.48gb-me",
                                            "all-2g.48gb.gfx", "all-2g.48gb.me.all", "all-3g.95gb",
                                            "all-4g.95gb", "all-4g.96gb", "all-4g.96gb.gfx",
                                            "all-7g.189gb", "all-balanced"}));
}

TEST(MigParted, BoardsGetTheirEntry) {
  const MigPartedFile parted = Shipped();
  const gpu::MigBoard& h200 = **gpu::FindMigBoard("H200-141");
  const auto balanced = WishesFor(**parted.Find("all-balanced"), h200, parted.file);
  ASSERT_TRUE(balanced.has_value());
  EXPECT_EQ(gpu::FormatMigLayout(*balanced), "1g.18gb x2, 2g.35gb, 3g.71gb");
  EXPECT_EQ(WishesFor(**parted.Find("all-disabled"), h200, parted.file).error().message,
            "config-default.yaml:4: layout all-disabled turns MIG off");
  EXPECT_TRUE(WishesFor(**parted.Find("all-enabled"), h200, parted.file)->empty());
  const gpu::MigBoard& a30 = **gpu::FindMigBoard("A30-24");
  EXPECT_EQ(WishesFor(**parted.Find("all-1g.10gb"), a30, parted.file).error().code,
            Code::kInvalidArgument);
  EXPECT_NE(parted.Find("all-balancd").error().message.find("did you mean all-balanced?"),
            std::string::npos);
}

TEST(MigParted, FaultsAreNamedByLine) {
  const std::string head = "version: v1\nmig-configs:\n  a:\n";
  EXPECT_EQ(ErrorOf(head + "    - devices: all\n      mig-enabled: true\n      mig-devices: {}\n"),
            "read");
  EXPECT_EQ(ErrorOf(head + "    - devices: [0, 2]\n      mig-enabled: false\n"), "read");
  const std::string faults = ErrorOf(head +
                                     "    - devices: some\n      mig-enabled: yes\n"
                                     "      mig-devices: {\"1g.18gb\": many}\n      colour: red\n");
  EXPECT_NE(faults.find("f.yaml:4: mig-configs.a[0].devices: must be all"), faults.npos) << faults;
  EXPECT_NE(faults.find("f.yaml:5: mig-configs.a[0].mig-enabled: must be true or false"),
            faults.npos)
      << faults;
  EXPECT_NE(faults.find("f.yaml:6: mig-configs.a[0].mig-devices.1g.18gb: must be a whole number"),
            faults.npos)
      << faults;
  EXPECT_NE(faults.find("colour"), faults.npos) << faults;
  EXPECT_NE(ErrorOf("version: v2\nmig-configs: {}\n").find("\"v2\" is not known"),
            std::string::npos);
  EXPECT_NE(ErrorOf("version: v1\n").find("mig-configs"), std::string::npos);
  EXPECT_NE(ErrorOf("").find("one YAML document"), std::string::npos);
  EXPECT_NE(ErrorOf(head + "    - device-filter: [\"H200\"]\n      devices: all\n"
                           "      mig-enabled: false\n")
                .find("is no device and vendor such as 0x233510DE"),
            std::string::npos);
}

}  // namespace
}  // namespace ringfence::place
