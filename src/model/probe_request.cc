#include "model/probe_request.h"

#include <algorithm>

namespace ringfence::model {
namespace {

Error Wrong(std::string field, std::string message) {
  return Error{Code::kInvalidArgument, std::move(message), {}, std::move(field)};
}

bool IsWord(std::string_view text) {
  return !text.empty() && text.size() <= 64 && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

bool IsFact(const std::string& text) {
  const std::size_t equals = text.find('=');
  return equals != std::string::npos && IsWord(std::string_view(text).substr(0, equals)) &&
         text.size() <= kProbeFactBytesMax &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

}  // namespace

Status ProbeRequest::Validate() const {
  if (node.empty()) {
    return Wrong("probe.node", "probe.node is empty");
  }
  if (!IsWord(name)) {
    return Wrong("probe.name", "probe.name is no probe's name");
  }
  if (role != "victim" && role != "attack") {
    return Wrong("probe.role", "probe.role must be victim or attack");
  }
  if (walls_away.size() > kWallsMax || !std::all_of(walls_away.begin(), walls_away.end(), IsWord)) {
    return Wrong("probe.walls_away", "probe.walls_away must be names of walls");
  }
  if (facts.size() > kProbeFactsMax || !std::all_of(facts.begin(), facts.end(), IsFact)) {
    return Wrong("probe.facts",
                 "probe.facts must be KEY=VALUE texts, at most " + std::to_string(kProbeFactsMax));
  }
  return {};
}

std::vector<std::string> ProbeRequest::Command() const {
  std::vector<std::string> command = {kProbePath, name, role};
  command.insert(command.end(), facts.begin(), facts.end());
  return command;
}

}  // namespace ringfence::model
