// What the CUDA driver answers, right and wrong calls alike; as nvml_questions.cc.

#include <array>
#include <cstring>
#include <vector>

#include "gpu/kernel_image.h"
#include "gpu/scrub_kernels.h"
#include "questions.h"

namespace ringfence::gpu {
namespace {

constexpr cuda::DevicePointer kNobody = 0xdead'0000ULL;

void AskBeforeInit(const cuda::Api& api, Table& table) {
  int number = 0;
  cuda::Context context = nullptr;
  cuda::DevicePointer pointer = 0;
  table.Want("cuDriverGetVersion before init", api.cuDriverGetVersion(&number), 0);
  table.Note("CUDA version", number);
  table.Want("cuDriverGetVersion(NULL)", api.cuDriverGetVersion(nullptr), 1);
  table.Want("cuDeviceGetCount before init", api.cuDeviceGetCount(&number), 3);
  table.Want("cuCtxCreate_v2 before init", api.cuCtxCreate_v2(&context, 0, 0), 3);
  table.Want("cuMemAlloc_v2 before init", api.cuMemAlloc_v2(&pointer, 4096), 3);
  table.Want("cuInit(1)", api.cuInit(1), 1);
}

void AskWords(const cuda::Api& api, Table& table) {
  for (const int code : {0,   1,   2,   3,   46,  100, 101, 200, 201, 209, 214,
                         218, 222, 304, 400, 500, 700, 719, 800, 801, 999}) {
    const char* name = nullptr;
    const char* words = nullptr;
    table.Want("cuGetErrorName(" + std::to_string(code) + ")",
               api.cuGetErrorName(static_cast<cuda::CuResult>(code), &name), 0);
    (void)api.cuGetErrorString(static_cast<cuda::CuResult>(code), &words);
    table.Note("error " + std::to_string(code),
               std::string(name == nullptr ? "" : name) + ": " + (words == nullptr ? "" : words));
  }
  const char* name = nullptr;
  table.Want("cuGetErrorName(12345)", api.cuGetErrorName(static_cast<cuda::CuResult>(12345), &name),
             1);
  const char* words = nullptr;
  (void)api.cuGetErrorName(cuda::kOutOfMemory, &name);
  (void)api.cuGetErrorString(cuda::kOutOfMemory, &words);
  table.Want("name of error 2", name, "CUDA_ERROR_OUT_OF_MEMORY");
  table.Want("words of error 2", words, "out of memory");
}

void AskDevices(const cuda::Api& api, cuda::Device device, Table& table) {
  cuda::Device other = 0;
  int value = 0;
  std::size_t bytes = 0;
  cuda::Uuid uuid{};
  std::array<char, 96> text{};
  table.Want("cuDeviceGetCount(NULL)", api.cuDeviceGetCount(nullptr), 1);
  table.Want("cuDeviceGet(-1)", api.cuDeviceGet(&other, -1), 101);
  table.Want("cuDeviceGet(9999)", api.cuDeviceGet(&other, 9999), 101);
  table.Want("cuDeviceGet(NULL)", api.cuDeviceGet(nullptr, 0), 1);
  table.Want("cuDeviceGetName of device 9999", api.cuDeviceGetName(text.data(), 96, 9999), 101);
  table.Want("cuDeviceTotalMem_v2", api.cuDeviceTotalMem_v2(&bytes, device), 0);
  table.Note("total bytes", static_cast<long long>(bytes));
  table.Want("cuDeviceGetUuid_v2(NULL)", api.cuDeviceGetUuid_v2(nullptr, device), 1);
  table.Want("cuDeviceGetUuid_v2", api.cuDeviceGetUuid_v2(&uuid, device), 0);
  table.Want("cuDeviceGetPCIBusId", api.cuDeviceGetPCIBusId(text.data(), 96, device), 0);
  table.Note("PCI address", text.data());
  table.Want("cuDeviceGetByPCIBusId of it", api.cuDeviceGetByPCIBusId(&other, text.data()), 0);
  table.Want("is the same device", other, device);
  table.Want("cuDeviceGetByPCIBusId of nobody", api.cuDeviceGetByPCIBusId(&other, "0000:fe:1f.0"),
             101);
  table.Want("cuDeviceGetAttribute(NULL)", api.cuDeviceGetAttribute(nullptr, 10, device), 1);
  table.Want("cuDeviceGetAttribute(99999)", api.cuDeviceGetAttribute(&value, 99999, device), 1);
  (void)api.cuDeviceGetName(text.data(), 96, device);
  if (text.data() == std::string("NVIDIA H200")) {
    const std::pair<int, int> facts[] = {
        {1, 1024},   {2, 1024}, {4, 64}, {8, 49152},   {9, 65536},     {10, 32},
        {12, 65536}, {16, 132}, {18, 0}, {32, 1},      {38, 62914560}, {39, 2048},
        {41, 1},     {75, 9},   {76, 0}, {81, 233472}, {82, 65536},    {97, 232448}};
    for (const auto& [attribute, expected] : facts) {
      value = -1;
      (void)api.cuDeviceGetAttribute(&value, attribute, device);
      table.Want("attribute " + std::to_string(attribute), value, expected);
    }
    for (const int attribute : {13, 36, 37, 40}) {
      value = -1;
      (void)api.cuDeviceGetAttribute(&value, attribute, device);
      table.Note("attribute " + std::to_string(attribute), value);
    }
  }
}

void AskMemory(const cuda::Api& api, Table& table) {
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  cuda::DevicePointer pointer = 0;
  std::vector<unsigned int> words(1024, 7);
  table.Want("cuMemGetInfo_v2", api.cuMemGetInfo_v2(&free_bytes, &total_bytes), 0);
  table.Note("free bytes with a context", static_cast<long long>(free_bytes));
  table.Note("total bytes", static_cast<long long>(total_bytes));
  table.Want("cuMemAlloc_v2 of 0 bytes", api.cuMemAlloc_v2(&pointer, 0), 1);
  table.Want("cuMemAlloc_v2(NULL)", api.cuMemAlloc_v2(nullptr, 4096), 1);
  table.Want("cuMemAlloc_v2 of too much", api.cuMemAlloc_v2(&pointer, std::size_t{1} << 45U), 2);
  table.Want("cuMemAlloc_v2 of 4096 bytes", api.cuMemAlloc_v2(&pointer, 4096), 0);
  table.Want("is aligned to 256 bytes", pointer % 256, 0);
  table.Want("cuMemsetD32_v2", api.cuMemsetD32_v2(pointer, 0x01020304, 1024), 0);
  table.Want("cuMemcpyDtoH_v2", api.cuMemcpyDtoH_v2(words.data(), pointer, 4096), 0);
  table.Want("first word", words.front(), 0x01020304);
  table.Want("last word", words.back(), 0x01020304);
  table.Want("cuMemsetD8_v2", api.cuMemsetD8_v2(pointer, 0xab, 4), 0);
  table.Want("cuMemcpyDtoD_v2", api.cuMemcpyDtoD_v2(pointer + 8, pointer, 4), 0);
  table.Want("cuMemcpyDtoH_v2 of 12 bytes", api.cuMemcpyDtoH_v2(words.data(), pointer, 12), 0);
  table.Want("copied word", words[2], 0xababababU);
  table.Want("cuMemcpyDtoH_v2 of 0 bytes", api.cuMemcpyDtoH_v2(words.data(), pointer, 0), 0);
  table.Want("cuMemcpyDtoH_v2 from nowhere", api.cuMemcpyDtoH_v2(words.data(), kNobody, 16), 1);
  table.Want("cuMemcpyHtoD_v2 to nowhere", api.cuMemcpyHtoD_v2(kNobody, words.data(), 16), 1);
  table.Note("cuMemcpyDtoH_v2(NULL)", api.cuMemcpyDtoH_v2(nullptr, pointer, 16));
  table.Want("cuMemsetD32_v2 nowhere", api.cuMemsetD32_v2(kNobody, 0, 4), 1);
  table.Want("cuMemsetD32_v2 not aligned", api.cuMemsetD32_v2(pointer + 1, 0, 4), 1);
  table.Want("cuMemFree_v2 nowhere", api.cuMemFree_v2(kNobody), 1);
  table.Note("cuMemFree_v2(0)", api.cuMemFree_v2(0));
  table.Want("cuMemFree_v2", api.cuMemFree_v2(pointer), 0);
  table.Want("cuMemFree_v2 twice", api.cuMemFree_v2(pointer), 1);
  table.Want("cuMemcpyDtoH_v2 after free", api.cuMemcpyDtoH_v2(words.data(), pointer, 16), 1);
  void* host = nullptr;
  table.Want("cuMemHostAlloc of 0 bytes", api.cuMemHostAlloc(&host, 0, 0), 0);
  table.Want("cuMemHostAlloc", api.cuMemHostAlloc(&host, 1 << 20, 0), 0);
  table.Want("cuMemFreeHost", api.cuMemFreeHost(host), 0);
}

// Fills 64 KiB by our own kernel and counts what one changed byte makes of it.
void AskLaunch(const cuda::Api& api, cuda::Module module, Table& table) {
  constexpr std::size_t kBytes = 65536;
  constexpr unsigned int kBlocks = 4;
  cuda::Function fill = nullptr;
  cuda::Function count = nullptr;
  (void)api.cuModuleGetFunction(&fill, module, kernels::kFillName);
  (void)api.cuModuleGetFunction(&count, module, kernels::kCountName);
  cuda::DevicePointer memory = 0;
  (void)api.cuMemAlloc_v2(&memory, kBytes);
  void* tallies = nullptr;
  (void)api.cuMemHostAlloc(&tallies, kBlocks * kernels::kWarps * sizeof(kernels::Tally), 0);
  std::uint64_t vectors = kBytes / kernels::kVectorBytes;
  std::uint64_t first = 5;
  std::uint64_t seed = 0x0123456789abcdefULL;
  std::uint32_t mask = 0xffffffffU;
  void* arguments[] = {&memory, &vectors, &first, &seed, &mask, &tallies};
  const auto launch = [&](cuda::Function function, unsigned int blocks, unsigned int shared) {
    return api.cuLaunchKernel(function, blocks, 1, 1, kernels::kThreads, 1, 1, shared, nullptr,
                              arguments, nullptr);
  };
  const auto sum = [&](std::uint64_t kernels::Tally::* member) {
    std::uint64_t total = 0;
    for (unsigned int i = 0; i < kBlocks * kernels::kWarps; ++i) {
      total += static_cast<kernels::Tally*>(tallies)[i].*member;
    }
    return total;
  };
  const auto clear = [&] {
    std::memset(tallies, 0, kBlocks * kernels::kWarps * sizeof(kernels::Tally));
  };
  clear();
  table.Want("cuLaunchKernel of no blocks", launch(fill, 0, 0), 1);
  table.Want("cuLaunchKernel with too much shared memory", launch(fill, kBlocks, 1U << 20U), 1);
  table.Want("cuLaunchKernel(NULL)", launch(nullptr, kBlocks, 0), 400);
  table.Want("cuLaunchKernel of fill", launch(fill, kBlocks, 0), 0);
  table.Want("cuCtxSynchronize", api.cuCtxSynchronize(), 0);
  table.Want("vectors filled", sum(&kernels::Tally::vectors), vectors);
  kernels::Vector last{};
  (void)api.cuMemcpyDtoH_v2(&last, memory + kBytes - sizeof last, sizeof last);
  const kernels::Vector expected = kernels::PatternAt(first + vectors - 1, seed);
  table.Want("the last one is as this program computes it",
             std::memcmp(&last, &expected, sizeof last) == 0, true);
  clear();
  (void)launch(count, kBlocks, 0);
  (void)api.cuCtxSynchronize();
  table.Want("bytes counted as wrong", sum(&kernels::Tally::wrong_bytes), 0);
  const unsigned char changed = static_cast<unsigned char>(~expected.word[0]);
  (void)api.cuMemsetD8_v2(memory + kBytes - sizeof last, changed, 1);
  clear();
  (void)launch(count, kBlocks, 0);
  (void)api.cuCtxSynchronize();
  table.Want("bytes counted as wrong after one was changed", sum(&kernels::Tally::wrong_bytes), 1);
  (void)api.cuMemFreeHost(tallies);
  (void)api.cuMemFree_v2(memory);
}

void AskModules(const cuda::Api& api, Table& table) {
  cuda::Module module = nullptr;
  cuda::Function function = nullptr;
  int value = -1;
  constexpr const char* kNewer = ".version 99.0\n.target sm_80\n.address_size 64\n";
  table.Want("cuModuleLoadData of no PTX", api.cuModuleLoadData(&module, "nothing of the kind"),
             200);
  table.Want("cuModuleLoadData of unheard-of PTX", api.cuModuleLoadData(&module, kNewer), 222);
  table.Want("cuModuleLoadData(NULL)", api.cuModuleLoadData(nullptr, KernelImage()), 1);
  table.Want("cuModuleLoadData", api.cuModuleLoadData(&module, KernelImage()), 0);
  table.Want("cuModuleGetFunction of nothing",
             api.cuModuleGetFunction(&function, module, "no_such_kernel"), 500);
  table.Want("cuModuleGetFunction",
             api.cuModuleGetFunction(&function, module, kernels::kOnChipName), 0);
  table.Want("cuFuncGetAttribute of registers",
             api.cuFuncGetAttribute(&value, cuda::kRegisters, function), 0);
  table.Want("are all that a thread is to hold", value >= static_cast<int>(kernels::kHeldRegisters),
             true);
  table.Note("registers", value);
  table.Want("cuFuncGetAttribute of local memory",
             api.cuFuncGetAttribute(&value, cuda::kLocalBytes, function), 0);
  table.Want("is none", value, 0);
  table.Want("cuFuncSetAttribute of too much shared memory",
             api.cuFuncSetAttribute(function, cuda::kDynamicSharedBytesMax, 1 << 20), 1);
  table.Want("cuFuncSetAttribute",
             api.cuFuncSetAttribute(function, cuda::kDynamicSharedBytesMax, 65536), 0);
  AskLaunch(api, module, table);
  table.Want("cuModuleUnload", api.cuModuleUnload(module), 0);
}

void AskContexts(const cuda::Api& api, cuda::Device device, Table& table) {
  cuda::Context context = nullptr;
  cuda::Context current = nullptr;
  cuda::DevicePointer pointer = 0;
  int number = -1;
  table.Want("cuMemAlloc_v2 without a context", api.cuMemAlloc_v2(&pointer, 4096), 201);
  table.Want("cuCtxSynchronize without a context", api.cuCtxSynchronize(), 201);
  table.Want("cuCtxGetDevice without a context", api.cuCtxGetDevice(&number), 201);
  table.Want("cuCtxCreate_v2 on device 9999", api.cuCtxCreate_v2(&context, 0, 9999), 101);
  table.Want("cuCtxCreate_v2(NULL)", api.cuCtxCreate_v2(nullptr, 0, device), 1);
  table.Want("cuCtxCreate_v2", api.cuCtxCreate_v2(&context, 0, device), 0);
  table.Want("cuCtxGetCurrent", api.cuCtxGetCurrent(&current), 0);
  table.Want("is the new one", current == context, true);
  table.Want("cuCtxGetDevice", api.cuCtxGetDevice(&number), 0);
  table.Want("is its device", number, device);
  AskMemory(api, table);
  AskModules(api, table);
  table.Want("cuCtxPopCurrent_v2", api.cuCtxPopCurrent_v2(&current), 0);
  table.Want("cuMemAlloc_v2 after the pop", api.cuMemAlloc_v2(&pointer, 4096), 201);
  table.Want("cuCtxPushCurrent_v2", api.cuCtxPushCurrent_v2(context), 0);
  table.Want("cuCtxSynchronize", api.cuCtxSynchronize(), 0);
  table.Want("cuCtxDestroy_v2", api.cuCtxDestroy_v2(context), 0);
  (void)api.cuCtxGetCurrent(&current);
  table.Want("no context is current", current == nullptr, true);
  table.Note("cuCtxDestroy_v2(NULL)", api.cuCtxDestroy_v2(nullptr));
  cuda::Context primary = nullptr;
  table.Want("cuDevicePrimaryCtxRetain", api.cuDevicePrimaryCtxRetain(&primary, device), 0);
  table.Want("cuCtxSetCurrent", api.cuCtxSetCurrent(primary), 0);
  table.Want("cuCtxSetCurrent(NULL)", api.cuCtxSetCurrent(nullptr), 0);
  table.Want("cuDevicePrimaryCtxRelease_v2", api.cuDevicePrimaryCtxRelease_v2(device), 0);
  table.Note("cuDevicePrimaryCtxRelease_v2 once too often",
             api.cuDevicePrimaryCtxRelease_v2(device));
}

}  // namespace

bool AskCuda(const cuda::Api& api, Table& table) {
  bool complete = true;
#define RINGFENCE_PRESENT(name, arguments)                     \
  table.Want(#name " is exported", api.name != nullptr, true); \
  complete = complete && api.name != nullptr;
  RINGFENCE_CUDA_FUNCTIONS(RINGFENCE_PRESENT)
#undef RINGFENCE_PRESENT
  if (!complete) {
    return false;
  }
  AskBeforeInit(api, table);
  AskWords(api, table);
  table.Want("cuInit", api.cuInit(0), 0);
  table.Want("cuInit again", api.cuInit(0), 0);
  cuda::Device device = -1;
  table.Want("cuDeviceGet(0)", api.cuDeviceGet(&device, 0), 0);
  if (device < 0) {
    return false;
  }
  AskDevices(api, device, table);
  AskContexts(api, device, table);
  void* function = nullptr;
  int status = -1;
  table.Want("cuGetProcAddress_v2",
             api.cuGetProcAddress_v2("cuMemAlloc", &function, 12000, 0, &status), 0);
  table.Want("finds a function", function != nullptr, true);
  table.Want("cuGetProcAddress_v2 of nothing",
             api.cuGetProcAddress_v2("cuNoSuchThing", &function, 12000, 0, &status), 0);
  table.Want("finds none", function == nullptr, true);
  table.Want("says so", status, 1);
  return true;
}

}  // namespace ringfence::gpu
