#include "store/postgres_options.h"

#include <map>
#include <string_view>

#include "store/postgres_library.h"

namespace ringfence::store {
namespace {

constexpr std::string_view kForm =
    "write it as postgresql://USER@HOST/DATABASE?sslmode=verify-full&sslrootcert=FILE, or "
    "postgresql://USER@/DATABASE?host=/run/postgresql on this machine";

// Debian's; libpq itself would look into the environment first.
constexpr std::string_view kSocketFolder = "/var/run/postgresql";

using Keywords = std::map<std::string, std::string>;

Keywords Given(const Libpq& libpq, PQconninfoOption* options) {
  Keywords given;
  for (const PQconninfoOption* option = options; option != nullptr && option->keyword != nullptr;
       ++option) {
    if (option->val != nullptr && *option->val != '\0') {
      given[option->keyword] = option->val;
    }
  }
  libpq.PQconninfoFree(options);
  return given;
}

bool IsLocal(std::string_view host) {
  return host.starts_with('/') || host.starts_with('@') || host == "localhost" || host == "::1" ||
         (host.starts_with("127.") && host.find_first_not_of("0123456789.") == host.npos);
}

// libpq takes a list, and tries one after the other.
bool AllLocal(std::string_view hosts) {
  for (;;) {
    const std::size_t comma = hosts.find(',');
    if (!IsLocal(hosts.substr(0, comma))) {
      return false;
    }
    if (comma == std::string_view::npos) {
      return true;
    }
    hosts.remove_prefix(comma + 1);
  }
}

Status Check(const Keywords& given) {
  if (given.contains("password")) {
    return Error{Code::kInvalidArgument, "the database URL holds a password",
                 "take it out, put a line HOST:PORT:DATABASE:USER:PASSWORD into a file of mode "
                 "0600, and name that with ?passfile=FILE; or use a client certificate"};
  }
  if (given.contains("service")) {
    return Error{Code::kInvalidArgument, "the database URL names a service file",
                 "say host, user and database in the URL"};
  }
  const auto ssl_mode = given.find("sslmode");
  const bool proven = ssl_mode != given.end() && ssl_mode->second == "verify-full";
  const auto address = given.find("hostaddr");  // where libpq goes, if it is there
  if (!proven && !AllLocal(address != given.end() ? address->second : given.at("host"))) {
    return Error{Code::kInvalidArgument,
                 "the database is on another machine, and nothing proves that it is the right one",
                 "add sslmode=verify-full to its URL, and sslrootcert=FILE with the certificate of "
                 "the CA that proves it"};
  }
  return {};
}

}  // namespace

Result<PostgresOptions> ParsePostgresUrl(const std::string& url) {
  RINGFENCE_ASSIGN(const Libpq* const libpq, LoadLibpq());
  char* complaint = nullptr;
  PQconninfoOption* const parsed = libpq->PQconninfoParse(url.c_str(), &complaint);
  if (parsed == nullptr) {
    libpq->PQfreemem(complaint);  // may repeat any part of the URL
    return Error{Code::kInvalidArgument, "the database URL cannot be parsed", std::string(kForm)};
  }
  Keywords given = Given(*libpq, parsed);
  // What the URL leaves open libpq takes from the environment; that must pass the checks too.
  const Keywords environment = Given(*libpq, libpq->PQconndefaults());
  for (const char* keyword : {"host", "hostaddr", "sslmode"}) {
    const auto found = environment.find(keyword);
    if (found != environment.end()) {
      given.emplace(keyword, found->second);
    }
  }
  for (const auto& [keyword, value] : std::initializer_list<Keywords::value_type>{
           {"host", std::string(kSocketFolder)},
           {"application_name", "ringfence"},
           {"client_encoding", "UTF8"},
           {"target_session_attrs", "read-write"},
           {"gssencmode", "disable"},
           {"ssl_min_protocol_version", "TLSv1.3"},
           // A line that was cut is noticed in about ten seconds.
           {"keepalives_idle", "5"},
           {"keepalives_interval", "2"},
           {"keepalives_count", "3"},
           {"tcp_user_timeout", "10000"}}) {
    given.emplace(keyword, value);
  }
  RINGFENCE_TRY(Check(given));
  PostgresOptions options;
  options.shown = given["host"] + (given.contains("dbname") ? "/" + given["dbname"] : "");
  options.keywords.assign(given.begin(), given.end());
  return options;
}

}  // namespace ringfence::store
