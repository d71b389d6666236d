// ringfence-unpack: the short-lived helper that looks into images, so that nobody with a right has
// to. Prints one JSON document and ends; its tasks are in unpack/task.h.
// Exit status: 0 done, 1 {"error":{"code","message","hint"}} says why not.

#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "base/code.h"
#include "base/json.h"
#include "unpack/task.h"

namespace {

constexpr std::size_t kTextBytesMax = 4000;

// Cut where a character begins.
std::string Cut(std::string text) {
  if (text.size() > kTextBytesMax) {
    std::size_t end = kTextBytesMax;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0U) == 0x80U) {
      --end;
    }
    text.resize(end);
  }
  return text;
}

bool Print(std::string text) {
  text += '\n';
  return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() &&
         std::fflush(stdout) == 0;
}

}  // namespace

int main(int argc, char** argv) {
  using ringfence::JsonObject;
  const auto text = ringfence::image::RunTask({argv + (argc > 0 ? 1 : 0), argv + argc});
  if (text.has_value()) {
    return Print(*text) ? 0 : 1;
  }
  const ringfence::Error& error = text.error();
  (void)Print(ringfence::CanonicalJson(
      JsonObject{{"error", JsonObject{{"code", std::string(ringfence::Facts(error.code).label)},
                                      {"message", Cut(error.message)},
                                      {"hint", Cut(error.hint)}}}}));
  return 1;
}
