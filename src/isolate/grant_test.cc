// Goal: grants, receipts, incidents and join tokens survive a round trip, and nothing else opens.
// Method: seal, open, compare; damage every byte; break each limit in turn.

#include "isolate/grant.h"

#include <gtest/gtest.h>

#include <functional>

#include "base/encoding.h"
#include "crypto/dsse.h"
#include "crypto/random.h"
#include "isolate/incident.h"
#include "isolate/join_token.h"

namespace ringfence::isolate {
namespace {

Grant Sample() {
  Grant grant;
  grant.lease = "lease-1";
  grant.node = "node-1";
  grant.tenant = "acme/research/vision";
  grant.principal = "alice";
  grant.gpus = {"GPU-11111111-2222-3333-4444-555555555555"};
  grant.command = {"python3", "-c", "print('hello')"};
  grant.environment = {{"A", "1"}, {"B", ""}};
  grant.memory_bytes_max = std::uint64_t{4} << 30U;
  grant.cpu_millis_max = 1500;
  grant.pids_max = 512;
  grant.issued = ParseTime("2026-11-15T08:00:00Z").value();
  grant.start_before = ParseTime("2026-11-15T08:05:00Z").value();
  grant.runtime_max = std::chrono::hours(2);
  return grant;
}

class GrantTest : public ::testing::Test {
 protected:
  Result<Grant> Again(const Grant& grant) {
    return OpenGrant(key_.public_key(), SealGrant(key_, grant));
  }
  crypto::SigningKey key_ = crypto::SigningKey::Generate();
};

TEST_F(GrantTest, RoundTrip) {
  const Grant sample = Sample();
  const auto opened = Again(sample);
  ASSERT_TRUE(opened.has_value()) << opened.error().message;
  EXPECT_EQ(SealGrant(key_, *opened), SealGrant(key_, sample));
  EXPECT_EQ(opened->environment, sample.environment);
  EXPECT_EQ(opened->runtime_max, sample.runtime_max);
}

TEST_F(GrantTest, ImageMountsAndSizesAreSignedWithIt) {
  Grant sample = Sample();
  sample.box.image = "sha256:" + std::string(64, 'a');
  sample.box.mounts = {{"data", "/data", false}, {"scratch", "/mnt/out", true}};
  sample.box.shm_bytes_max = 1 << 20U;
  sample.box.tmp_bytes_max = 2 << 20U;
  sample.box.huge_bytes_max = 4 << 20U;
  const auto opened = Again(sample);
  ASSERT_TRUE(opened.has_value()) << opened.error().message;
  EXPECT_EQ(SealGrant(key_, *opened), SealGrant(key_, sample));
  EXPECT_EQ(opened->box.mounts[1].path, "/mnt/out");
  EXPECT_TRUE(opened->box.mounts[1].writable);
  const auto refused = [&](const std::function<void(GrantBox&)>& change) {
    Grant bad = sample;
    change(bad.box);
    return !Again(bad).has_value();
  };
  EXPECT_TRUE(refused([](GrantBox& box) { box.image = "acme/train:7"; }));
  EXPECT_TRUE(refused([](GrantBox& box) { box.mounts[0].name = "/etc"; }));
  EXPECT_TRUE(refused([](GrantBox& box) { box.mounts[0].path = "/proc/1"; }));
  EXPECT_TRUE(refused([](GrantBox& box) { box.mounts[0].path = "/data/../etc"; }));
  EXPECT_TRUE(refused([](GrantBox& box) { box.mounts[0].path = box.mounts[1].path; }));
  EXPECT_TRUE(refused([](GrantBox& box) { box.mounts.resize(17, box.mounts[0]); }));
  EXPECT_TRUE(refused([](GrantBox& box) { box.shm_bytes_max = std::uint64_t{5} << 40U; }));
}

TEST_F(GrantTest, AHeldLeaseHasGpusAndNoCommand) {
  Grant held = Sample();
  held.runtime = model::LeaseRuntime::kCdi;
  EXPECT_EQ(Again(held).error().field, "grant.runtime");
  held.command.clear();
  EXPECT_EQ(Again(held).error().field, "grant.runtime");
  held.environment.clear();
  const auto opened = Again(held);
  ASSERT_TRUE(opened.has_value()) << opened.error().message;
  EXPECT_EQ(opened->runtime, model::LeaseRuntime::kCdi);
  held.gpus.clear();
  EXPECT_EQ(Again(held).error().field, "grant.runtime");
  Grant box = Sample();
  box.command.clear();
  EXPECT_FALSE(Again(box).has_value());
  // A box's grant has the bytes that jailers from before there were held leases know.
  EXPECT_EQ(crypto::OpenEnvelope(key_.public_key(), kGrantType, SealGrant(key_, Sample()))
                .value()
                .find("\"runtime\""),
            std::string::npos);
}

TEST_F(GrantTest, AShareIsSignedWithItAndIsOfOneGpu) {
  Grant sample = Sample();
  sample.share = model::ShareRequest{model::IsolationClass::kTime, std::uint64_t{16} << 30U, 0};
  const auto opened = Again(sample);
  ASSERT_TRUE(opened.has_value()) << opened.error().message;
  EXPECT_EQ(opened->share, sample.share);
  Grant bad = sample;
  bad.gpus.emplace_back("GPU-11111111-2222-3333-4444-555555555556");
  EXPECT_FALSE(Again(bad).has_value());
  bad = sample;
  bad.share->isolation = model::IsolationClass::kGpu;
  EXPECT_FALSE(Again(bad).has_value());
  bad = sample;
  bad.share->memory_bytes = 0;
  EXPECT_FALSE(Again(bad).has_value());
}

TEST_F(GrantTest, AShareReceiptNamesWhoWasThere) {
  Receipt receipt;
  receipt.id = "receipt-1";
  receipt.node = "node-1";
  receipt.lease = "lease-1";
  receipt.share = ReceiptShare{"GPU-11111111-2222-3333-4444-555555555555", 2, {"lease-1", "l-2"}};
  const auto opened = OpenReceipt(key_.public_key(), SealReceipt(key_, receipt));
  ASSERT_TRUE(opened.has_value()) << opened.error().message;
  EXPECT_EQ(opened->format, kShareReceiptFormat);
  EXPECT_EQ(opened->share->neighbours, 2U);
  EXPECT_EQ(opened->share->leases, receipt.share->leases);
  receipt.share->gpu = "none";
  EXPECT_FALSE(OpenReceipt(key_.public_key(), SealReceipt(key_, receipt)).has_value());
}

TEST_F(GrantTest, EveryChangedByteIsRefused) {
  const std::string envelope = SealGrant(key_, Sample());
  for (std::size_t at = 0; at < envelope.size(); ++at) {
    for (const unsigned bit : {0U, 3U, 6U}) {
      std::string damaged = envelope;
      damaged[at] = static_cast<char>(static_cast<unsigned char>(damaged[at]) ^ (1U << bit));
      const auto opened = OpenGrant(key_.public_key(), damaged);
      // The key id is a hint that nobody reads; any other change must be noticed.
      const std::size_t hint = envelope.find("\"keyid\":\"") + 9;
      if (at < hint || at >= hint + 16) {
        EXPECT_FALSE(opened.has_value()) << at;
      }
    }
    EXPECT_FALSE(OpenGrant(key_.public_key(), envelope.substr(0, at)).has_value());
  }
}

TEST_F(GrantTest, EachLimitIsChecked) {
  const std::vector<std::pair<const char*, std::function<void(Grant&)>>> breaks = {
      {"lease", [](Grant& g) { g.lease = "../etc"; }},
      {"lease empty", [](Grant& g) { g.lease = ""; }},
      {"lease option", [](Grant& g) { g.lease = "-rf"; }},
      {"lease long", [](Grant& g) { g.lease = std::string(65, 'a'); }},
      {"node", [](Grant& g) { g.node = "a/b"; }},
      {"gpu", [](Grant& g) { g.gpus = {"0"}; }},
      {"gpu twice", [](Grant& g) { g.gpus.push_back(g.gpus[0]); }},
      {"command", [](Grant& g) { g.command = {}; }},
      {"command empty", [](Grant& g) { g.command = {""}; }},
      {"command zero", [](Grant& g) { g.command = {std::string("a\0b", 3)}; }},
      {"command long", [](Grant& g) { g.command = {"a", std::string(20000, 'x')}; }},
      {"variable", [](Grant& g) { g.environment = {{"A=B", ""}}; }},
      {"variable zero", [](Grant& g) { g.environment = {{"A", std::string(1, '\0')}}; }},
      {"memory", [](Grant& g) { g.memory_bytes_max = 1; }},
      {"cpu", [](Grant& g) { g.cpu_millis_max = 0; }},
      {"pids", [](Grant& g) { g.pids_max = 1; }},
      {"runtime", [](Grant& g) { g.runtime_max = Milliseconds(0); }},
      {"order", [](Grant& g) { g.start_before = g.issued - Milliseconds(1); }},
  };
  for (const auto& [name, breakage] : breaks) {
    Grant grant = Sample();
    breakage(grant);
    const auto opened = Again(grant);
    ASSERT_FALSE(opened.has_value()) << name;
    EXPECT_EQ(opened.error().code, Code::kInvalidArgument) << name;
  }
}

TEST_F(GrantTest, AReceiptIsNotAGrant) {
  Receipt receipt;
  receipt.id = "receipt-1";
  receipt.node = "node-1";
  receipt.gpus = {{"GPU-1", 100, 90, 5, 0, 12}};
  receipt.gpus[0].on_chip = {132, 131, 30, 20, 10, 9, 8, 7};
  receipt.gpus[0].passes = {{"count residue", 33}};
  receipt.kernels_digest = "sha256:01";
  receipt.pattern = "zeros";
  receipt.covered = {"memory"};
  receipt.simulated = true;
  receipt.not_covered = {"registers"};
  const std::string envelope = SealReceipt(key_, receipt);
  const auto opened = OpenReceipt(key_.public_key(), envelope);
  ASSERT_TRUE(opened.has_value()) << opened.error().message;
  EXPECT_EQ(CanonicalJson(ReceiptToJson(*opened)), CanonicalJson(ReceiptToJson(receipt)));
  EXPECT_EQ(OpenGrant(key_.public_key(), envelope).error().code, Code::kPermissionDenied);
  EXPECT_EQ(OpenReceipt(crypto::SigningKey::Generate().public_key(), envelope).error().code,
            Code::kPermissionDenied);
}

TEST_F(GrantTest, AReceiptOfTheFirstFormatStaysReadable) {
  const std::string payload =
      R"({"driver_version":"13.0","gpus":[{"duration_us":12,"memory_bytes":100,"mismatch_bytes":0,)"
      R"("reached_bytes":90,"residue_bytes":5,"uuid":"GPU-1"}],"id":"receipt-1",)"
      R"("kernel_driver":"x","lease":"","library_digest":"sha256:00","node":"node-1",)"
      R"("not_covered":["registers"],"simulated":true,"time":"2026-11-15T08:00:00.000Z","v":1})";
  const auto open = [&](const std::string& text) {
    return OpenReceipt(key_.public_key(), crypto::SignEnvelope(key_, kReceiptType, text));
  };
  const auto opened = open(payload);
  ASSERT_TRUE(opened.has_value()) << opened.error().message;
  EXPECT_EQ(opened->gpus[0].reached_bytes, 90U);
  EXPECT_EQ(CanonicalJson(ReceiptToJson(*opened)), payload);
  // Nothing of the second format is let into the first, and nothing of it may be missing.
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = payload;
    return text.replace(text.find(from), from.size(), to);
  };
  EXPECT_FALSE(open(with(R"("v":1)", R"("v":2)")).has_value());
  EXPECT_FALSE(open(with(R"("v":1)", R"("v":3)")).has_value());
  EXPECT_FALSE(open(with(R"("v":1)", R"("pattern":"","v":1)")).has_value());
}

TEST_F(GrantTest, IncidentRoundTrip) {
  const Incident incident{"node-1", Sample().issued, "out_of_turn", "List before Hello", 3};
  const auto opened = OpenIncident(key_.public_key(), SealIncident(key_, incident));
  ASSERT_TRUE(opened.has_value());
  EXPECT_EQ(opened->detail, incident.detail);
  EXPECT_EQ(opened->dropped, 3U);
}

TEST_F(GrantTest, JoinTokenRoundTripAndDamage) {
  JoinToken token{"node.example:8443", std::string(64, 'a'), key_.public_key(),
                  crypto::RandomSecret(32)};
  const std::string text = FormatJoinToken(token);
  const auto parsed = ParseJoinToken(" " + text + "\n");
  ASSERT_TRUE(parsed.has_value()) << parsed.error().message;
  EXPECT_EQ(FormatJoinToken(*parsed), text);
  for (std::size_t cut = 0; cut < text.size(); ++cut) {
    const auto shorter = ParseJoinToken(text.substr(0, cut));
    ASSERT_FALSE(shorter.has_value()) << cut;
    EXPECT_EQ(shorter.error().message.find(text.substr(20, 30)), std::string::npos);
  }
  EXPECT_FALSE(ParseJoinToken(text + "A").has_value());
  for (const char* several : {"a.example:1,b.example:65535", "127.0.0.1:8443,[::1]:8443"}) {
    token.server = several;
    EXPECT_TRUE(ParseJoinToken(FormatJoinToken(token)).has_value()) << several;
  }
  for (const char* bad : {"no-port", "a.example:1,", ",a.example:1", "a.example:1,b", "a:1;b:2"}) {
    token.server = bad;
    const auto refused = ParseJoinToken(FormatJoinToken(token));
    ASSERT_FALSE(refused.has_value()) << bad;
    EXPECT_NE(refused.error().message.find("HOST:PORT"), std::string::npos);
  }
}

TEST_F(GrantTest, TheHalvesDiffer) {
  const SecretBytes secret = crypto::RandomSecret(32);
  EXPECT_FALSE(JailerHalf(secret).Equals(AgentHalf(secret).Reveal()));
  EXPECT_EQ(JailerKeyProof(JailerHalf(secret), key_.public_key()).size(), 64U);
}

}  // namespace
}  // namespace ringfence::isolate
