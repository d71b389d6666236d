// Goal: `audit verify` says that a good log is good, names what is wrong with a damaged one, and
// does so on a folder, on a copy that it fetches itself, and on one proof.
// Method: logs made by the real writer, damaged, taken back, served by a real HTTPS server.

#include <gtest/gtest.h>

#include "audit/log.h"
#include "audit/note.h"
#include "audit/verify.h"
#include "base/encoding.h"
#include "cli/test_support.h"
#include "crypto/ed25519.h"

namespace ringfence::cli {
namespace {

constexpr std::string_view kOrigin = "ringfence.local/test";

class AuditVerifyTest : public testing::Test {
 protected:
  AuditVerifyTest() {
    writer_ = audit::LogWriter::Open(log_, std::string(kOrigin), key_).value();
    Grow(300);
    vkey_ = audit::VerifierKey(kOrigin, 1, key_.public_key());
    vkey_file_ = folder_.Write("log.vkey", vkey_ + "\n");
  }

  void Grow(int count) {
    std::vector<Bytes> entries;
    for (int i = 0; i < count; ++i) {
      entries.push_back(ToBytes(CanonicalJson(JsonObject{{"n", grown_++}})));
    }
    ASSERT_TRUE(writer_->Append(entries).has_value());
  }
  AppResult Verify(std::vector<std::string> more = {}) {
    std::vector<std::string> words = {"audit", "verify", "--log", log_, "--key", vkey_file_};
    words.insert(words.end(), more.begin(), more.end());
    return RunLine(folder_.folder.path(), words);
  }

  TestFolder folder_;
  std::string log_ = folder_.Path("state/server/log");
  crypto::SigningKey key_ = crypto::SigningKey::Generate();
  std::unique_ptr<audit::LogWriter> writer_;
  std::int64_t grown_ = 0;
  std::string vkey_;
  std::string vkey_file_;
};

TEST_F(AuditVerifyTest, AGoodLogIsGood) {
  const AppResult result = Verify();
  EXPECT_EQ(result.status, 0) << result.out << result.err;
  EXPECT_NE(result.out.find("is what was signed"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("300 entries, 300 read"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find(std::string(kOrigin)), std::string::npos);
  const AppResult json = Verify({"-o", "json"});
  EXPECT_TRUE(ParseJson(json.out, 1 << 20).value().at("ok").as_bool());
  const AppResult by_text =
      RunLine(folder_.folder.path(), {"audit", "verify", "--log", log_, "--key", vkey_});
  EXPECT_EQ(by_text.status, 0) << "the key itself instead of a file";
}

TEST_F(AuditVerifyTest, ADamagedLogIsAFindingAndTheEntryIsNamed) {
  const std::string tile = log_ + "/tile/entries/000";
  Bytes bytes = os::ReadFile(tile, 1 << 20).value();
  bytes[2] ^= std::byte{1};  // in entry 0
  ASSERT_TRUE(os::WriteFile(tile, bytes).has_value());
  const AppResult result = Verify();
  EXPECT_EQ(result.status, 1);
  EXPECT_NE(result.out.find("is NOT what was signed"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("entry 0"), std::string::npos) << result.out;
}

TEST_F(AuditVerifyTest, ALogThatWasTakenBackIsCaughtByAnEarlierCheckpoint) {
  Grow(10);
  const std::string later = folder_.Write("later", writer_->checkpoint());
  EXPECT_EQ(Verify({"--checkpoint", later}).status, 0);
  writer_.reset();
  ASSERT_TRUE(os::RemoveTree(log_).has_value());
  writer_ = audit::LogWriter::Open(log_, std::string(kOrigin), key_).value();
  Grow(300);
  const AppResult result = Verify({"--checkpoint", later});
  EXPECT_EQ(result.status, 1) << result.out;
}

TEST_F(AuditVerifyTest, AnotherKeyIsAFindingAndNonsenseIsUsage) {
  const std::string other =
      audit::VerifierKey(kOrigin, 1, crypto::SigningKey::Generate().public_key());
  EXPECT_EQ(
      RunLine(folder_.folder.path(), {"audit", "verify", "--log", log_, "--key", other}).status, 1);
  EXPECT_EQ(
      RunLine(folder_.folder.path(), {"audit", "verify", "--log", log_, "--key", "zzz"}).status, 2);
  EXPECT_NE(RunLine(folder_.folder.path(),
                    {"audit", "verify", "--log", folder_.Path("none"), "--key", vkey_})
                .status,
            0);
}

TEST_F(AuditVerifyTest, WithoutAReadableLogItIsCopiedFromTheServer) {
  FakeServer server([this](const net::Request& request, const net::Responder& responder) {
    constexpr std::string_view kBefore = "/v1/audit/log/";
    const auto bytes = request.path.starts_with(kBefore)
                           ? os::ReadText(log_ + "/" + request.path.substr(kBefore.size()), 1 << 20)
                           : Result<std::string>(Error{Code::kNotFound, "no"});
    responder.Send(bytes.has_value() ? net::Response::OfText(200, *bytes)
                                     : net::Response::OfError(bytes.error()));
  });
  Connection connection = server.ConnectionTo();
  connection.log_vkey = vkey_;
  ASSERT_TRUE(os::MakeDirs(folder_.Path("client/cli")).has_value());
  ASSERT_TRUE(WriteContext(folder_.Path("client/cli/context.json"), connection).has_value());
  const AppResult copy =
      RunLine(folder_.folder.path(), {"audit", "verify", "--state", folder_.Path("client"), "-v"});
  EXPECT_EQ(copy.status, 0) << copy.out << copy.err;
  EXPECT_NE(copy.out.find("the server's log (a copy)"), std::string::npos) << copy.out;
  EXPECT_NE(copy.err.find("copied file"), std::string::npos) << copy.err;
  const AppResult own = RunLine(
      folder_.folder.path(), {"audit", "verify", "--state", folder_.Path("state"), "--key", vkey_});
  EXPECT_EQ(own.status, 0) << own.err;
  EXPECT_NE(own.out.find("state/server/log"), std::string::npos) << "read in place: " << own.out;
}

TEST_F(AuditVerifyTest, OneProof) {
  JsonArray hashes;
  const auto path = audit::InclusionProof(log_, 17, 300);
  ASSERT_TRUE(path.has_value());
  for (const Digest& hash : *path) {
    hashes.emplace_back(Base64(hash));
  }
  const Bytes entry = audit::ReadEntry(log_, 17, 300).value();
  JsonObject proof{{"origin", kOrigin},
                   {"index", 17},
                   {"entry", Base64(entry)},
                   {"proof", std::move(hashes)},
                   {"checkpoint", writer_->checkpoint()}};
  const std::string good = folder_.Write("good.json", CanonicalJson(proof));
  const AppResult result =
      RunLine(folder_.folder.path(), {"audit", "verify", "--proof", good, "--key", vkey_file_});
  EXPECT_EQ(result.status, 0) << result.out << result.err;
  proof["index"] = 18;
  const std::string bad = folder_.Write("bad.json", CanonicalJson(proof));
  EXPECT_EQ(RunLine(folder_.folder.path(), {"audit", "verify", "--proof", bad, "--key", vkey_file_})
                .status,
            1);
}

}  // namespace
}  // namespace ringfence::cli
