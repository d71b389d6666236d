#pragma once

// A card through HIP. It runs no code on the card: what the kernels of another vendor's card do,
// the host does here to copies of the memory, piece by piece. So it is as slow as the bus, and
// reaches nothing on the chip. Never run on hardware.

#include <string>
#include <vector>

#include "gpu/card_driver.h"
#include "gpu/hip_abi.h"
#include "gpu/library.h"

namespace ringfence::gpu {

class HipDriver final : public CardDriver {
 public:
  // `api` must outlive this and have every function (CheckHip). `facts` are the kernel's.
  HipDriver(const hip::Api& api, std::string uuid, int device, const CardFacts& facts)
      : api_(api), uuid_(std::move(uuid)), device_(device), facts_(facts) {}
  HipDriver(const HipDriver&) = delete;
  HipDriver& operator=(const HipDriver&) = delete;
  ~HipDriver() override { (void)HipDriver::Close(); }

  Status Open() override;
  Status Close() override;
  const CardFacts& facts() const override { return facts_; }
  Result<bool> HoldsRegisters() override { return false; }
  Result<std::size_t> FreeBytes() override;
  Result<std::optional<CardPointer>> Allocate(std::size_t bytes) override;
  Status Free(CardPointer pointer) override;
  Result<void*> AllocateHost(std::size_t bytes) override;
  Status FreeHost(void* memory) override;
  Status Start(const Launch& launch) override;
  Status Wait() override;
  Status Zero(CardPointer pointer, std::size_t bytes) override;

 private:
  struct Work;
  Status Check(const char* function, hip::Error code) const;
  Status Fill(const Work& work);
  Status Look(const Work& work, bool count);

  const hip::Api& api_;
  std::string uuid_;
  int device_;
  CardFacts facts_;
  bool open_ = false;
  void* piece_ = nullptr;  // pinned, on the host
};

hip::Api LoadHip(const Library& library);
// "hipErrorOutOfMemory: out of memory (2)"
std::string HipWords(const hip::Api& api, hip::Error code);
// kFailedPrecondition naming the first function that the library lacks.
Status CheckHip(const hip::Api& api, const std::string& path);

}  // namespace ringfence::gpu
