// `ringfence token ...`

#include "cli/api.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/fields.h"
#include "cli/human.h"
#include "cli/settings.h"

namespace ringfence::cli {
namespace {

Result<int> Create(Invocation& invocation) {
  const Parsed& parsed = invocation.parsed;
  const auto principal = parsed.Value("as");
  if (!principal) {
    return Error{Code::kInvalidArgument, "--as PRINCIPAL is missing",
                 "say whom the token acts as, for example --as alice@acme.example", "token create"};
  }
  JsonObject request{{"principal", *principal}};
  if (const auto text = parsed.Value("ttl")) {
    const auto time = ParseDuration(*text);
    if (!time.has_value()) {
      return Prefix("--ttl", time.error());
    }
    request["ttl_ms"] = static_cast<std::int64_t>(time->count());
  }
  if (const auto note = parsed.Value("note")) {
    request["note"] = *note;
  }
  RINGFENCE_ASSIGN(const auto api, Api::Open(invocation.settings));
  const Json body(std::move(request));
  RINGFENCE_ASSIGN(const Json token, api->Post("/v1/tokens", &body, FreshIdempotencyKey()));
  Console& console = invocation.console;
  if (!console.table()) {
    console.Show(token);
    return 0;
  }
  console.Note("token " + TextOf(token, "id") + " acts as " + TextOf(token, "principal") +
               " until " + TextOf(token, "expires") + "; it is not shown again:");
  console.out() << TextOf(token, "token") << '\n';
  return 0;
}

Result<int> List(Invocation& invocation) {
  RINGFENCE_ASSIGN(const std::size_t limit, LimitOf(invocation.parsed));
  RINGFENCE_ASSIGN(const auto api, Api::Open(invocation.settings));
  RINGFENCE_ASSIGN(const JsonArray tokens, api->List("/v1/tokens", {}, limit));
  Console& console = invocation.console;
  if (!console.table()) {
    console.Show(tokens);
    return 0;
  }
  if (tokens.empty()) {
    console.Note("no tokens; `ringfence token create --as PRINCIPAL` makes one");
    return 0;
  }
  const Timestamp now = invocation.clock.Now();
  Table table({"TOKEN", "PRINCIPAL", "CREATED", "BY", "EXPIRES", "NOTE"});
  for (const Json& token : tokens) {
    const std::string revoked = TextOf(token, "revoked");
    table.Add({TextOf(token, "id"), TextOf(token, "principal"),
               RelativeTime(TextOf(token, "created"), now), TextOf(token, "created_by"),
               revoked.empty() ? RelativeTime(TextOf(token, "expires"), now) : "revoked",
               TextOf(token, "note")});
  }
  table.Print(console);
  return 0;
}

Result<int> Revoke(Invocation& invocation) {
  RINGFENCE_ASSIGN(const auto api, Api::Open(invocation.settings));
  RINGFENCE_ASSIGN(const Json token,
                   api->Delete(Target("/v1/tokens", invocation.parsed.Argument(0), "")));
  if (invocation.console.table()) {
    invocation.console.Note("token " + TextOf(token, "id") + " of " + TextOf(token, "principal") +
                            " is revoked");
  } else {
    invocation.console.Show(token);
  }
  return 0;
}

}  // namespace

CommandTable TokenCommands() {
  return {
      {.path = "token create",
       .group = Group::kAccess,
       .summary = "Make a token to act as a principal (audited; administrators only).",
       .options = {{.name = "as", .value = "PRINCIPAL", .help = "whom it acts as; needed"},
                   {.name = "ttl", .value = "TIME", .help = "good for so long, as 8h or 30d"},
                   {.name = "note", .value = "TEXT", .help = "what it is for"}},
       .examples = {{"RINGFENCE_TOKEN=$(ringfence token create -q --as alice@acme.example) "
                     "ringfence whoami",
                     "act as someone else once"}},
       .handler = Create},
      {.path = "token list",
       .group = Group::kAccess,
       .summary = "List the tokens that are in force, never their secrets.",
       .options = {LimitOption()},
       .examples = {{"ringfence token list", "who can act as whom"}},
       .handler = List},
      {.path = "token revoke",
       .group = Group::kAccess,
       .summary = "Revoke a token, by its id.",
       .arguments = {{.name = "TOKEN",
                      .help = "a token's id (not its secret); `ringfence token list` shows them",
                      .completes = Completes::kToken}},
       .examples = {{"ringfence token revoke tok-7k3m9q2x4abc", "at once and for good"}},
       .handler = Revoke},
  };
}

}  // namespace ringfence::cli
