// The program of `make gpu-test`: asks a driver's libraries what our stand-ins claim to answer,
// reads the inventory, scrubs every card, and prints the results as Markdown.
//   gpu_check --driver-root R          a real driver (R is / as a rule) or a simulated one
//   gpu_check --simulate LIB-FOLDER    a simulated driver made for this run
// Exit status 0: every expected answer came and every card was scrubbed without a mismatch.
// Every card's memory is overwritten: run it where no one else uses them.

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <string_view>

#include "base/json.h"
#include "gpu/inventory.h"
#include "gpu/library.h"
#include "gpu/scrub.h"
#include "gpu/simulated_root.h"
#include "questions.h"
#include "simulated.h"

namespace ringfence::gpu {
namespace {

Status Ask(const std::string& root, Table& table) {
  RINGFENCE_ASSIGN(const Library nvml, Library::Open(root, kNvmlName));
  RINGFENCE_ASSIGN(const Library cuda, Library::Open(root, kCudaName));
  table.Want("a real driver is not taken for a simulated one",
             nvml.simulated() == IsSimulatedRoot(root) && cuda.simulated() == IsSimulatedRoot(root),
             true);
  table.Want("NVML could be asked", AskNvml(LoadNvml(nvml), table), true);
  table.Want("CUDA could be asked", AskCuda(LoadCuda(cuda), table), true);
  return {};
}

Status TryScrub(const std::string& root, Table& table) {
  RINGFENCE_ASSIGN(const Inventory inventory, ReadInventory(root));
  std::printf("\n### Inventory\n\n```json\n%s\n```\n",
              PrettyJson(InventoryToJson(inventory)).c_str());
  std::vector<std::string> uuids;
  for (const Gpu& gpu : inventory.gpus) {
    uuids.push_back(gpu.uuid);
  }
  RINGFENCE_ASSIGN(const ScrubReport report, Scrub(root, uuids));
  std::printf("\n### Scrub\n\n```json\n%s\n```\n", ScrubReportToJson(report).c_str());
  std::printf(
      "\n| card | memory | reached | residue | mismatch | time | passes |\n"
      "|---|---|---|---|---|---|---|\n");
  for (const ScrubResult& gpu : report.gpus) {
    std::uint64_t passes_us = 0;
    for (const ScrubPass& pass : gpu.passes) {
      passes_us += pass.duration_us;
    }
    std::printf(
        "| %s%s | %.2f GiB | %.2f GiB (%.2f%%) | %llu B | %llu B | %.2f s | %zu in %.1f ms |\n",
        gpu.uuid.c_str(), report.simulated ? " (simulated)" : "",
        static_cast<double>(gpu.memory_bytes) / (1 << 30),
        static_cast<double>(gpu.reached_bytes) / (1 << 30),
        100.0 * static_cast<double>(gpu.reached_bytes) / static_cast<double>(gpu.memory_bytes),
        static_cast<unsigned long long>(gpu.residue_bytes),
        static_cast<unsigned long long>(gpu.mismatch_bytes),
        static_cast<double>(gpu.duration_us) / 1e6, gpu.passes.size(),
        static_cast<double>(passes_us) / 1e3);
    table.Want("multiprocessors of " + gpu.uuid + " reached", gpu.on_chip.multiprocessors_reached,
               gpu.on_chip.multiprocessors);
    table.Want("registers of " + gpu.uuid + " reached", gpu.on_chip.register_reached_bytes > 0,
               true);
    table.Want("scrub of " + gpu.uuid + " mismatches", gpu.mismatch_bytes, 0);
  }
  return {};
}

using Step = Status (*)(const std::string&, Table&);

// In a process of its own: a step must find the libraries as a fresh process does, and the scrub
// must not find the asking process on the card.
int RunStep(const char* title, Step step, const std::string& root) {
  (void)std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    Table table;
    if (const Status status = step(root, table); !status.has_value()) {
      table.Want(title, status.error().message, "");
    }
    std::printf("\n## %s\n\n", title);
    table.Print();
    std::printf("\n%zu rows, %d wrong\n", table.size(), table.wrong());
    (void)std::fflush(stdout);
    _exit(table.wrong() == 0 ? 0 : 1);
  }
  int status = -1;
  if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
    std::printf("\n**WRONG**: %s failed (status %d)\n", title, status);
    return 1;
  }
  return 0;
}

int Run(const std::string& root) {
  std::printf("# GPU check of driver root %s%s\n", root.c_str(),
              IsSimulatedRoot(root) ? " (simulated)" : "");
  const int asked = RunStep("Answers", &Ask, root);
  return RunStep("Inventory and scrub", &TryScrub, root) + asked == 0 ? 0 : 1;
}

}  // namespace
}  // namespace ringfence::gpu

int main(int argc, char** argv) {
  const std::string_view option = argc == 3 ? argv[1] : "";
  if (option == "--driver-root") {
    return ringfence::gpu::Run(argv[2]);
  }
  if (option == "--simulate") {
    return ringfence::gpu::WithSimulatedRoot(argv[2], ringfence::gpu::Run);
  }
  std::fprintf(stderr, "usage: gpu_check --driver-root R | --simulate LIB-FOLDER\n");
  return 2;
}
