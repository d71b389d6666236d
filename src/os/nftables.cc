#include "os/nftables.h"

#include <nftables/libnftables.h>

#include <cerrno>
#include <cstdio>

#include "os/error.h"

namespace ringfence::os {
namespace {

constexpr std::size_t kListBytesMax = std::size_t{4} << 20U;
constexpr std::size_t kComplaintBytesMax = 400;

struct Free {
  void operator()(nft_ctx* context) const { nft_ctx_free(context); }
};

// The library's complaint, on one line; it quotes the command below it.
std::string FirstLine(const char* text) {
  std::string line(text == nullptr ? "" : text);
  line = line.substr(0, line.find('\n'));
  if (line.empty()) {
    return "no reason given";
  }
  for (char& c : line) {
    c = static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  }
  return line.substr(0, kComplaintBytesMax);
}

}  // namespace

struct Nftables::Library {
  std::unique_ptr<nft_ctx, Free> context;
};

Nftables::Nftables(std::unique_ptr<Library> library) : library_(std::move(library)) {}
Nftables::Nftables(Nftables&&) noexcept = default;
Nftables& Nftables::operator=(Nftables&&) noexcept = default;
Nftables::~Nftables() = default;

Result<Nftables> Nftables::Open() {
  auto library = std::make_unique<Library>();
  library->context.reset(nft_ctx_new(NFT_CTX_DEFAULT));
  if (library->context == nullptr) {
    return Error{Code::kUnavailable, "libnftables cannot be used",
                 "this kernel may have no nf_tables: modprobe nf_tables"};
  }
  nft_ctx* const context = library->context.get();
  if (nft_ctx_buffer_output(context) != 0 || nft_ctx_buffer_error(context) != 0) {
    return Error{Code::kExhausted, "libnftables has no memory"};
  }
  nft_ctx_output_set_flags(context, NFT_CTX_OUTPUT_JSON | NFT_CTX_OUTPUT_NUMERIC_ALL);
  return Nftables(std::move(library));
}

Status Nftables::Apply(const std::string& commands) {
  nft_ctx* const context = library_->context.get();
  const int failed = nft_run_cmd_from_buffer(context, commands.c_str());
  const std::string said = FirstLine(nft_ctx_get_error_buffer(context));
  (void)nft_ctx_get_output_buffer(context);
  if (failed != 0) {
    return Error{Code::kUnavailable, "nftables refused the rules: " + said};
  }
  return {};
}

Result<Json> Nftables::List(const std::string& what) {
  nft_ctx* const context = library_->context.get();
  const int failed = nft_run_cmd_from_buffer(context, ("list " + what).c_str());
  const char* const output = nft_ctx_get_output_buffer(context);
  const std::string text(output == nullptr ? "" : output);
  if (failed != 0) {
    return Error{Code::kUnavailable, "nftables does not list " + what + ": " +
                                         FirstLine(nft_ctx_get_error_buffer(context))};
  }
  return ParseJson(text, kListBytesMax);
}

}  // namespace ringfence::os
