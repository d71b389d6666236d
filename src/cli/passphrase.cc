#include "cli/passphrase.h"

#include <charconv>

#include "os/file.h"
#include "os/file_owner.h"
#include "os/terminal.h"

namespace ringfence::cli {
namespace {

Result<SecretBytes> FromDescriptor(int fd, std::string_view what) {
  Bytes text;
  text.reserve(kPassphraseBytesMax + 2);  // never moved: nothing of it is left behind
  for (;;) {
    std::byte one{};
    const auto got = os::ReadSome(fd, std::span(&one, 1));
    if (!got.has_value()) {
      const SecretBytes wiped(std::move(text));
      return Prefix(what, got.error());
    }
    if (*got == 0 || one == std::byte{'\n'} || text.size() > kPassphraseBytesMax) {
      break;
    }
    text.push_back(one);
  }
  if (!text.empty() && text.back() == std::byte{'\r'}) {
    text.pop_back();
  }
  return SecretBytes(std::move(text));
}

Result<SecretBytes> FromFile(const std::string& path) {
  RINGFENCE_ASSIGN(const os::FileOwner owner, os::OwnerOf(path));
  if ((owner.mode & 077U) != 0) {
    return Error{Code::kInvalidArgument, "--passphrase-file: others may read or change " + path,
                 "chmod 600 " + path};
  }
  RINGFENCE_ASSIGN(const os::UniqueFd fd, os::OpenRead(path));
  return FromDescriptor(fd.get(), "--passphrase-file");
}

Result<int> NumberOf(const std::string& text) {
  int fd = -1;
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), fd);
  if (wrong != std::errc{} || end != text.data() + text.size() || fd < 0) {
    return Error{Code::kInvalidArgument, "--passphrase-fd: \"" + text + "\" is no descriptor",
                 "write a number, such as 3, and redirect it: 3<FILE"};
  }
  return fd;
}

Result<SecretBytes> Obtain(const Parsed& parsed, Asking asking) {
  if (const auto file = parsed.Value("passphrase-file")) {
    return FromFile(*file);
  }
  if (const auto text = parsed.Value("passphrase-fd")) {
    RINGFENCE_ASSIGN(const int fd, NumberOf(*text));
    return FromDescriptor(fd, "--passphrase-fd");
  }
  auto typed = os::AskSecret("Passphrase of the backup: ", kPassphraseBytesMax);
  if (!typed.has_value() && typed.error().code == Code::kFailedPrecondition) {
    return Error{Code::kInvalidArgument, "no passphrase: there is no terminal to ask at",
                 "give it with --passphrase-file FILE or --passphrase-fd N"};
  }
  if (!typed.has_value() || asking == Asking::kOnce) {
    return typed;
  }
  RINGFENCE_ASSIGN(const SecretBytes again, os::AskSecret("Once more: ", kPassphraseBytesMax));
  if (!typed->Equals(again.Reveal())) {
    return Error{Code::kInvalidArgument, "the two passphrases differ", "try again"};
  }
  return typed;
}

}  // namespace

std::vector<OptionSpec> PassphraseOptions() {
  return {{.name = "passphrase-file",
           .value = "FILE",
           .help = "file whose first line is the passphrase; only its owner may read it",
           .completes = Completes::kFile},
          {.name = "passphrase-fd",
           .value = "N",
           .help = "open descriptor to read the passphrase from"}};
}

Result<SecretBytes> Passphrase(const Parsed& parsed, Asking asking) {
  RINGFENCE_ASSIGN(SecretBytes passphrase, Obtain(parsed, asking));
  const std::size_t least = asking == Asking::kTwice ? kPassphraseBytesLeast : 1;
  if (passphrase.size() < least || passphrase.size() > kPassphraseBytesMax) {
    return Error{
        Code::kInvalidArgument,
        passphrase.size() < least ? "the passphrase is too short" : "the passphrase is too long",
        "use " + std::to_string(least) + " to " + std::to_string(kPassphraseBytesMax) +
            " bytes; it protects every key of the server"};
  }
  return passphrase;
}

}  // namespace ringfence::cli
