// Goal: no box shares the host's network or processes but by a signed grant whose exception is in
// force, for the lease that the grant is for, and loses no other wall by it.
// Method: grants with exceptions on both sides of every edge; the configuration that comes of them.

#include "isolate/exception.h"

#include <gtest/gtest.h>

#include "isolate/box_config.h"
#include "isolate/grant.h"

namespace ringfence::isolate {
namespace {

class ExceptionTest : public ::testing::Test {
 protected:
  Grant MakeGrant() {
    Grant grant;
    grant.lease = "lease-1";
    grant.node = "n1";
    grant.tenant = "acme";
    grant.principal = "alice";
    grant.command = {"true"};
    grant.memory_bytes_max = std::uint64_t{256} << 20U;
    grant.cpu_millis_max = 1000;
    grant.pids_max = 64;
    grant.issued = now_;
    grant.start_before = now_ + std::chrono::minutes(2);
    grant.runtime_max = std::chrono::hours(1);
    grant.box.exception = GrantException{"debug", true, true, now_ - std::chrono::hours(1),
                                         now_ + std::chrono::hours(1)};
    return grant;
  }
  Result<std::optional<HostAccess>> Open(const Grant& grant, Milliseconds later = {}) {
    return HostAccess::Open(server_.public_key(), SealGrant(server_, grant), now_ + later);
  }
  static std::string NamespacesOf(const BoxSpec& spec) {
    std::string all;
    const Json config = BoxConfig(spec);
    for (const Json& one : config.at("linux").at("namespaces").as_array()) {
      all += std::string(one.at("type").as_string()) + " ";
    }
    return all;
  }

  crypto::SigningKey server_ = crypto::SigningKey::Generate();
  Timestamp now_ = ParseTime("2026-11-18T00:00:00Z").value();
};

TEST_F(ExceptionTest, OnlyInItsTime) {
  const Grant grant = MakeGrant();
  EXPECT_TRUE(Open(grant)->has_value());
  EXPECT_EQ(Open(grant, std::chrono::hours(1)).error().code, Code::kPermissionDenied);
  EXPECT_EQ(Open(grant, -std::chrono::hours(2)).error().code, Code::kPermissionDenied);
  Grant plain = grant;
  plain.box.exception.reset();
  EXPECT_FALSE(Open(plain)->has_value());
}

TEST_F(ExceptionTest, OnlySigned) {
  const auto stranger = crypto::SigningKey::Generate();
  EXPECT_FALSE(
      HostAccess::Open(server_.public_key(), SealGrant(stranger, MakeGrant()), now_).has_value());
}

TEST_F(ExceptionTest, GrantsThatSayTooMuchOrNothing) {
  Grant grant = MakeGrant();
  grant.box.exception->until = grant.box.exception->from + std::chrono::days(31);
  EXPECT_EQ(Open(grant).error().code, Code::kInvalidArgument);
  grant = MakeGrant();
  grant.box.exception->host_network = false;
  grant.box.exception->host_pid = false;  // as the server writes one that is gone
  EXPECT_EQ(Open(grant).error().code, Code::kInvalidArgument);
  grant = MakeGrant();
  grant.box.exception->name = "../x";
  EXPECT_EQ(Open(grant).error().code, Code::kInvalidArgument);
}

TEST_F(ExceptionTest, WhatItTakesAwayAndWhatStays) {
  BoxSpec spec;
  spec.grant = MakeGrant();
  const std::string all = NamespacesOf(spec);  // a grant without its token is worth nothing
  EXPECT_NE(all.find("network "), std::string::npos);
  EXPECT_NE(all.find("pid "), std::string::npos);
  spec.access = *Open(spec.grant);
  const std::string without = NamespacesOf(spec);
  EXPECT_EQ(without.find("network "), std::string::npos);
  EXPECT_EQ(without.find("pid "), std::string::npos);
  for (const char* stays : {"user ", "mount ", "ipc ", "uts ", "cgroup "}) {
    EXPECT_NE(without.find(stays), std::string::npos) << stays;
  }
  const Json config = BoxConfig(spec);
  EXPECT_TRUE(config.at("linux").as_object().contains("seccomp"));
  EXPECT_TRUE(config.at("linux").as_object().contains("maskedPaths"));
  EXPECT_TRUE(config.at("process").at("noNewPrivileges").as_bool());
  EXPECT_TRUE(config.at("process").at("capabilities").at("bounding").as_array().empty());
  EXPECT_FALSE(config.at("linux").at("resources").at("devices").at(0).at("allow").as_bool());
}

TEST_F(ExceptionTest, ATokenIsForItsLeaseOnly) {
  BoxSpec spec;
  spec.grant = MakeGrant();
  spec.access = *Open(spec.grant);
  spec.grant.lease = "lease-2";
  EXPECT_NE(NamespacesOf(spec).find("network "), std::string::npos);
  EXPECT_NE(NamespacesOf(spec).find("pid "), std::string::npos);
}

TEST_F(ExceptionTest, EachAlone) {
  BoxSpec spec;
  spec.grant = MakeGrant();
  spec.grant.box.exception->host_pid = false;
  spec.access = *Open(spec.grant);
  EXPECT_EQ(NamespacesOf(spec).find("network "), std::string::npos);
  EXPECT_NE(NamespacesOf(spec).find("pid "), std::string::npos);
}

}  // namespace
}  // namespace ringfence::isolate
