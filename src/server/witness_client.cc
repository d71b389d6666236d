#include "server/witness_client.h"

#include <algorithm>
#include <charconv>
#include <condition_variable>
#include <mutex>

#include "base/encoding.h"
#include "os/log.h"

namespace ringfence::server {
namespace {

constexpr std::string_view kScheme = "https://";
constexpr std::string_view kConflictType = "text/x.tlog.size";
constexpr std::size_t kResponseBytesMax = 64 * 1024;
constexpr std::size_t kUrlBytesMax = 512;
constexpr std::chrono::milliseconds kResponseTimeout{15000};

Error BadWitness(std::string_view given, std::string_view why) {
  return {Code::kInvalidArgument,
          "server.witnesses: \"" + std::string(given.substr(0, 200)) + "\" " + std::string(why),
          "write https://witness.example/prefix, a space and the witness's verifier key; commas "
          "between several",
          "server.witnesses"};
}

Result<OutsideWitness> ParseWitness(std::string_view given) {
  const std::size_t space = given.find(' ');
  std::string_view url = given.substr(0, space);
  if (space == std::string_view::npos || !url.starts_with(kScheme) || url.size() > kUrlBytesMax ||
      url.find_first_of("?#@") != std::string_view::npos) {
    return BadWitness(given, "is not an https URL and a key");
  }
  OutsideWitness witness;
  auto key = audit::ParseVerifierKey(given.substr(space + 1));
  if (!key.has_value()) {
    return BadWitness(given, "has no valid key: " + key.error().message);
  }
  witness.key = std::move(key).value();
  if (witness.key.type != 4) {
    return BadWitness(given, "has a log's key, not a witness's");
  }
  url.remove_prefix(kScheme.size());
  const std::size_t slash = std::min(url.find('/'), url.size());
  witness.address = std::string(url.substr(0, slash));
  if (witness.address.empty()) {
    return BadWitness(given, "names no host");
  }
  if (witness.address.find(':', witness.address.find(']') + 1) == std::string::npos) {
    witness.address += ":443";
  }
  witness.target = std::string(url.substr(slash));
  while (witness.target.ends_with('/')) {
    witness.target.pop_back();
  }
  witness.target += "/add-checkpoint";
  return witness;
}

// The size in a 409's body: decimal and a newline.
std::optional<std::uint64_t> ConflictSize(const net::Response& response) {
  std::string_view text = response.body;
  if (response.content_type != kConflictType || !text.ends_with('\n')) {
    return std::nullopt;
  }
  text.remove_suffix(1);
  std::uint64_t size = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
  return error == std::errc() && end == text.data() + text.size() && std::to_string(size) == text
             ? std::optional(size)
             : std::nullopt;
}

}  // namespace

Result<std::vector<OutsideWitness>> ParseWitnesses(std::string_view text) {
  std::vector<OutsideWitness> witnesses;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    std::string_view one = text.substr(0, comma);
    text.remove_prefix(std::min(comma + 1, text.size()));
    one.remove_prefix(std::min(one.find_first_not_of(' '), one.size()));
    one.remove_suffix(one.size() - one.find_last_not_of(' ') - 1);
    RINGFENCE_ASSIGN(OutsideWitness witness, ParseWitness(one));
    witnesses.push_back(std::move(witness));
  }
  if (witnesses.size() > kOutsideWitnessesMax) {
    return Error{Code::kInvalidArgument,
                 "server.witnesses: there are more than " + std::to_string(kOutsideWitnessesMax),
                 {},
                 "server.witnesses"};
  }
  return witnesses;
}

std::string AddCheckpointBody(std::uint64_t old_size, const std::vector<Digest>& proof,
                              std::string_view note) {
  std::string body = "old " + std::to_string(old_size) + "\n";
  for (const Digest& hash : proof) {
    body += Base64(hash) + "\n";
  }
  return body + "\n" + std::string(note);
}

Result<std::unique_ptr<WitnessFeed>> WitnessFeed::Start(std::vector<OutsideWitness> witnesses,
                                                        std::string ca_pem, Hooks hooks,
                                                        Pace pace) {
  std::unique_ptr<WitnessFeed> feed(new WitnessFeed(std::move(hooks), pace));
  for (OutsideWitness& witness : witnesses) {
    net::ClientOptions options;
    options.address = witness.address;
    options.ca_pem = ca_pem;
    options.response_timeout = kResponseTimeout;
    options.response_bytes_max = kResponseBytesMax;
    RINGFENCE_ASSIGN(auto client, net::Client::Create(std::move(options)));
    feed->lines_.push_back(
        std::make_unique<Line>(Line{std::move(witness), std::move(client), 0, {}}));
  }
  WitnessFeed* const raw = feed.get();
  for (const std::unique_ptr<Line>& line : feed->lines_) {
    feed->threads_.emplace_back(
        [raw, &line = *line](const std::stop_token& stop) { raw->Feed(line, stop); });
  }
  return feed;
}

WitnessFeed::~WitnessFeed() {
  for (std::jthread& thread : threads_) {
    thread.request_stop();
  }
  for (const std::unique_ptr<Line>& line : lines_) {
    line->client->Cancel();
  }
}

// However fast the log grows, a witness is asked once in `least`.
void WitnessFeed::Feed(Line& line, const std::stop_token& stop) {
  std::string cosigned;  // the newest note that it has cosigned
  std::chrono::milliseconds pause = pace_.least;
  std::mutex mutex;
  std::condition_variable_any never;
  while (!stop.stop_requested()) {
    const std::optional<SignedHead> newest = hooks_.newest();
    if (newest.has_value() && newest->head.size != 0 && newest->note != cosigned) {
      const Status status = Offer(line, *newest);
      if (stop.stop_requested()) {
        return;
      }
      Tell(line, status, newest->head.size);
      if (status.has_value()) {
        cosigned = newest->note;
      }
      pause = status.has_value() ? pace_.least : std::min(pause * 2, pace_.most);
    }
    std::unique_lock lock(mutex);
    (void)never.wait_for(lock, stop, pause, [] { return false; });
  }
}

// Once with what it is known to have seen, and once more if it says otherwise.
Status WitnessFeed::Offer(Line& line, const SignedHead& offered) {
  const std::string& name = line.witness.key.name;
  for (int attempt = 0; attempt < 2; ++attempt) {
    RINGFENCE_ASSIGN(const net::Response response, Send(line, offered));
    if (response.status == 200) {
      for (std::string_view rest = response.body; !rest.empty();) {
        const std::size_t end = std::min(rest.find('\n'), rest.size() - 1) + 1;
        const std::string one(rest.substr(0, end));
        rest.remove_prefix(end);
        if (audit::VerifyCosignature(offered.note + one, line.witness.key).has_value()) {
          line.seen = offered.head.size;
          return hooks_.keep(offered.head, name, one);
        }
      }
      return Error{Code::kUnavailable, "its answer holds no cosignature by the key of " + name};
    }
    const std::optional<std::uint64_t> seen =
        response.status == 409 ? ConflictSize(response) : std::nullopt;
    if (!seen.has_value()) {
      return Error{Code::kUnavailable,
                   "it refused, with status " + std::to_string(response.status)};
    }
    line.seen = *seen;
    if (*seen > offered.head.size) {
      return Error{Code::kCorrupt,
                   "it has cosigned " + std::to_string(*seen) + " entries, and this log has " +
                       std::to_string(offered.head.size) + ": a rollback",
                   "was the server restored from an old backup?"};
    }
  }
  return Error{Code::kUnavailable, "it keeps changing its mind about what it has seen"};
}

Result<net::Response> WitnessFeed::Send(Line& line, const SignedHead& offered) const {
  // Since it may have been reset, or another server have spoken to it, `seen` is only a guess.
  const std::uint64_t from = std::min(line.seen, offered.head.size);
  std::vector<Digest> proof;
  if (from != 0 && from != offered.head.size) {
    RINGFENCE_ASSIGN(proof, hooks_.proof(from, offered.head.size));
  }
  net::ClientRequest request;
  request.method = "POST";
  request.target = line.witness.target;
  request.content_type = "text/plain; charset=utf-8";
  request.body = AddCheckpointBody(from, proof, offered.note);
  return line.client->Send(request);
}

// A change is worth a line; the same trouble again is not.
void WitnessFeed::Tell(Line& line, const Status& status, std::uint64_t size) {
  const std::string problem = status.has_value() ? "" : status.error().message;
  if (problem == line.problem) {
    return;
  }
  line.problem = problem;
  const std::string entries = std::to_string(size);
  if (status.has_value()) {
    os::Log(os::Level::kInfo, "witness_cosigns",
            {{"witness", line.witness.key.name}, {"entries", entries}});
  } else {
    os::Log(status.error().code == Code::kCorrupt ? os::Level::kError : os::Level::kWarning,
            "witness_does_not_cosign",
            {{"witness", line.witness.key.name}, {"entries", entries}, {"why", problem}});
  }
}

}  // namespace ringfence::server
