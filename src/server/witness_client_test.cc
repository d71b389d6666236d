// Goal: an outside witness gets each checkpoint with the right proof, its cosignature is kept only
// if it is one, what it already saw is learnt from it, and a witness that lies, refuses or is gone
// only makes the feed try again.
// Method: a real log, our own witness behind a real HTTPS server that speaks tlog-witness, and
// answers of every wrong kind in its place.

#include "server/witness_client.h"

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <mutex>

#include "base/encoding.h"
#include "crypto/random.h"
#include "crypto/x509.h"
#include "net/server.h"

namespace ringfence::server {
namespace {

using std::chrono_literals::operator""ms;

const std::string kOrigin = "ringfence.test/log";
const std::string kWitness = "witness.test/1";
constexpr WitnessFeed::Pace kFast{1ms, 8ms};
constexpr std::chrono::seconds kPatience{60};  // only a failing test waits this long

crypto::SigningKey KeyOf(unsigned char fill) {
  return crypto::SigningKey::FromSeed(SecretBytes(Bytes(32, std::byte{fill}))).value();
}

class WitnessClientTest : public testing::Test {
 protected:
  WitnessClientTest()
      : folder_(std::filesystem::temp_directory_path() /
                ("ringfence-witness-" + crypto::RandomId("t"))) {
    std::filesystem::create_directories(folder_);
    const Timestamp now = SystemClock().Now();
    ca_ = crypto::MakeCa("test CA", now, std::chrono::hours(1)).value();
    const auto issued =
        crypto::IssueWithKey(ca_, {.common_name = "w", .dns = {}, .ips = {"127.0.0.1"}, .uris = {}},
                             crypto::CertificateUse::kServer, now, std::chrono::hours(1))
            .value();
    log_ = audit::LogWriter::Open(folder_ / "log", kOrigin, log_key_).value();
    ForgetAll();
    server_ =
        net::Server::Start("127.0.0.1:0", {issued.certificate_pem, issued.private_key_pem, ""}, {},
                           [this](const net::Request& request, const net::Responder& responder) {
                             responder.Send(Answer(request));
                           })
            .value();
  }
  ~WitnessClientTest() override {
    feed_.reset();
    server_.reset();
    log_.reset();
    std::filesystem::remove_all(folder_);
  }

  void ForgetAll() {
    const std::lock_guard lock(mutex_);
    std::filesystem::remove(folder_ / "seen");
    witness_.emplace(audit::Witness::Open(folder_ / "seen", kWitness, KeyOf(9),
                                          {kOrigin, 1, log_key_.public_key()})
                         .value());
  }

  void Grow(int entries) {
    std::vector<Bytes> batch;
    for (int i = 0; i < entries; ++i) {
      batch.push_back(ToBytes("{\"n\":" + std::to_string(next_++) + "}"));
    }
    const std::lock_guard lock(mutex_);
    ASSERT_TRUE(log_->Append(batch).has_value());
  }

  // The witness's side of C2SP tlog-witness, or the next of the wrong answers that were asked for.
  net::Response Answer(const net::Request& request) {
    const std::lock_guard lock(mutex_);
    ++asked_;
    changed_.notify_all();
    if (!wrong_.empty()) {
      const net::Response response = wrong_.front();
      wrong_.pop_front();
      return response;
    }
    const std::string& body = request.body;
    const std::size_t blank = body.find("\n\n");
    if (request.method != "POST" || request.path != "/prefix/add-checkpoint" ||
        !body.starts_with("old ") || blank == std::string::npos) {
      return Text(400, "", "text/plain");
    }
    const std::size_t first = body.find('\n');
    if (body.substr(4, first - 4) != std::to_string(witness_->seen().size)) {
      return Text(409, std::to_string(witness_->seen().size) + "\n", "text/x.tlog.size");
    }
    std::vector<Digest> proof;
    for (std::size_t at = first + 1; at < blank; at = body.find('\n', at) + 1) {
      const Bytes hash = FromBase64(body.substr(at, body.find('\n', at) - at)).value();
      std::copy(hash.begin(), hash.end(), proof.emplace_back().begin());
    }
    const auto line = witness_->Check(body.substr(blank + 2), proof, SystemClock().Now());
    return line.has_value() ? Text(200, *line, "text/plain") : Text(422, "", "text/plain");
  }
  static net::Response Text(int status, std::string body, std::string type) {
    net::Response response = net::Response::OfText(status, std::move(body));
    response.content_type = std::move(type);
    return response;
  }

  void Start() {
    WitnessFeed::Hooks hooks;
    hooks.newest = [this]() -> std::optional<SignedHead> {
      const std::lock_guard lock(mutex_);
      ++looked_;
      changed_.notify_all();
      return leads_ ? std::optional(SignedHead{log_->head(), log_->checkpoint()}) : std::nullopt;
    };
    hooks.proof = [this](std::uint64_t from, std::uint64_t to) {
      return audit::ConsistencyProof(folder_ / "log", from, to);
    };
    hooks.keep = [this](const audit::TreeHead& head, const std::string& witness,
                        const std::string& line) -> Status {
      const std::lock_guard lock(mutex_);
      EXPECT_EQ(witness, kWitness);
      kept_.push_back(head.size);
      line_ = line;
      changed_.notify_all();
      return {};
    };
    const std::string vkey = audit::VerifierKey(kWitness, 4, KeyOf(9).public_key());
    auto witnesses = ParseWitnesses("https://" + server_->address() + "/prefix/ " + vkey);
    ASSERT_TRUE(witnesses.has_value()) << witnesses.error().message;
    auto feed = WitnessFeed::Start(std::move(witnesses).value(), ca_.certificate_pem,
                                   std::move(hooks), kFast);
    ASSERT_TRUE(feed.has_value()) << feed.error().message;
    feed_ = std::move(feed).value();
  }

  template <typename Condition>
  bool Wait(const Condition& condition) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience, condition);
  }
  bool WaitForCosignature(std::uint64_t size) {
    return Wait([&] { return !kept_.empty() && kept_.back() == size; });
  }

  const std::filesystem::path folder_;
  const crypto::SigningKey log_key_ = KeyOf(8);
  crypto::KeyAndCertificate ca_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::unique_ptr<audit::LogWriter> log_;
  std::optional<audit::Witness> witness_;
  std::deque<net::Response> wrong_;
  int next_ = 0;
  int asked_ = 0;
  int looked_ = 0;
  bool leads_ = true;
  std::vector<std::uint64_t> kept_;
  std::string line_;
  std::unique_ptr<net::Server> server_;
  std::unique_ptr<WitnessFeed> feed_;
};

TEST_F(WitnessClientTest, EachCheckpointIsCosigned) {
  Grow(3);
  Start();
  ASSERT_TRUE(WaitForCosignature(3));
  const audit::NamedKey key{kWitness, 4, KeyOf(9).public_key()};
  EXPECT_TRUE(audit::VerifyCosignature(log_->checkpoint() + line_, key).has_value());
  Grow(300);
  EXPECT_TRUE(WaitForCosignature(303));
}

TEST_F(WitnessClientTest, WhatTheWitnessHasSeenIsLearnt) {
  Grow(5);
  Start();
  ASSERT_TRUE(WaitForCosignature(5));
  feed_.reset();  // a new one knows nothing
  Grow(5);
  Start();
  EXPECT_TRUE(WaitForCosignature(10));
  ForgetAll();  // and one that knows too much is told so
  Grow(1);
  EXPECT_TRUE(WaitForCosignature(11));
}

TEST_F(WitnessClientTest, WrongAnswersAreNotKept) {
  Grow(2);
  const std::string other = audit::Cosign(log_->checkpoint(), kWitness, KeyOf(7), Timestamp());
  const std::string of_another_head = audit::Cosign(
      audit::SignCheckpoint({kOrigin, {9, {}}}, log_key_), kWitness, KeyOf(9), SystemClock().Now());
  for (const auto& [status, body, type] : std::vector<std::tuple<int, std::string, std::string>>{
           {200, "", "text/plain"},
           {200, "no line", "text/plain"},
           {200, other, "text/plain"},
           {200, of_another_head, "text/plain"},
           {200, std::string(60000, '\n'), "text/plain"},
           {404, "", "text/plain"},
           {500, "", "text/plain"},
           {409, "", "text/plain"},
           {409, "x\n", "text/x.tlog.size"},
           {409, "-1\n", "text/x.tlog.size"},
           {409, "1", "text/x.tlog.size"},
           {409, "99999999999999999999999\n", "text/x.tlog.size"},
           {409, "1\n", "text/x.tlog.size"},  // twice: it keeps changing its mind
           {409, "2\n", "text/x.tlog.size"},
           {409, "1000\n", "text/x.tlog.size"}}) {  // more than there is: a rollback
    wrong_.push_back(Text(status, body, type));
  }
  const auto wrong = static_cast<int>(wrong_.size());
  Start();
  ASSERT_TRUE(WaitForCosignature(2));
  EXPECT_GT(asked_, wrong);
  EXPECT_EQ(kept_, std::vector<std::uint64_t>{2});
}

TEST_F(WitnessClientTest, OnlyTheServerWhoseTurnItIsOffers) {
  Grow(2);
  leads_ = false;
  Start();
  Grow(2);
  ASSERT_TRUE(Wait([&] { return looked_ > 3; }));
  {
    const std::lock_guard lock(mutex_);
    EXPECT_EQ(asked_, 0);
    leads_ = true;
  }
  EXPECT_TRUE(WaitForCosignature(4));
}

TEST_F(WitnessClientTest, AWitnessThatIsGoneHoldsUpNothing) {
  Grow(2);
  const std::string vkey = audit::VerifierKey(kWitness, 4, KeyOf(9).public_key());
  WitnessFeed::Hooks hooks;
  hooks.newest = [this]() -> std::optional<SignedHead> {
    const std::lock_guard lock(mutex_);
    ++looked_;
    changed_.notify_all();
    return SignedHead{log_->head(), log_->checkpoint()};
  };
  // A port that nobody listens on.
  auto feed = WitnessFeed::Start(ParseWitnesses("https://127.0.0.1:1/ " + vkey).value(),
                                 ca_.certificate_pem, std::move(hooks), kFast);
  ASSERT_TRUE(feed.has_value());
  EXPECT_TRUE(Wait([&] { return looked_ > 3; }));  // it goes on trying, and ends when told to
}

TEST(WitnessClientParseTest, SettingsAreReadOrRefused) {
  const std::string vkey = audit::VerifierKey("w.example", 4, KeyOf(1).public_key());
  const std::string log_vkey = audit::VerifierKey("w.example", 1, KeyOf(1).public_key());
  EXPECT_TRUE(ParseWitnesses("").value().empty());
  const auto two = ParseWitnesses("https://a.example " + vkey + ", https://[::1]:99/x/y// " + vkey);
  ASSERT_TRUE(two.has_value()) << two.error().message;
  EXPECT_EQ((*two)[0].address, "a.example:443");
  EXPECT_EQ((*two)[0].target, "/add-checkpoint");
  EXPECT_EQ((*two)[1].address, "[::1]:99");
  EXPECT_EQ((*two)[1].target, "/x/y/add-checkpoint");
  for (const std::string& bad :
       {std::string("https://a.example"), "http://a.example " + vkey, "https:// " + vkey,
        "https://a.example " + log_vkey, std::string("https://a.example zzz"),
        "https://a/?q " + vkey, "https://u@a/ " + vkey, vkey, std::string(","),
        "https://a " + vkey + ", "}) {
    EXPECT_FALSE(ParseWitnesses(bad).has_value()) << bad;
  }
  std::string many;
  for (std::size_t i = 0; i <= kOutsideWitnessesMax; ++i) {
    many += (many.empty() ? "https://a " : ",https://a ") + vkey;
  }
  EXPECT_FALSE(ParseWitnesses(many).has_value());
}

TEST(WitnessClientParseTest, TheBodyIsThatOfTheSpecification) {
  const Digest hash{};
  EXPECT_EQ(AddCheckpointBody(7, {hash, hash}, "note\n"),
            "old 7\n" + Base64(hash) + "\n" + Base64(hash) + "\n\nnote\n");
  EXPECT_EQ(AddCheckpointBody(0, {}, "note\n"), "old 0\n\nnote\n");
}

}  // namespace
}  // namespace ringfence::server
