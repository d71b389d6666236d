#pragma once

// What the cedar commands share: their options, and reading what those name.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cedar/ast.h"
#include "cedar/entities.h"
#include "cedar/evaluator.h"
#include "cedar/schema.h"
#include "cli/command.h"

namespace ringfence::cli {

// The exit codes of the reference's command line.
inline constexpr int kCedarFailure = 1;
inline constexpr int kCedarDeny = 2;
inline constexpr int kCedarInvalid = 3;

OptionSpec PoliciesOption();
OptionSpec PolicyFormatOption();
OptionSpec LinksOption();
OptionSpec SchemaOption();
OptionSpec SchemaFormatOption();
OptionSpec EntitiesOption();
std::vector<OptionSpec> RequestOptions();

struct LoadedPolicies {
  std::string text;  // empty when they came as JSON
  std::string file;
  cedar::PolicySet set;
};
Result<LoadedPolicies> LoadPolicies(const Parsed& parsed);
Result<std::optional<cedar::Schema>> LoadCedarSchema(const Parsed& parsed);
Result<cedar::Entities> LoadEntities(const Parsed& parsed, const cedar::Schema* schema);
// From --request-json, or from --principal, --action, --resource and --context.
Result<cedar::Request> LoadRequest(const Parsed& parsed, const cedar::Schema* schema);

Result<std::string> ReadCedarFile(const std::string& path);  // "-": standard input
// Runs a handler so that every failure exits with 1: 2 would say "deny".
Result<int> CedarHandler(Invocation& invocation, Result<int> (*handler)(Invocation&));

CommandTable CedarToolCommands();

}  // namespace ringfence::cli
