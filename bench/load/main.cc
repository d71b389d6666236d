// The load generator: `load --help`.

#include <csignal>
#include <iostream>
#include <thread>

#include "load/ops.h"
#include "load/options.h"
#include "load/report.h"
#include "load/worker.h"

namespace ringfence::bench {
namespace {

// The threads keep their connections from rate to rate.
class Generator {
 public:
  Generator(const Options& options, const Target& target) : options_(options) {
    const int threads = std::min(options.threads, options.connections);
    for (int i = 0; i < threads; ++i) {
      const int share = options.connections / threads + (i < options.connections % threads ? 1 : 0);
      workers_.push_back(
          std::make_unique<Worker>(target, share, options.seed + static_cast<std::uint64_t>(i)));
    }
  }

  Result<Report> Run(double rate) {
    const Phase phase{rate / static_cast<double>(workers_.size()), options_.fixed_arrivals,
                      options_.warmup, options_.seconds};
    std::vector<Result<Stats>> results(workers_.size(), Error{Code::kInternal, "did not run"});
    {
      std::vector<std::jthread> threads;
      for (std::size_t i = 0; i < workers_.size(); ++i) {
        threads.emplace_back([&, i] { results[i] = workers_[i]->Run(phase); });
      }
    }
    Report report{rate, options_.seconds, {}};
    for (const auto& result : results) {
      if (!result.has_value()) {
        return result.error();
      }
      Merge(report.stats, *result);
    }
    return report;
  }

 private:
  const Options& options_;
  std::vector<std::unique_ptr<Worker>> workers_;
};

int Fail(const Error& error) {
  std::cerr << "error: " << error.message << "\n";
  if (!error.hint.empty()) {
    std::cerr << "hint: " << error.hint << "\n";
  }
  return error.code == Code::kInvalidArgument ? 2 : 1;
}

int Main(const std::vector<std::string>& words) {
  const auto options = ParseOptions(words);
  if (!options.has_value()) {
    return Fail(options.error());
  }
  if (options->help) {
    std::cout << Help();
    return 0;
  }
  const auto target = OpenTarget(*options);
  if (!target.has_value()) {
    return Fail(target.error());
  }
  Generator generator(*options, *target);
  JsonArray all;
  bool answered = true;
  for (const double rate : options->rates) {
    const auto report = generator.Run(rate);
    if (!report.has_value()) {
      return Fail(report.error());
    }
    answered = answered && AllAnswered(*report);
    if (options->json) {
      all.push_back(ToJson(*target, *report));
    } else {
      std::cout << ToTable(*target, *report) << std::flush;
    }
  }
  if (options->json) {
    std::cout << PrettyJson(Json(std::move(all))) << "\n";
  }
  return answered ? 0 : 1;
}

}  // namespace
}  // namespace ringfence::bench

int main(int argc, char** argv) {
  (void)std::signal(SIGPIPE, SIG_IGN);
  return ringfence::bench::Main({argv + 1, argv + argc});
}
