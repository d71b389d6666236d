// The live path as agents walk it: simulated nodes join with tokens, each with a certificate and a
// spool of its own, and deliver readings over TLS as fast as wanted, again and again until
// they are acknowledged. Prints one JSON object.
//
//   build/release/bench/live SECONDS RECORDS_A_SECOND BATCH TOKEN...   (records a second: of all;
//   0: no limit)
//
// SIGTERM ends it early.

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "agent/credentials.h"
#include "audit/note.h"
#include "base/encoding.h"
#include "base/json.h"
#include "isolate/jailer_client.h"
#include "isolate/join_token.h"
#include "net/client.h"

namespace {

using namespace ringfence;  // NOLINT(google-build-using-namespace)
using std::chrono::steady_clock;

volatile std::sig_atomic_t stopped = 0;

struct Totals {
  std::atomic<std::uint64_t> acknowledged{0};
  std::atomic<std::uint64_t> failed{0};  // requests that had to be sent again
  std::atomic<std::uint64_t> slowest_us{0};
};

[[noreturn]] void Die(const std::string& why) {
  std::fprintf(stderr, "error: %s\n", why.c_str());
  std::exit(1);
}

agent::Credentials JoinAs(const std::string& text) {
  const auto token = isolate::ParseJoinToken(text);
  if (!token.has_value()) {
    Die(token.error().message);
  }
  const auto key = crypto::SigningKey::Generate();
  isolate::JailerHello jailer;
  jailer.public_key = Base64(key.public_key().raw());
  jailer.key_proof = isolate::JailerKeyProof(isolate::JailerHalf(token->secret), key.public_key());
  auto joined = agent::Join({token->server, token->ca, isolate::AgentHalf(token->secret)}, jailer,
                            audit::VerifierKey("bench", 4, key.public_key()), "bench");
  if (!joined.has_value()) {
    Die(joined.error().message);
  }
  return *joined;
}

// A reading as the digest of a minute has it; numbers differ from one to the next.
void AddRecord(std::string& body, std::size_t node, std::uint64_t sequence, std::int64_t now_ms) {
  const auto number = [&](std::uint64_t value) { body += std::to_string(value); };
  body += body.back() == '[' ? "{\"seq\":" : ",{\"seq\":";
  number(sequence);
  body += ",\"time\":";
  number(static_cast<std::uint64_t>(now_ms));
  body += R"(,"kind":"reading","gpu":"GPU-0000bench-)";
  number(node);
  body += '-';
  number(sequence % 8);
  body += R"(","samples":60,"mean":{"busy_percent":)";
  number(sequence * 7 % 90);
  body += R"(,"power_mw":)";
  number(200'000 + sequence * 131 % 300'000);
  body += R"(,"power_limit_mw":700000,"memory_bytes":150754820096,"sm_active_percent":)";
  number(sequence * 11 % 90);
  body += R"(,"tensor_active_percent":)";
  number(sequence * 3 % 60);
  body += R"(,"pcie_rx_kbps":)";
  number(sequence * 977 % 9'000'000);
  body += R"(},"grown":{"ecc_corrected":0,"energy_mj":)";
  number(sequence * 37 % 1'000'000);
  body += R"(},"peak":{"memory_used_bytes":)";
  number(sequence * 65'536 % 150'754'820'096);
  body += "}}";
}

void Deliver(std::size_t node, const agent::Credentials& credentials, std::size_t batch,
             double per_second, steady_clock::time_point end, Totals& totals) {
  auto client = net::Client::Create(agent::OptionsFor(credentials));
  if (!client.has_value()) {
    Die(client.error().message);
  }
  std::uint64_t next = 1;
  const auto begun = steady_clock::now();
  while (stopped == 0 && steady_clock::now() < end) {
    const std::int64_t now_ms = std::chrono::duration_cast<std::chrono::milliseconds>(
                                    std::chrono::system_clock::now().time_since_epoch())
                                    .count();
    net::ClientRequest request;
    request.method = "POST";
    request.target = "/v1/agent/telemetry";
    request.body = R"({"epoch":"bench","waiting":0,"readings":[],"blind":"","read":)" +
                   std::to_string(now_ms) + R"(,"records":[)";
    for (std::size_t i = 0; i < batch; ++i) {
      AddRecord(request.body, node, next + i, now_ms);
    }
    request.body += "]}";
    const auto sent = steady_clock::now();
    const auto answer = (*client)->Send(request);
    const auto took = static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::microseconds>(steady_clock::now() - sent).count());
    if (!answer.has_value() || answer->status != 200) {
      if (answer.has_value() && answer->status < 500 && answer->status != 429) {
        Die(std::to_string(answer->status) + " " + answer->body);
      }
      ++totals.failed;
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      continue;
    }
    const auto json = ParseJson(answer->body, 4096);
    next += batch;
    if (!json.has_value() || json->at("next").to_number<std::uint64_t>() != next) {
      Die("the server expects another record than the next: " + answer->body);
    }
    totals.acknowledged += batch;
    for (std::uint64_t most = totals.slowest_us; took > most;) {
      if (totals.slowest_us.compare_exchange_weak(most, took)) {
        break;
      }
    }
    if (per_second > 0) {
      std::this_thread::sleep_until(
          begun + std::chrono::duration_cast<steady_clock::duration>(
                      std::chrono::duration<double>(static_cast<double>(next - 1) / per_second)));
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) {
    Die("usage: live SECONDS RECORDS_A_SECOND BATCH TOKEN...");
  }
  std::signal(SIGTERM, [](int) { stopped = 1; });
  const double seconds = std::atof(argv[1]);
  const auto nodes = static_cast<std::size_t>(argc - 4);
  const double per_second = std::atof(argv[2]) / static_cast<double>(nodes);
  const auto batch = static_cast<std::size_t>(std::atoi(argv[3]));
  std::vector<agent::Credentials> credentials;
  for (std::size_t i = 0; i < nodes; ++i) {
    credentials.push_back(JoinAs(argv[i + 4]));
  }
  Totals totals;
  const auto begun = steady_clock::now();
  const auto end = begun + std::chrono::duration_cast<steady_clock::duration>(
                               std::chrono::duration<double>(seconds));
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < nodes; ++i) {
      threads.emplace_back([&, i] { Deliver(i, credentials[i], batch, per_second, end, totals); });
    }
  }
  const double took = std::chrono::duration<double>(steady_clock::now() - begun).count();
  std::printf(
      "{\"acknowledged\": %llu, \"seconds\": %.3f, \"sent_again\": %llu, \"slowest_ms\": %.1f}\n",
      static_cast<unsigned long long>(totals.acknowledged), took,
      static_cast<unsigned long long>(totals.failed),
      static_cast<double>(totals.slowest_us) / 1000);
  return 0;
}
