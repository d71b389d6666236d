// Runs a fuzzer's entry point without libFuzzer: over every file of its corpus, and over damaged
// copies of each (every cut, and a deterministic choice of flipped bits), so that any compiler and
// every `make test` tries them. A corpus that is missing or empty is a failure.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

int main(int argc, char** argv) {
  if (argc != 2 || !std::filesystem::is_directory(argv[1])) {
    std::fprintf(stderr, "usage: %s CORPUS-FOLDER (it must exist)\n", argv[0]);
    return 2;
  }
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1])) {
    files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  std::mt19937 random(1);
  std::size_t runs = 0;
  for (const auto& file : files) {
    std::ifstream stream(file, std::ios::binary);
    const std::vector<std::uint8_t> whole{std::istreambuf_iterator<char>(stream), {}};
    (void)LLVMFuzzerTestOneInput(whole.data(), whole.size());
    const std::size_t step = std::max<std::size_t>(1, whole.size() / 200);
    for (std::size_t cut = 0; cut < whole.size(); cut += step, ++runs) {
      const std::vector<std::uint8_t> shorter(whole.begin(),
                                              whole.begin() + static_cast<long>(cut));
      (void)LLVMFuzzerTestOneInput(shorter.data(), shorter.size());
    }
    for (int i = 0; i < 200 && !whole.empty(); ++i, ++runs) {
      std::vector<std::uint8_t> damaged = whole;
      for (unsigned k = 0; k <= random() % 4; ++k) {
        damaged[random() % damaged.size()] ^= static_cast<std::uint8_t>(1U << (random() % 8));
      }
      (void)LLVMFuzzerTestOneInput(damaged.data(), damaged.size());
    }
  }
  std::printf("%zu files, %zu damaged copies\n", files.size(), runs);
  return files.empty() ? 1 : 0;
}
