#include "jailer/identity.h"

#include "base/encoding.h"
#include "os/file.h"
#include "os/file_owner.h"
#include "os/identity.h"

namespace ringfence::jailer {
namespace {

constexpr std::size_t kKeyBytesMax = 256;
constexpr unsigned kOthersMask = 077;

std::string WithoutNewline(std::string text) {
  while (!text.empty() && text.back() == '\n') {
    text.pop_back();
  }
  return text;
}

Result<crypto::SigningKey> LoadKey(const std::string& path) {
  if (!os::Exists(path)) {
    crypto::SigningKey key = crypto::SigningKey::Generate();
    const std::string text = Base64(key.seed().Reveal()) + "\n";
    RINGFENCE_TRY(os::WriteFileDurable(path, AsBytes(text), 0600));
    return key;
  }
  RINGFENCE_ASSIGN(const os::FileOwner owner, os::OwnerOf(path));
  if (owner.uid != os::UserId() || (owner.mode & kOthersMask) != 0) {
    return Error{Code::kPermissionDenied, path + " was made by another user, or others can read it",
                 "remove the state folder and join the node again"};
  }
  RINGFENCE_ASSIGN(const std::string text, os::ReadText(path, kKeyBytesMax));
  auto seed = FromBase64(WithoutNewline(text));
  if (!seed.has_value()) {
    return Error{Code::kCorrupt, path + " does not hold a key",
                 "restore it from a backup, or remove it and join the node again"};
  }
  return crypto::SigningKey::FromSeed(SecretBytes(std::move(*seed)));
}

Result<isolate::JoinToken> ReadToken(const std::string& path) {
  RINGFENCE_ASSIGN(const os::FileOwner owner, os::OwnerOf(path));
  if ((owner.mode & kOthersMask) != 0) {
    return Error{Code::kPermissionDenied, path + " holds a join token and others can read it",
                 "chmod 600 " + path};
  }
  RINGFENCE_ASSIGN(const std::string text, os::ReadText(path, isolate::kJoinTokenBytesMax));
  auto token = isolate::ParseJoinToken(text);
  if (!token.has_value()) {
    return Prefix(path, token.error());
  }
  return token;
}

}  // namespace

Result<Identity> LoadIdentity(const std::string& folder, const std::string& join_token_file) {
  RINGFENCE_ASSIGN(crypto::SigningKey key, LoadKey(folder + "/key"));
  Identity identity{std::move(key), std::nullopt, "", std::nullopt};
  const std::string grant_path = folder + "/grant.pub";
  if (!join_token_file.empty()) {
    RINGFENCE_ASSIGN(const isolate::JoinToken token, ReadToken(join_token_file));
    RINGFENCE_TRY(
        os::WriteFileDurable(grant_path, AsBytes(Base64(token.grant_key.raw()) + "\n"), 0600));
    identity.key_proof =
        isolate::JailerKeyProof(isolate::JailerHalf(token.secret), identity.key.public_key());
    identity.agent_join =
        isolate::AgentJoin{token.server, token.ca, isolate::AgentHalf(token.secret)};
  }
  if (os::Exists(grant_path)) {
    RINGFENCE_ASSIGN(const std::string text, os::ReadText(grant_path, kKeyBytesMax));
    RINGFENCE_ASSIGN(const Bytes raw, FromBase64(WithoutNewline(text)));
    RINGFENCE_ASSIGN(identity.grant_key, crypto::PublicKey::FromRaw(raw));
  }
  return identity;
}

}  // namespace ringfence::jailer
