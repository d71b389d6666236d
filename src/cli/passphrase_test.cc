// Goal: a passphrase comes from where nobody else reads it, and what is too weak for something new
// is refused.
// Method: files with several modes and endings, an open descriptor, lengths around the limits.

#include "cli/passphrase.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "cli/test_support.h"

namespace ringfence::cli {
namespace {

Parsed With(const std::string& option, const std::string& value) {
  Parsed parsed;
  parsed.options = {{option, value}};
  return parsed;
}

std::string TextOf(const Result<SecretBytes>& passphrase) {
  return passphrase.has_value() ? ToText(passphrase->Reveal()) : "! " + passphrase.error().message;
}

TEST(PassphraseTest, FromAFileOfOnesOwn) {
  const TestFolder folder;
  for (const char* text : {"correct horse battery", "correct horse battery\n",
                           "correct horse battery\r\n", "correct horse battery\nsecond line\n"}) {
    const std::string path = folder.Write("pass", text);
    ASSERT_TRUE(os::ChangeMode(path, 0600).has_value());
    EXPECT_EQ(TextOf(Passphrase(With("passphrase-file", path), Asking::kTwice)),
              "correct horse battery");
  }
  for (const unsigned mode : {0640U, 0604U, 0620U, 0644U}) {
    const std::string path = folder.Write("pass", "correct horse battery");
    ASSERT_TRUE(os::ChangeMode(path, mode).has_value());
    const auto refused = Passphrase(With("passphrase-file", path), Asking::kOnce);
    ASSERT_FALSE(refused.has_value()) << mode;
    EXPECT_NE(refused.error().hint.find("chmod 600"), std::string::npos);
  }
  EXPECT_FALSE(Passphrase(With("passphrase-file", folder.Path("none")), Asking::kOnce).has_value());
}

TEST(PassphraseTest, FromADescriptor) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const os::UniqueFd read_end(ends[0]);
  {
    const os::UniqueFd write_end(ends[1]);
    ASSERT_TRUE(os::WriteAll(write_end.get(), AsBytes("through a pipe\n")).has_value());
  }
  EXPECT_EQ(
      TextOf(Passphrase(With("passphrase-fd", std::to_string(read_end.get())), Asking::kTwice)),
      "through a pipe");
  for (const char* wrong : {"", "x", "-1", "3x", "99999"}) {
    EXPECT_FALSE(Passphrase(With("passphrase-fd", wrong), Asking::kOnce).has_value()) << wrong;
  }
}

TEST(PassphraseTest, LimitsOfItsLength) {
  const TestFolder folder;
  const auto of = [&](std::size_t length, Asking asking) {
    const std::string path = folder.Write("pass", std::string(length, 'x'));
    EXPECT_TRUE(os::ChangeMode(path, 0600).has_value());
    return Passphrase(With("passphrase-file", path), asking).has_value();
  };
  EXPECT_FALSE(of(0, Asking::kOnce));
  EXPECT_TRUE(of(1, Asking::kOnce)) << "an old one may be what it is";
  EXPECT_FALSE(of(kPassphraseBytesLeast - 1, Asking::kTwice));
  EXPECT_TRUE(of(kPassphraseBytesLeast, Asking::kTwice));
  EXPECT_TRUE(of(kPassphraseBytesMax, Asking::kTwice));
  EXPECT_FALSE(of(kPassphraseBytesMax + 1, Asking::kOnce));
}

}  // namespace
}  // namespace ringfence::cli
