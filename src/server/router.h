#pragma once

// The one table of routes: method, path, who may call, which action policy decides on.

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "net/http.h"
#include "net/server.h"
#include "policy/authorizer.h"
#include "server/core.h"

namespace ringfence::server {

using Params = std::map<std::string, std::string, std::less<>>;

// One request with everything a route needs.
struct Call {
  Core& core;
  net::Server* http;  // for waiting
  const net::Request& request;
  Params params;  // from the path
  Caller caller;  // empty for open routes
  // What policy said when this call was let in: by the router, or where a route asks itself, by the
  // last Authorize. For Note.
  mutable policy::Decision decision = {};
};

enum class Door {
  kOpen,   // nobody in particular
  kToken,  // a person or program with a token; policy decides
  kNode,   // an agent with a certificate of ours
};

struct Route {
  std::string_view method;
  std::string_view path;  // "/v1/leases/{lease}"; a last "{file}" takes the rest, slashes too
  Door door;
  std::optional<policy::Action> action;  // for kToken
  // The route asks policy itself, as what it is about is in the body or in the record.
  bool decides_itself;
  void (*handler)(const Call& call, const net::Responder& responder);
};

std::span<const Route> AllRoutes();

// Finds the route, lets the caller in (or answers 401, 403, 404, 405), and calls it.
void Dispatch(Core& core, net::Server* http, const net::Request& request,
              const net::Responder& responder);

// Asks policy, and records a denial. kPermissionDenied with the reason.
Status Authorize(const Call& call, policy::Action action, const model::TenantPath& tenant,
                 const std::string& lease = {});
// Puts a decision into an entry: what it was, why, the rules that made it and the version of the
// policy that they are of. Every entry of something that a caller was allowed to do has it.
void Note(const Core& core, const policy::Decision& decision, audit::Entry& entry);
void Note(const Call& call, audit::Entry& entry);  // the call's
policy::Decision Decide(const Call& call, policy::Action action, const model::TenantPath& tenant);

}  // namespace ringfence::server
