#include "load/options.h"

#include <cmath>
#include <functional>
#include <map>

#include "load/ops.h"

namespace ringfence::bench {
namespace {

Error Bad(const std::string& option, const std::string& text, const std::string& hint) {
  return Error{Code::kInvalidArgument, option + ": \"" + text + "\" cannot be used", hint};
}

Result<double> Number(const std::string& option, const std::string& text, double least,
                      double most) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !std::isfinite(value) || value < least || value > most) {
    return Bad(option, text,
               "write a number from " + std::to_string(static_cast<long long>(least)) + " to " +
                   std::to_string(static_cast<long long>(most)));
  }
  return value;
}

std::vector<std::string> Split(const std::string& text) {
  std::vector<std::string> parts;
  std::size_t at = 0;
  while (at <= text.size()) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    parts.push_back(text.substr(at, comma - at));
    at = comma + 1;
  }
  return parts;
}

Result<std::vector<Share>> ParseMix(const std::string& text) {
  std::vector<Share> mix;
  for (const std::string& part : Split(text)) {
    const std::size_t equals = part.find('=');
    Share share{part.substr(0, equals), 1};
    if (FindOp(share.op) == nullptr) {
      return Bad("--mix", share.op, "the kinds are: " + OpNames());
    }
    if (equals != std::string::npos) {
      RINGFENCE_ASSIGN(share.weight, Number("--mix", part.substr(equals + 1), 0, 1e6));
    }
    mix.push_back(std::move(share));
  }
  return mix;
}

Result<std::vector<double>> ParseRates(const std::string& text) {
  std::vector<double> rates;
  for (const std::string& part : Split(text)) {
    if (part == "max") {
      rates.push_back(0);
      continue;
    }
    RINGFENCE_ASSIGN(const double rate, Number("--rate", part, 1, 1e7));
    rates.push_back(rate);
  }
  return rates;
}

using Setter = std::function<Status(Options&, const std::string&)>;

Setter Text(std::string Options::* member) {
  return [member](Options& options, const std::string& text) -> Status {
    options.*member = text;
    return {};
  };
}

template <typename T>
Setter Counted(T Options::* member, std::string name, double least, double most) {
  return [=](Options& options, const std::string& text) -> Status {
    RINGFENCE_ASSIGN(const double value, Number(name, text, least, most));
    options.*member = static_cast<T>(value);
    return {};
  };
}

const std::map<std::string, Setter>& Setters() {
  static const std::map<std::string, Setter> setters = {
      {"--state", Text(&Options::state)},
      {"--server", Text(&Options::server)},
      {"--ca", Text(&Options::ca_file)},
      {"--lease", Text(&Options::lease)},
      {"--tenant", Text(&Options::tenant)},
      {"--denied-tenant", Text(&Options::denied_tenant)},
      {"--denied-as", Text(&Options::denied_as)},
      {"--seconds", Counted(&Options::seconds, "--seconds", 0.1, 86400)},
      {"--warmup", Counted(&Options::warmup, "--warmup", 0, 3600)},
      {"--connections", Counted(&Options::connections, "--connections", 1, 20000)},
      {"--threads", Counted(&Options::threads, "--threads", 1, 64)},
      {"--poll-ms", Counted(&Options::poll_ms, "--poll-ms", 1, 30000)},
      {"--seed", Counted(&Options::seed, "--seed", 0, 1e15)},
      {"--mix",
       [](Options& options, const std::string& text) -> Status {
         RINGFENCE_ASSIGN(options.mix, ParseMix(text));
         return {};
       }},
      {"--rate",
       [](Options& options, const std::string& text) -> Status {
         RINGFENCE_ASSIGN(options.rates, ParseRates(text));
         return {};
       }},
      {"--arrivals",
       [](Options& options, const std::string& text) -> Status {
         options.fixed_arrivals = text == "fixed";
         return text == "fixed" || text == "poisson"
                    ? Status()
                    : Status(Bad("--arrivals", text, "write poisson or fixed"));
       }},
      {"--output",
       [](Options& options, const std::string& text) -> Status {
         options.json = text == "json";
         return text == "json" || text == "table"
                    ? Status()
                    : Status(Bad("--output", text, "write table or json"));
       }},
  };
  return setters;
}

}  // namespace

std::string Help() {
  return "load: sends requests to a Ringfence server at a given rate and says how long the answers "
         "took.\n\n"
         "Requests are due at times drawn before anything is sent, whether or not earlier ones "
         "were\n"
         "answered (open loop). Latency counts from when a request was due, so a server that "
         "stalls\n"
         "cannot hide it. With --rate max each connection sends as soon as it has its answer.\n\n"
         "usage: load --state DIR [options]\n"
         "       RINGFENCE_TOKEN=... load --server ADDR:PORT --ca FILE [options]\n\n"
         "  --mix OP[=WEIGHT],...    what to send (default read): " +
         OpNames() +
         "\n"
         "  --rate N[,N...]|max      requests a second; several are swept in turn (default max)\n"
         "  --arrivals KIND          poisson (default) or fixed\n"
         "  --connections N          kept alive, over TLS (default 32)\n"
         "  --threads N              of the generator (default 1)\n"
         "  --seconds S --warmup S   measured and unmeasured time for each rate (default 10, 1)\n"
         "  --lease ID               whom reads ask for (default: the newest lease, or a new one)\n"
         "  --tenant T               where leases are asked for (default acme/research/vision)\n"
         "  --denied-tenant T --denied-as PRINCIPAL\n"
         "                           who asks for leases where, and is denied\n"
         "  --poll-ms N              how long a long poll waits (default 1000)\n"
         "  --seed N                 of arrivals and mix: the same seed, the same load\n"
         "  --output table|json\n\n"
         "examples:\n"
         "  load --state .ringfence --mix read --connections 64                  how many reads a "
         "second\n"
         "  load --state .ringfence --mix read=8,list=1,status=1 --rate 500,1000,2000,4000\n"
         "                                                                        where it bends\n"
         "  load --state .ringfence --mix denied --connections 64 -o json         durable audit "
         "entries\n\n"
         "exit status: 0 when every request got an answer (refusals with Retry-After count), 1 "
         "otherwise,\n2 for wrong usage.\n";
}

Result<Options> ParseOptions(const std::vector<std::string>& words) {
  Options options;
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::string name = words[i];
    if (name == "--help" || name == "-h") {
      options.help = true;
      return options;
    }
    if (name == "-o") {
      name = "--output";
    }
    const auto setter = Setters().find(name);
    if (setter == Setters().end()) {
      return Error{Code::kInvalidArgument, "no option " + name, "`load --help` lists them"};
    }
    if (i + 1 == words.size()) {
      return Error{Code::kInvalidArgument, name + " wants a value", "`load --help` lists them"};
    }
    RINGFENCE_TRY(setter->second(options, words[++i]));
  }
  if (options.state.empty() == options.server.empty()) {
    return Error{Code::kInvalidArgument, "which server?",
                 "give --state DIR, or --server ADDR:PORT with --ca FILE"};
  }
  return options;
}

}  // namespace ringfence::bench
