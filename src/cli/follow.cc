#include "cli/follow.h"

#include "base/encoding.h"
#include "cli/fields.h"
#include "cli/human.h"
#include "cli/retry.h"

namespace ringfence::cli {
namespace {

class Follower {
 public:
  Follower(Api& api, Console& console, Presses& presses, const std::string& lease,
           const FollowOptions& options)
      : api_(api),
        console_(console),
        presses_(presses),
        lease_(lease),
        options_(options),
        retry_(console, options.give_up, options.first_pause) {}

  Result<JobEnd> Run() {
    for (;;) {
      const int pressed = presses_.count();
      if (pressed > handled_) {
        if (pressed > 1 || !options_.end_on_press) {
          if (handled_ == 0 && options_.end_on_press) {
            // Two presses at once: the wish to end it is said before we go.
            RINGFENCE_TRY(api_.Reconnect());
            (void)api_.Post(Target("/v1/leases", lease_, "/end"), nullptr);
          }
          end_.left = true;
          return end_;
        }
        handled_ = pressed;
        must_end_ = true;
        console_.Warn("ending lease " + lease_ + "; press Ctrl-C again to leave it to itself");
        RINGFENCE_TRY(api_.Reconnect());  // the press cancelled what was under way
        continue;
      }
      if (must_end_) {
        RINGFENCE_ASSIGN(const bool asked, AskToEnd());
        if (!asked) {
          continue;
        }
      }
      RINGFENCE_ASSIGN(const bool done, OnePage());
      if (done) {
        return end_;
      }
    }
  }

 private:
  // After a failed request: OK to go on (tried again, or a press is to be looked at).
  Status GoOn(const Error& error) {
    if (presses_.count() > handled_) {
      return {};
    }
    if (Retry::Helps(error) && retry_.Again(error, presses_, handled_)) {
      return {};
    }
    return error;
  }

  Result<bool> AskToEnd() {
    const auto answer = api_.Post(Target("/v1/leases", lease_, "/end"), nullptr);
    if (!answer.has_value() && Retry::Helps(answer.error())) {
      RINGFENCE_TRY(GoOn(answer.error()));
      return false;
    }
    if (!answer.has_value()) {
      console_.Warn("the lease was not ended: " + answer.error().message);
    }
    must_end_ = false;
    return true;
  }

  Result<bool> OnePage() {
    const auto page =
        api_.Get(Target("/v1/leases", lease_, "/logs",
                        {{"cursor", cursor_},
                         {"wait_ms", options_.wait ? std::to_string(options_.poll.count()) : ""}}));
    if (!page.has_value()) {
      RINGFENCE_TRY(GoOn(page.error()));
      return false;
    }
    retry_.Worked();
    const JsonArray& chunks = ArrayOf(*page, "chunks");
    for (const Json& chunk : chunks) {
      RINGFENCE_TRY(Write(chunk));
    }
    cursor_ = TextOf(*page, "next_cursor");
    end_.state = TextOf(*page, "state");
    end_.outcome = TextOf(*page, "outcome");
    end_.reason = TextOf(*page, "reason");
    if (const auto code = IntOf(*page, "exit_code")) {
      end_.exit_code = static_cast<int>(*code);
    }
    end_.dropped_bytes = static_cast<std::uint64_t>(
        std::max<std::int64_t>(0, IntOf(*page, "dropped_bytes").value_or(0)));
    end_.complete = BoolOf(*page, "complete");
    if (end_.output_lost && options_.end_on_press) {
      RINGFENCE_TRY(api_.Post(Target("/v1/leases", lease_, "/end"), nullptr));
    }
    return end_.complete || end_.output_lost || (!options_.wait && chunks.empty());
  }

  Status Write(const Json& chunk) {
    const auto data = FromBase64(TextOf(chunk, "data"));
    if (!data.has_value()) {
      return Error{Code::kInternal, "the server sent output that is not base64"};
    }
    const bool error_stream = TextOf(chunk, "stream") == "stderr" || options_.all_to_stderr;
    std::ostream& stream = error_stream ? console_.err() : console_.out();
    stream << AsText(*data) << std::flush;
    end_.output_lost = end_.output_lost || !stream;
    return {};
  }

  Api& api_;
  Console& console_;
  Presses& presses_;
  const std::string& lease_;
  const FollowOptions& options_;
  Retry retry_;
  JobEnd end_;
  std::string cursor_;
  int handled_ = 0;
  bool must_end_ = false;
};

}  // namespace

Result<JobEnd> Follow(Api& api, Console& console, Presses& presses, const std::string& lease,
                      const FollowOptions& options) {
  auto end = Follower(api, console, presses, lease, options).Run();
  if (end.has_value() && end->dropped_bytes > 0) {
    console.Warn(FormatSize(end->dropped_bytes) + " of output beyond the limit were not kept");
  }
  return end;
}

int JobExitStatus(const std::string& outcome, std::optional<int> exit_code) {
  if (outcome == "timeout") {
    return kExitTimeout;
  }
  if (exit_code) {
    return *exit_code;
  }
  return outcome == "oom" ? kExitOutOfMemory : kExitNotRun;
}

}  // namespace ringfence::cli
