#include "cli/context.h"

#include "base/json.h"
#include "os/file.h"

namespace ringfence::cli {
namespace {

Error NothingHere() {
  return Error{Code::kUnavailable, "no Ringfence is running here",
               "start one with `ringfence up` (or `make up`), or name one with --server"};
}

}  // namespace

std::string ContextPath(const Settings& settings) { return settings.state() + "/cli/context.json"; }

std::string FindContext(const Settings& settings) {
  const std::string of_up = ContextPath(settings);
  const std::string of_server = settings.state() + "/server/local.json";
  return !os::Exists(of_up) && os::Exists(of_server) ? of_server : of_up;
}

Result<Connection> ReadContext(const std::string& path) {
  RINGFENCE_ASSIGN(const std::string text, os::ReadText(path, kContextBytesMax));
  const auto read = [&]() -> Result<Connection> {
    RINGFENCE_ASSIGN(const Json json, ParseJson(text, kContextBytesMax));
    RINGFENCE_ASSIGN(JsonReader reader, JsonReader::Open(json));
    Connection connection;
    RINGFENCE_ASSIGN(connection.server, reader.String("server"));
    RINGFENCE_ASSIGN(connection.ca_pem, reader.String("ca_pem", kContextBytesMax));
    RINGFENCE_ASSIGN(const std::string token, reader.String("token"));
    connection.token = SecretBytes(AsBytes(token));
    RINGFENCE_ASSIGN(connection.principal, reader.StringOr("principal", ""));
    RINGFENCE_ASSIGN(connection.log_vkey, reader.StringOr("log_vkey", ""));
    return connection;
  };
  auto connection = read();
  if (!connection.has_value()) {
    return Error{Code::kCorrupt, path + ": " + connection.error().message,
                 "`ringfence up` writes it again"};
  }
  return connection;
}

Status WriteContext(const std::string& path, const Connection& connection) {
  const JsonObject json{{"server", connection.server},
                        {"ca_pem", connection.ca_pem},
                        {"token", ToText(connection.token.Reveal())},
                        {"principal", connection.principal},
                        {"log_vkey", connection.log_vkey}};
  return os::WriteFileDurable(path, AsBytes(CanonicalJson(json) + "\n"), 0600);
}

Result<Connection> Connect(const Settings& settings) {
  const std::string path = FindContext(settings);
  Connection connection;
  const bool have_context = os::Exists(path);
  if (have_context) {
    if (!settings.MayTrust(path)) {
      return Error{Code::kPermissionDenied, path + " belongs to another user",
                   "name the folder with --state " + settings.state() + " if you trust it"};
    }
    auto context = ReadContext(path);
    if (!context.has_value()) {
      Error error = context.error();
      if (error.code == Code::kPermissionDenied) {
        error.hint =
            "run it as the user who ran `ringfence up`, or set RINGFENCE_TOKEN, "
            "RINGFENCE_SERVER and RINGFENCE_CA";
      }
      return error;
    }
    connection = std::move(context).value();
  } else if (!settings.Given(Setting::kClientServer)) {
    return NothingHere();
  }
  if (settings.Given(Setting::kClientServer)) {
    connection.server = settings.Text(Setting::kClientServer);
  }
  if (settings.Given(Setting::kClientCa)) {
    auto ca = os::ReadText(settings.Text(Setting::kClientCa), kContextBytesMax);
    if (!ca.has_value()) {
      return Prefix("the CA's certificate", ca.error());
    }
    if (*ca != connection.ca_pem) {
      connection.token = SecretBytes();
    }
    connection.ca_pem = std::move(ca).value();
  }
  if (settings.Given(Setting::kClientToken)) {
    connection.token = SecretBytes(settings.token().Reveal());
    connection.principal.clear();
  }
  if (connection.ca_pem.empty()) {
    return Error{Code::kInvalidArgument,
                 "no certificate by which " + connection.server + " could prove itself",
                 "name its CA's PEM file with --ca or RINGFENCE_CA"};
  }
  if (connection.token.size() == 0) {
    return Error{Code::kUnauthenticated, "no token for " + connection.server,
                 "set RINGFENCE_TOKEN to one that an administrator made with `ringfence token "
                 "create`"};
  }
  return connection;
}

}  // namespace ringfence::cli
