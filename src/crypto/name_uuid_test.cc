// Goal: names give RFC 9562's UUIDs. Method: its own example, and another implementation's answers.

#include "crypto/name_uuid.h"

#include <gtest/gtest.h>

namespace ringfence::crypto {
namespace {

TEST(NameUuidTest, IsVersionFive) {
  Uuid dns = kUrlNamespace;
  dns[3] = 0x10;
  EXPECT_EQ(FormatUuid(NameUuid(dns, "www.example.com")), "2ed6657d-e927-568b-95e1-2665a8aea6a2");
  EXPECT_EQ(FormatUuid(kUrlNamespace), "6ba7b811-9dad-11d1-80b4-00c04fd430c8");
  EXPECT_EQ(FormatUuid(NameUuid(kUrlNamespace, "")), "1b4db7eb-4057-5ddf-91e0-36dec72071f5");
  EXPECT_NE(NameUuid(dns, "a"), NameUuid(kUrlNamespace, "a"));
}

}  // namespace
}  // namespace ringfence::crypto
