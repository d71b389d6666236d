// Goal: tables line up whatever is in them, and nothing from elsewhere can drive the terminal;
// sizes, counts and times read back as people write them.
// Method: exact texts, and every control character.

#include "cli/console.h"

#include <gtest/gtest.h>

#include "cli/human.h"
#include "cli/test_support.h"
#include "cli/text.h"

namespace ringfence::cli {
namespace {

TEST(TextTest, NothingThatDrivesATerminalGetsThrough) {
  for (int c = 0; c < 256; ++c) {
    const std::string safe = Safe(std::string(1, static_cast<char>(c)));
    for (const char out : safe) {
      EXPECT_GE(static_cast<unsigned char>(out), 0x20) << c;
      EXPECT_LT(static_cast<unsigned char>(out), 0x7f) << c;
    }
  }
  EXPECT_EQ(Safe("a\x1b[31mb"), "a\\x1b[31mb");
  EXPECT_EQ(Safe("line\nbreak\ttab"), "line\\nbreak\\ttab");
  EXPECT_EQ(SafeLines("line\nbreak\rx"), "line\nbreak\\x0dx");
  EXPECT_EQ(Safe("\xc2\x9b"
                 "31m"),
            "\\x9b31m")
      << "C1 control in UTF-8";
  EXPECT_EQ(Safe("\xe2\x80\xae"
                 "evil"),
            "\\u202eevil")
      << "right-to-left override";
  EXPECT_EQ(Safe("\xf3\xa0\x81\x81"), "\\ue0041") << "invisible tag";
  EXPECT_EQ(Safe("\xc0\xaf"), "\\xc0\\xaf") << "overlong";
  EXPECT_EQ(Safe("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "surrogate";
  EXPECT_EQ(Safe("\xe6\x97"), "\\xe6\\x97") << "cut short";
  EXPECT_EQ(Safe("grün 日本 ✓"), "grün 日本 ✓");
}

TEST(TextTest, ColumnsAsATerminalCountsThem) {
  EXPECT_EQ(Columns("abc"), 3U);
  EXPECT_EQ(Columns("grün"), 4U);
  EXPECT_EQ(Columns("日本"), 4U);
  EXPECT_EQ(Columns("e\xcc\x81"), 1U) << "a combining accent takes none";
}

TEST(TableTest, LinesUpWithWideAndUnsafeCells) {
  TestConsole test;
  Table table({"NAME", "STATE", "NOTE"});
  table.Add({"日本", "ready", "x\x1b[2J"});
  table.Add({"plain-name", "", "last"});
  table.Print(test.console);
  EXPECT_EQ(test.out.str(),
            "NAME        STATE  NOTE\n"
            "日本        ready  x\\x1b[2J\n"
            "plain-name  -      last\n");
}

TEST(TableTest, BoldOnlyWhereThereAreColours) {
  TestConsole coloured({.colour_out = true});
  Table table({"A", "B"});
  table.Add({"xx", "y"});
  table.Print(coloured.console);
  EXPECT_EQ(coloured.out.str(), "\x1b[1mA\x1b[0m   \x1b[1mB\x1b[0m\nxx  y\n");
}

TEST(ConsoleTest, AnErrorFromAServerCannotDriveTheTerminal) {
  TestConsole test;
  test.console.Failure({Code::kPermissionDenied, "no\x1b]0;title\x07", "ask\x1b[1m", ""});
  EXPECT_EQ(test.err.str(), "ringfence: denied: no\\x1b]0;title\\x07\n  hint: ask\\x1b[1m\n");
}

TEST(ConsoleTest, QuietAndProgress) {
  TestConsole quiet({.quiet = true, .progress = true});
  quiet.console.Note("a");
  quiet.console.Warn("b");
  quiet.console.Progress("c");
  EXPECT_EQ(quiet.err.str(), "");
  TestConsole plain;
  plain.console.Progress("c");
  EXPECT_EQ(plain.err.str(), "");
  TestConsole watched({.progress = true});
  watched.console.Progress("c");
  EXPECT_EQ(watched.err.str(), "c\n");
}

TEST(HumanTest, Sizes) {
  EXPECT_EQ(ParseSize("4G").value(), std::uint64_t{4} << 30U);
  EXPECT_EQ(ParseSize("512M").value(), std::uint64_t{512} << 20U);
  EXPECT_EQ(ParseSize("512m").value(), std::uint64_t{512} << 20U);
  EXPECT_EQ(ParseSize("1.5GiB").value(), std::uint64_t{3} << 29U);
  EXPECT_EQ(ParseSize("2TB").value(), std::uint64_t{2} << 40U);
  EXPECT_EQ(ParseSize("65536").value(), 65536U);
  EXPECT_EQ(ParseSize("17B").value(), 17U);
  for (const char* wrong : {"", "G", "4X", "4GG", "4 G", "-1", "1.5", "1.", ".5G", "1.2345G",
                            "99999999999999999999", "999999999999999T", "4iB", "0x10", "4G\n"}) {
    EXPECT_FALSE(ParseSize(wrong).has_value()) << wrong;
  }
  EXPECT_EQ(FormatSize(0), "0 B");
  EXPECT_EQ(FormatSize(1023), "1023 B");
  EXPECT_EQ(FormatSize(std::uint64_t{64} << 20U), "64 MiB");
  EXPECT_EQ(FormatSize(1258291), "1.2 MiB");
  EXPECT_EQ(FormatSize(std::uint64_t{141} << 30U), "141 GiB");
  EXPECT_EQ(FormatSize(~std::uint64_t{0}), "15 EiB");
}

TEST(HumanTest, CoresAndCounts) {
  EXPECT_EQ(ParseCpus("1.5").value(), 1500U);
  EXPECT_EQ(ParseCpus("0.25").value(), 250U);
  EXPECT_EQ(ParseCpus("16").value(), 16000U);
  for (const char* wrong : {"", "0", "-1", "1.5x", "1025", "1,5", "nan"}) {
    EXPECT_FALSE(ParseCpus(wrong).has_value()) << wrong;
  }
  EXPECT_EQ(ParseCount("7", 0, 8).value(), 7);
  for (const char* wrong : {"", "9", "-1", "7x", " 7", "99999999999999999999"}) {
    EXPECT_FALSE(ParseCount(wrong, 0, 8).has_value()) << wrong;
  }
}

TEST(HumanTest, TimesRelativeToNow) {
  const Timestamp now = ParseTime("2026-11-15T12:00:00Z").value();
  EXPECT_EQ(RelativeTime("2026-11-15T11:57:00.500Z", now), "2m ago");
  EXPECT_EQ(RelativeTime("2026-11-15T11:59:30Z", now), "30s ago");
  EXPECT_EQ(RelativeTime("2026-11-15T11:59:59Z", now), "just now");
  EXPECT_EQ(RelativeTime("2026-11-15T09:00:00Z", now), "3h ago");
  EXPECT_EQ(RelativeTime("2026-11-10T12:00:00Z", now), "5d ago");
  EXPECT_EQ(RelativeTime("2026-11-15T14:30:00Z", now), "in 2h");
  EXPECT_EQ(RelativeTime("", now), "");
  EXPECT_EQ(RelativeTime("yesterday", now), "yesterday");
}

}  // namespace
}  // namespace ringfence::cli
