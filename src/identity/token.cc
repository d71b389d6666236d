#include "identity/token.h"

#include "base/encoding.h"
#include "crypto/sha256.h"

namespace ringfence::identity {
namespace {

Digest Mac(const SecretBytes& key, std::string_view id) {
  return crypto::HmacSha256(key.Reveal(), AsBytes("ringfence token v1\n" + std::string(id)));
}

}  // namespace

std::string TokenMint::Mint(std::string_view id) const {
  return "rf_" + std::string(id) + "_" + Base64Url(Mac(key_, id));
}

Result<std::string> TokenMint::Open(std::string_view token) const {
  const Error bad{Code::kUnauthenticated, "the token is not one of ours",
                  "sign in again, or ask an administrator for `ringfence token create --as YOU`"};
  if (token.size() > kTokenBytesMax || !token.starts_with("rf_")) {
    return bad;
  }
  token.remove_prefix(3);
  const std::size_t cut = token.find('_');
  if (cut == std::string_view::npos) {
    return bad;
  }
  const std::string_view id = token.substr(0, cut);
  const auto secret = FromBase64Url(token.substr(cut + 1));
  if (!secret.has_value() || !SecretBytes(ByteView(Mac(key_, id))).Equals(*secret)) {
    return bad;
  }
  return std::string(id);
}

}  // namespace ringfence::identity
