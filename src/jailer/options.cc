#include "jailer/options.h"

#include <algorithm>
#include <charconv>
#include <map>

#include "isolate/box_config.h"
#include "isolate/name_rules.h"
#include "isolate/names.h"
#include "model/box_request.h"
#include "os/links.h"

namespace ringfence::jailer {
namespace {

// Ids below are of the system and of people.
constexpr unsigned kUidBaseLeast = 100'000;
constexpr unsigned kUidBaseMost = 2'000'000'000;
constexpr std::size_t kMountsMax = 64;
constexpr unsigned kIdMost = 0x7fffffff;

Error Bad(const std::string& option, const std::string& why) {
  return Error{Code::kInvalidArgument, option + " " + why, "see ringfence-jailer --help", option};
}

Result<unsigned> Number(const std::string& option, const std::string& text, unsigned least,
                        unsigned most) {
  unsigned value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size() || value < least ||
      value > most) {
    return Bad(option,
               "must be a number from " + std::to_string(least) + " to " + std::to_string(most));
  }
  return value;
}

constexpr const char* kPaths[] = {"--state", "--worker", "--init", "--driver-root", "--box-root"};

// It is started by us, or it connects to us.
Status TakeAgent(const std::string& exec, const std::string& socket, Options& options) {
  if (exec.empty() == socket.empty()) {
    return Bad("--agent-exec", "or --agent-socket must be given, and not both");
  }
  if (!(exec + socket).starts_with('/')) {
    return Bad(socket.empty() ? "--agent-exec" : "--agent-socket", "must be an absolute path");
  }
  if (!socket.empty() && !options.agent_arguments.empty()) {
    return Bad("--", "is for the agent that --agent-exec starts");
  }
  options.agent_exec = exec;
  options.agent_socket = socket;
  return {};
}

}  // namespace

Result<std::map<std::string, MountPlace>> ParseMounts(const std::string& text) {
  std::map<std::string, MountPlace> mounts;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    std::string one = text.substr(at, end - at);
    at = end + 1;
    const std::size_t equals = one.find('=');
    MountPlace place;
    if (one.ends_with(":rw")) {
      place.writable = true;
      one.resize(one.size() - 3);
    }
    const std::string name = one.substr(0, equals);
    place.path = equals == std::string::npos ? "" : one.substr(equals + 1);
    if (!model::CheckMount({name, "/mnt/x", false}).has_value() || !place.path.starts_with('/') ||
        place.path == "/") {
      return Bad("--mounts",
                 "must be NAME=DIR or NAME=DIR:rw with commas between, DIR absolute: \"" +
                     one.substr(0, 200) + "\" is not");
    }
    if (!mounts.emplace(name, place).second || mounts.size() > kMountsMax) {
      return Bad("--mounts", "names " + name + " twice, or holds over " +
                                 std::to_string(kMountsMax) + " mounts");
    }
  }
  return mounts;
}

Result<Options> ParseOptions(const std::vector<std::string>& words) {
  Options options;
  std::map<std::string, std::string> given = {
      {"--state", ""},           {"--agent-exec", ""},
      {"--agent-uid", ""},       {"--agent-gid", ""},
      {"--worker", ""},          {"--init", ""},
      {"--driver-root", "/"},    {"--node", ""},
      {"--join-token-file", ""}, {"--uid-base", "1000000000"},
      {"--box-root", "/"},       {"--agent-socket", ""},
      {"--log-format", "text"},  {"--image-verifier", ""},
      {"--mounts", ""},          {"--uplink", ""},
      {"--cdi-dir", ""},         {"--hook", ""},
      {"--resolvers", ""}};
  std::map<std::string, bool> seen;
  std::size_t at = 0;
  for (; at < words.size() && words[at] != "--"; at += 2) {
    const auto option = given.find(words[at]);
    if (option == given.end()) {
      return Bad(words[at], "is not an option");
    }
    if (at + 1 >= words.size() || seen[words[at]]) {
      return Bad(words[at], at + 1 >= words.size() ? "needs a value" : "is given twice");
    }
    seen[words[at]] = true;
    option->second = words[at + 1];
  }
  if (at < words.size()) {
    options.agent_arguments.assign(words.begin() + static_cast<std::ptrdiff_t>(at) + 1,
                                   words.end());
  }
  for (const char* path : kPaths) {
    if (!given[path].starts_with('/')) {
      return Bad(path, "must be an absolute path");
    }
  }
  if (!isolate::IsName(given["--node"])) {
    return Bad("--node", "must be a name of letters, digits, '.', '_' and '-'");
  }
  RINGFENCE_ASSIGN(options.agent_uid, Number("--agent-uid", given["--agent-uid"], 0, kIdMost));
  RINGFENCE_ASSIGN(options.agent_gid, Number("--agent-gid", given["--agent-gid"], 0, kIdMost));
  RINGFENCE_ASSIGN(options.uid_base,
                   Number("--uid-base", given["--uid-base"], kUidBaseLeast, kUidBaseMost));
  options.state = given["--state"];
  RINGFENCE_TRY(TakeAgent(given["--agent-exec"], given["--agent-socket"], options));
  if (given["--log-format"] != "text" && given["--log-format"] != "json") {
    return Bad("--log-format", "must be text or json");
  }
  if (!given["--uplink"].empty() &&
      (!isolate::IsName(given["--uplink"]) || given["--uplink"].size() > os::kLinkNameBytesMax)) {
    return Bad("--uplink", "must be the name of an interface");
  }
  options.uplink = given["--uplink"];
  const auto resolvers = isolate::ParseResolvers(given["--resolvers"]);
  if (!resolvers.has_value()) {
    return Bad("--resolvers", resolvers.error().message);
  }
  options.resolvers = *resolvers;
  options.log_json = given["--log-format"] == "json";
  options.image_verifier = given["--image-verifier"];
  if (!options.image_verifier.empty() && !options.image_verifier.starts_with('/')) {
    return Bad("--image-verifier", "must be an absolute path");
  }
  RINGFENCE_ASSIGN(options.mounts, ParseMounts(given["--mounts"]));
  options.worker = given["--worker"];
  options.init = given["--init"];
  options.driver_root = given["--driver-root"];
  options.node = given["--node"];
  options.join_token_file = given["--join-token-file"];
  options.box_root = given["--box-root"];
  options.cdi_dir = given["--cdi-dir"];
  options.hook = given["--hook"];
  if (!options.cdi_dir.empty() &&
      (!options.cdi_dir.starts_with('/') || !options.hook.starts_with('/'))) {
    return Bad("--cdi-dir", "and --hook go together, and must be absolute paths");
  }
  return options;
}

}  // namespace ringfence::jailer
