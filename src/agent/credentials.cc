#include "agent/credentials.h"

#include "base/encoding.h"
#include "base/json.h"
#include "crypto/x509.h"
#include "net/bootstrap.h"
#include "os/file.h"

namespace ringfence::agent {
namespace {

constexpr std::size_t kFileBytesMax = 256 * 1024;
constexpr std::size_t kPemBytesMax = 64 * 1024;
constexpr Milliseconds kRenewWhenLeft = std::chrono::hours(56);  // a third of a life

Result<Json> Post(net::Client& client, const std::string& target, const JsonObject& body) {
  net::ClientRequest request;
  request.method = "POST";
  request.target = target;
  request.body = CanonicalJson(body);
  RINGFENCE_ASSIGN(const net::Response response, client.Send(request));
  if (response.status >= 300) {
    return net::ErrorFromResponse(response.status, response.body);
  }
  return ParseJson(response.body, kFileBytesMax);
}

// What the server answers to join and renew.
Status TakeAnswer(const Json& json, Credentials& credentials) {
  RINGFENCE_ASSIGN(auto reader, JsonReader::Open(json));
  RINGFENCE_ASSIGN(credentials.certificate_pem, reader.String("certificate", kPemBytesMax));
  RINGFENCE_ASSIGN(credentials.ca_pem, reader.String("ca", kPemBytesMax));
  RINGFENCE_ASSIGN(credentials.log_vkey, reader.String("log_vkey", 512));
  return reader.Finish();
}

}  // namespace

Result<Credentials> LoadCredentials(const std::string& path) {
  RINGFENCE_ASSIGN(const std::string text, os::ReadText(path, kFileBytesMax));
  RINGFENCE_ASSIGN(const Json json, ParseJson(text, kFileBytesMax));
  RINGFENCE_ASSIGN(auto reader, JsonReader::Open(json));
  Credentials credentials;
  RINGFENCE_ASSIGN(credentials.server, reader.String("server", 2048));
  RINGFENCE_ASSIGN(credentials.ca_pem, reader.String("ca", kPemBytesMax));
  RINGFENCE_ASSIGN(credentials.certificate_pem, reader.String("certificate", kPemBytesMax));
  RINGFENCE_ASSIGN(credentials.private_key_pem, reader.String("key", kPemBytesMax));
  RINGFENCE_ASSIGN(credentials.log_vkey, reader.String("log_vkey", 512));
  RINGFENCE_TRY(reader.Finish());
  return credentials;
}

Status SaveCredentials(const std::string& path, const Credentials& credentials) {
  const JsonObject json{{"server", credentials.server},
                        {"ca", credentials.ca_pem},
                        {"certificate", credentials.certificate_pem},
                        {"key", credentials.private_key_pem},
                        {"log_vkey", credentials.log_vkey}};
  return os::WriteFileDurable(path, AsBytes(CanonicalJson(json)), 0600);
}

net::ClientOptions OptionsFor(const Credentials& credentials) {
  net::ClientOptions options;
  options.address = credentials.server;
  options.ca_pem = credentials.ca_pem;
  options.certificate_chain_pem = credentials.certificate_pem;
  options.private_key_pem = credentials.private_key_pem;
  return options;
}

Result<Credentials> Join(const isolate::AgentJoin& join, const isolate::JailerHello& jailer,
                         const std::string& witness_vkey, const std::string& node) {
  RINGFENCE_ASSIGN(const std::string ca, net::FetchCa(join.server, join.ca));
  RINGFENCE_ASSIGN(const crypto::KeyAndRequest made, crypto::MakeRequest(node));
  net::ClientOptions options;
  options.address = join.server;
  options.ca_pem = ca;
  RINGFENCE_ASSIGN(const auto client, net::Client::Create(std::move(options)));
  RINGFENCE_ASSIGN(const Json answer, Post(*client, "/v1/agent/join",
                                           {{"secret", Base64Url(join.secret.Reveal())},
                                            {"request", made.request_pem},
                                            {"receipt_key", jailer.public_key},
                                            {"key_proof", jailer.key_proof},
                                            {"witness", witness_vkey}}));
  Credentials credentials;
  credentials.server = join.server;
  credentials.private_key_pem = made.private_key_pem;
  RINGFENCE_TRY(TakeAnswer(answer, credentials));
  if (credentials.ca_pem != ca) {
    return Error{Code::kCorrupt, "the server answered with another CA than it proved itself by"};
  }
  return credentials;
}

Result<bool> NeedsRenewal(const Credentials& credentials, Timestamp now) {
  RINGFENCE_ASSIGN(const auto facts, crypto::ReadCertificate(credentials.certificate_pem));
  return facts.not_after - now < kRenewWhenLeft;
}

Result<Credentials> Renew(const Credentials& credentials, const std::string& node, Line& line) {
  RINGFENCE_ASSIGN(const crypto::KeyAndRequest made, crypto::MakeRequest(node));
  RINGFENCE_ASSIGN(const Json answer,
                   line.Send("POST", "/v1/agent/renew", JsonObject{{"request", made.request_pem}}));
  Credentials renewed = credentials;
  renewed.private_key_pem = made.private_key_pem;
  RINGFENCE_TRY(TakeAnswer(answer, renewed));
  return renewed;
}

}  // namespace ringfence::agent
