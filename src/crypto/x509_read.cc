#include <openssl/asn1.h>
#include <openssl/err.h>
#include <openssl/obj_mac.h>
#include <openssl/x509v3.h>

#include <array>
#include <cstdio>
#include <optional>

#include "base/encoding.h"
#include "crypto/openssl.h"
#include "crypto/sha256.h"
#include "crypto/x509.h"

namespace ringfence::crypto {
namespace {

using AltNames = std::unique_ptr<GENERAL_NAMES, Freer<GENERAL_NAMES_free>>;

std::string Text(const ASN1_STRING* text) {
  return std::string(reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
                     static_cast<std::size_t>(ASN1_STRING_length(text)));
}

// RFC 5952: the first longest run of two or more zero groups becomes "::".
std::string Ipv6Text(const std::array<unsigned, 8>& groups) {
  std::size_t run_at = 8;
  std::size_t run_size = 1;
  for (std::size_t i = 0; i < 8;) {
    std::size_t end = i;
    while (end < 8 && groups[end] == 0) {
      ++end;
    }
    if (end - i > run_size) {
      run_at = i;
      run_size = end - i;
    }
    i = end + 1;
  }
  std::string text;
  for (std::size_t i = 0; i < 8; ++i) {
    if (i == run_at) {
      text += "::";
      i += run_size - 1;
      continue;
    }
    char group[8];
    (void)std::snprintf(group, sizeof group, "%x", groups[i]);
    text += (text.empty() || text.ends_with(':') ? "" : ":") + std::string(group);
  }
  return text;
}

// None when it is no address: neither 4 nor 16 bytes.
std::optional<std::string> AddressText(const std::string& raw) {
  const auto byte = [&](std::size_t i) {
    return static_cast<unsigned>(static_cast<unsigned char>(raw[i]));
  };
  if (raw.size() == 4) {
    return std::to_string(byte(0)) + "." + std::to_string(byte(1)) + "." + std::to_string(byte(2)) +
           "." + std::to_string(byte(3));
  }
  if (raw.size() == 16) {
    std::array<unsigned, 8> groups{};
    for (std::size_t i = 0; i < 8; ++i) {
      groups[i] = byte(2 * i) << 8U | byte(2 * i + 1);
    }
    return Ipv6Text(groups);
  }
  return std::nullopt;
}

void ReadNames(X509* certificate, CertificateFacts& facts) {
  const AltNames names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  const int count = names == nullptr ? 0 : sk_GENERAL_NAME_num(names.get());
  for (int i = 0; i < count; ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(names.get(), i);
    int type = 0;
    const void* const value = GENERAL_NAME_get0_value(name, &type);
    const auto* const text = static_cast<const ASN1_STRING*>(value);
    if (type == GEN_DNS) {
      facts.dns.push_back(Text(text));
    } else if (type == GEN_URI) {
      facts.uris.push_back(Text(text));
    } else if (type == GEN_IPADD) {
      if (auto address = AddressText(Text(text))) {
        facts.ips.push_back(*std::move(address));
      }
    }
  }
  ERR_clear_error();
}

}  // namespace

Result<CertificateFacts> ReadCertificate(std::string_view pem) {
  RINGFENCE_ASSIGN(const Cert certificate, ParseCertificate(pem));
  X509* const cert = certificate.get();
  CertificateFacts facts;
  const X509_NAME* const subject = X509_get_subject_name(cert);
  const int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
  if (at >= 0) {
    unsigned char* text = nullptr;
    const int size =
        ASN1_STRING_to_UTF8(&text, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
    if (size > 0) {
      facts.common_name.assign(reinterpret_cast<const char*>(text), static_cast<std::size_t>(size));
    }
    OPENSSL_free(text);
  }
  ReadNames(cert, facts);
  RINGFENCE_ASSIGN(facts.not_before, ToTimestamp(X509_get0_notBefore(cert)));
  RINGFENCE_ASSIGN(facts.not_after, ToTimestamp(X509_get0_notAfter(cert)));
  unsigned char* der = nullptr;
  const int der_bytes = i2d_X509(cert, &der);
  if (der_bytes <= 0) {
    return LibraryError("encoding a certificate");
  }
  facts.fingerprint = Hex(Sha256(
      {ByteView(reinterpret_cast<const std::byte*>(der), static_cast<std::size_t>(der_bytes))}));
  OPENSSL_free(der);
  const ASN1_INTEGER* const serial = X509_get0_serialNumber(cert);
  facts.serial = Hex(AsBytes(Text(serial)));
  return facts;
}

}  // namespace ringfence::crypto
