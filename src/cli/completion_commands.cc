// `ringfence completion`, and the hidden `ringfence __complete` behind it.

#include "cli/api.h"
#include "cli/commands.h"
#include "cli/completion.h"
#include "cli/console.h"
#include "cli/fields.h"
#include "cli/settings.h"
#include "cli/suggest.h"

namespace ringfence::cli {
namespace {

constexpr std::chrono::milliseconds kPatience{1500};  // a completion that waits is none
constexpr std::size_t kOffersMax = 200;

struct Source {
  Completes completes;
  std::string_view path;
  std::string_view word;
  std::string_view description;
};
constexpr Source kSources[] = {
    {Completes::kTenant, "/v1/tenants", "path", "kind"},
    {Completes::kLease, "/v1/leases", "id", "state"},
    {Completes::kNode, "/v1/nodes", "name", "state"},
    {Completes::kGpu, "/v1/gpus", "uuid", "state"},
    {Completes::kToken, "/v1/tokens", "id", "principal"},
};

std::vector<Candidate> AskServer(const Settings& settings, Completes completes) {
  std::vector<Candidate> candidates;
  auto connection = Connect(settings);
  if (!connection.has_value()) {
    return candidates;
  }
  const auto api = Api::Create(std::move(connection).value(), kPatience);
  for (const Source& source : kSources) {
    if (source.completes != completes || !api.has_value()) {
      continue;
    }
    const auto items = (*api)->List(source.path, {}, kOffersMax);
    if (items.has_value()) {
      for (const Json& item : *items) {
        candidates.push_back({TextOf(item, source.word), TextOf(item, source.description)});
      }
    }
  }
  return candidates;
}

Result<int> CompleteHandler(Invocation& invocation) {
  invocation.console.out() << Complete(
      invocation.table, invocation.parsed.trailing,
      [&](Completes completes) { return AskServer(invocation.settings, completes); });
  return 0;
}

Result<int> Script(Invocation& invocation) {
  const std::string shell = invocation.parsed.Argument(0);
  const std::string script = CompletionScript(shell);
  if (script.empty()) {
    return Error{Code::kInvalidArgument, "no completion for \"" + shell + "\"",
                 DidYouMean(shell, {"bash", "zsh", "fish"}, "choose bash, zsh or fish"),
                 "completion"};
  }
  invocation.console.out() << script;
  return 0;
}

}  // namespace

CommandTable CompletionCommands() {
  return {
      {.path = "completion",
       .group = Group::kOther,
       .summary = "Print the completion script for a shell.",
       .arguments = {{.name = "SHELL",
                      .help = "bash, zsh or fish",
                      .completes = Completes::kWords,
                      .words = "bash zsh fish"}},
       .examples = {{"source <(ringfence completion bash)", "for this shell"},
                    {"ringfence completion fish > ~/.config/fish/completions/ringfence.fish",
                     "for each new one"}},
       .handler = Script},
      {.path = "__complete",
       .summary = "What could come next; for the completion scripts.",
       .takes_command = true,
       .handler = CompleteHandler,
       .hidden = true},
  };
}

}  // namespace ringfence::cli
