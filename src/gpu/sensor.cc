#include "gpu/sensor.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <map>
#include <mutex>
#include <thread>

#include "base/encoding.h"
#include "gpu/library.h"
#include "gpu/limits.h"
#include "gpu/nvml_readings_abi.h"
#include "os/file.h"
#include "os/kernel_log.h"

namespace ringfence::gpu {
namespace {

using nvml::Return;
using std::chrono::steady_clock;

constexpr Return kResetRequired = static_cast<Return>(16);
constexpr int kCorrected = 0;  // NVML's kinds of ECC errors
constexpr int kUncorrected = 1;
constexpr int kAggregate = 1;  // since the card was made
constexpr std::size_t kProcFileBytesMax = 16 * 1024;
constexpr double kKbPerMib = 1048.576;
// NVML and the kernel's log tell of the same XID within this time.
constexpr std::chrono::seconds kSameXid{2};
constexpr Milliseconds kLogLook{200};
constexpr std::chrono::seconds kEnergyEvery{60};

struct Nvml {
  Library library;
  nvml::Api base;
  nvml::ReadingsApi more;

  std::string Words(const char* function, Return code) const {
    const char* words = base.nvmlErrorString == nullptr ? nullptr : base.nvmlErrorString(code);
    return std::string(function) + ": " + (words == nullptr ? "no words" : words) + " (" +
           std::to_string(static_cast<int>(code)) + ")";
  }
};

bool IsGone(Return code) { return code == nvml::kGpuIsLost || code == kResetRequired; }

ProcessReading WhoIs(const nvml::ProcessInfo& info) {
  ProcessReading process;
  process.pid = info.pid;
  process.memory_bytes = info.used_memory == ~0ULL ? 0 : info.used_memory;
  const std::string folder = "/proc/" + std::to_string(info.pid);
  // Its own name for itself first: the kernel cuts its one at 15 bytes, and has a number where a
  // program was started by descriptor.
  auto name = os::ReadText(folder + "/cmdline", kProcFileBytesMax);
  if (!name.has_value() || name->empty() || name->front() == '\0') {
    name = os::ReadText(folder + "/comm", 64);
  }
  if (name.has_value()) {
    std::string plain = name->substr(0, name->find_first_of(std::string_view("\0\n", 2)));
    plain = plain.substr(plain.rfind('/') + 1).substr(0, 64);
    std::replace_if(plain.begin(), plain.end(), [](char c) { return c < 0x20 || c == 0x7f; }, '?');
    process.name = IsUtf8(plain) ? plain : "?";
  }
  if (const auto group = os::ReadText(folder + "/cgroup", kProcFileBytesMax); group.has_value()) {
    process.lease = LeaseOfCgroup(*group);
  }
  return process;
}

// One card and what it said last. The thread that reads it may hang in the driver for ever, so all
// that it touches is kept alive by whoever is left.
class Card {
 public:
  Card(std::shared_ptr<const Nvml> nvml, nvml::Device device, std::string uuid)
      : nvml_(std::move(nvml)), device_(device), uuid_(std::move(uuid)) {
    nvml::PciInfo pci{};
    if (nvml_->base.nvmlDeviceGetPciInfo_v3 != nullptr &&
        nvml_->base.nvmlDeviceGetPciInfo_v3(device_, &pci) == nvml::kSuccess) {
      std::array<char, 32> text{};
      (void)std::snprintf(text.data(), text.size(), "%04x:%02x:%02x", pci.domain, pci.bus,
                          pci.device);
      pci_address_ = text.data();
    }
    const auto& more = nvml_->more;
    nvml::GpmSupport support{1, 0};
    gpm_ = more.nvmlGpmQueryDeviceSupport != nullptr && more.nvmlGpmSampleAlloc != nullptr &&
           more.nvmlGpmSampleGet != nullptr && more.nvmlGpmMetricsGet != nullptr &&
           more.nvmlGpmQueryDeviceSupport(device_, &support) == nvml::kSuccess &&
           support.supported != 0 && more.nvmlGpmSampleAlloc(&samples_[0]) == nvml::kSuccess &&
           more.nvmlGpmSampleAlloc(&samples_[1]) == nvml::kSuccess;
  }
  ~Card() {
    for (nvml::GpmSample sample : samples_) {
      if (sample != nullptr && nvml_->more.nvmlGpmSampleFree != nullptr) {
        (void)nvml_->more.nvmlGpmSampleFree(sample);
      }
    }
  }
  Card(const Card&) = delete;
  Card& operator=(const Card&) = delete;

  const std::string& uuid() const { return uuid_; }
  nvml::Device device() const { return device_; }
  const std::string& pci_address() const { return pci_address_; }  // as the kernel writes it

  // The card's own thread. False: it is gone; `why` says how.
  bool Read(Reading& reading, std::string& why) {
    reading.uuid = uuid_;
    gone_.clear();
    ReadLevels(reading);
    ReadErrors(reading);
    ReadTransfers(reading);
    ReadActivity(reading);
    ReadProcesses(reading);
    why = gone_;
    return gone_.empty();
  }

 private:
  bool Ok(const char* function, Return code) {
    if (IsGone(code) && gone_.empty()) {
      gone_ = nvml_->Words(function, code);
    }
    return code == nvml::kSuccess;
  }
  template <typename Number, typename Function, typename... Arguments>
  void Take(Reading& reading, Signal signal, const char* name, Function function,
            Arguments... arguments) {
    Number value{};
    if (function != nullptr && gone_.empty() && Ok(name, function(device_, arguments..., &value))) {
      reading.Set(signal, static_cast<std::int64_t>(
                              std::min<std::uint64_t>(value, std::uint64_t{1} << 53U)));
    }
  }

  void ReadLevels(Reading& reading) {
    const nvml::Api& base = nvml_->base;
    nvml::Utilization rates{};
    if (base.nvmlDeviceGetUtilizationRates != nullptr &&
        Ok("nvmlDeviceGetUtilizationRates", base.nvmlDeviceGetUtilizationRates(device_, &rates))) {
      reading.Set(Signal::kBusy, rates.gpu);
      reading.Set(Signal::kMemoryBusy, rates.memory);
    }
    nvml::Memory memory{};
    if (base.nvmlDeviceGetMemoryInfo != nullptr && gone_.empty() &&
        Ok("nvmlDeviceGetMemoryInfo", base.nvmlDeviceGetMemoryInfo(device_, &memory))) {
      reading.Set(Signal::kMemory, static_cast<std::int64_t>(memory.total));
      reading.Set(Signal::kMemoryUsed, static_cast<std::int64_t>(memory.used));
    }
    const nvml::ReadingsApi& more = nvml_->more;
    Take<unsigned>(reading, Signal::kPower, "nvmlDeviceGetPowerUsage",
                   base.nvmlDeviceGetPowerUsage);
    Take<unsigned>(reading, Signal::kPowerLimit, "nvmlDeviceGetEnforcedPowerLimit",
                   base.nvmlDeviceGetEnforcedPowerLimit);
    ReadEnergy(reading);
    Take<unsigned>(reading, Signal::kTemperature, "nvmlDeviceGetTemperature",
                   base.nvmlDeviceGetTemperature, 0);
    Take<unsigned>(reading, Signal::kSmClock, "nvmlDeviceGetClockInfo", more.nvmlDeviceGetClockInfo,
                   static_cast<int>(nvml::kSmClock));
    Take<unsigned>(reading, Signal::kMemoryClock, "nvmlDeviceGetClockInfo",
                   more.nvmlDeviceGetClockInfo, static_cast<int>(nvml::kMemoryClock));
  }

  // A counter that takes an H200's driver 4 ms of a core to tell, three times all the rest
  // together: between two looks it is what it was.
  void ReadEnergy(Reading& reading) {
    const auto now = steady_clock::now();
    if (now >= energy_due_) {
      energy_due_ = now + kEnergyEvery;
      Reading fresh;
      Take<unsigned long long>(fresh, Signal::kEnergy, "nvmlDeviceGetTotalEnergyConsumption",
                               nvml_->more.nvmlDeviceGetTotalEnergyConsumption);
      energy_ = fresh.Of(Signal::kEnergy);
    }
    if (energy_.has_value()) {
      reading.Set(Signal::kEnergy, *energy_);
    }
  }

  void ReadErrors(Reading& reading) {
    const nvml::Api& base = nvml_->base;
    Take<unsigned long long>(reading, Signal::kEccCorrected, "nvmlDeviceGetTotalEccErrors",
                             base.nvmlDeviceGetTotalEccErrors, kCorrected, kAggregate);
    Take<unsigned long long>(reading, Signal::kEccUncorrected, "nvmlDeviceGetTotalEccErrors",
                             base.nvmlDeviceGetTotalEccErrors, kUncorrected, kAggregate);
    unsigned int corrected = 0;
    unsigned int uncorrected = 0;
    unsigned int pending = 0;
    unsigned int failed = 0;
    const auto remapped = nvml_->more.nvmlDeviceGetRemappedRows;
    if (remapped != nullptr && gone_.empty() &&
        Ok("nvmlDeviceGetRemappedRows",
           remapped(device_, &corrected, &uncorrected, &pending, &failed))) {
      reading.Set(Signal::kRemappedCorrected, corrected);
      reading.Set(Signal::kRemappedUncorrected, uncorrected);
      reading.Set(Signal::kRemapPending, pending != 0 ? 1 : 0);
      reading.Set(Signal::kRemapFailed, failed != 0 ? 1 : 0);
    }
  }

  void ReadTransfers(Reading& reading) {
    const nvml::ReadingsApi& more = nvml_->more;
    if (!gpm_) {  // each of the two waits 20 ms in the driver; GPM knows it without
      Take<unsigned>(reading, Signal::kPcieTx, "nvmlDeviceGetPcieThroughput",
                     more.nvmlDeviceGetPcieThroughput, static_cast<int>(nvml::kPcieTx));
      Take<unsigned>(reading, Signal::kPcieRx, "nvmlDeviceGetPcieThroughput",
                     more.nvmlDeviceGetPcieThroughput, static_cast<int>(nvml::kPcieRx));
    }
    if (more.nvmlDeviceGetFieldValues == nullptr || no_links_ || !gone_.empty()) {
      return;
    }
    std::array<nvml::FieldValue, 2> fields{};
    fields[0].field = nvml::kFieldNvlinkTx;
    fields[1].field = nvml::kFieldNvlinkRx;
    fields[0].scope = fields[1].scope = nvml::kAllLinks;
    if (!Ok("nvmlDeviceGetFieldValues", more.nvmlDeviceGetFieldValues(device_, 2, fields.data()))) {
      return;
    }
    no_links_ = fields[0].result == nvml::kNotSupported && fields[1].result == nvml::kNotSupported;
    for (const auto& [signal, field] :
         {std::pair(Signal::kNvlinkTx, fields[0]), std::pair(Signal::kNvlinkRx, fields[1])}) {
      if (field.result == nvml::kSuccess) {
        reading.Set(signal, static_cast<std::int64_t>(
                                std::min<unsigned long long>(field.value.ull, 1ULL << 53U)));
      }
    }
  }

  void ReadActivity(Reading& reading) {
    if (!gpm_ || !gone_.empty()) {
      return;
    }
    const nvml::ReadingsApi& more = nvml_->more;
    std::swap(samples_[0], samples_[1]);
    const bool taken = Ok("nvmlGpmSampleGet", more.nvmlGpmSampleGet(device_, samples_[1]));
    const bool had = std::exchange(sampled_, taken);
    if (!taken || !had) {
      return;
    }
    struct Metric {
      unsigned int id;
      Signal signal;
      double scale;
    };
    constexpr std::array<Metric, 5> kWanted = {{{nvml::kGpmSmBusy, Signal::kSmActive, 1},
                                                {nvml::kGpmTensorBusy, Signal::kTensorActive, 1},
                                                {nvml::kGpmDramBusy, Signal::kDramActive, 1},
                                                {nvml::kGpmPcieTx, Signal::kPcieTx, kKbPerMib},
                                                {nvml::kGpmPcieRx, Signal::kPcieRx, kKbPerMib}}};
    if (metrics_ == nullptr) {
      metrics_ = std::make_unique<nvml::GpmMetrics>();
    }
    metrics_->version = 1;
    metrics_->count = kWanted.size();
    metrics_->first = samples_[0];
    metrics_->second = samples_[1];
    for (std::size_t i = 0; i < kWanted.size(); ++i) {
      metrics_->metrics[i] = {};
      metrics_->metrics[i].id = kWanted[i].id;
    }
    if (!Ok("nvmlGpmMetricsGet", more.nvmlGpmMetricsGet(metrics_.get()))) {
      return;
    }
    for (std::size_t i = 0; i < kWanted.size(); ++i) {
      const nvml::GpmMetric& metric = metrics_->metrics[i];
      if (metric.result == nvml::kSuccess && std::isfinite(metric.value) && metric.value >= 0 &&
          metric.value < 1e9) {
        reading.Set(kWanted[i].signal,
                    static_cast<std::int64_t>(std::llround(metric.value * kWanted[i].scale)));
      }
    }
  }

  void ReadProcesses(Reading& reading) {
    const auto list = nvml_->base.nvmlDeviceGetComputeRunningProcesses_v3;
    std::array<nvml::ProcessInfo, kReadingProcessesMax> found{};
    unsigned int count = kReadingProcessesMax;
    if (list == nullptr || !gone_.empty() ||
        !Ok("nvmlDeviceGetComputeRunningProcesses_v3", list(device_, &count, found.data()))) {
      return;
    }
    std::map<std::uint32_t, ProcessReading> known;
    for (unsigned int i = 0; i < std::min<unsigned int>(count, kReadingProcessesMax); ++i) {
      // Looked up once: a process keeps its name and its box as long as it is on the card.
      const auto before = known_.find(found[i].pid);
      ProcessReading process = before == known_.end() ? WhoIs(found[i]) : before->second;
      process.memory_bytes = found[i].used_memory == ~0ULL ? 0 : found[i].used_memory;
      known.emplace(process.pid, process);
      reading.processes.push_back(std::move(process));
    }
    known_ = std::move(known);
  }

  const std::shared_ptr<const Nvml> nvml_;
  const nvml::Device device_;
  const std::string uuid_;
  std::string pci_address_;
  bool gpm_ = false;
  bool no_links_ = false;  // a card without NVLink does not grow one
  bool sampled_ = false;   // samples_[1] holds one
  std::array<nvml::GpmSample, 2> samples_ = {nullptr, nullptr};
  std::unique_ptr<nvml::GpmMetrics> metrics_;
  std::optional<std::int64_t> energy_;
  steady_clock::time_point energy_due_;
  std::string gone_;  // why nothing more is asked of the card in this round
  std::map<std::uint32_t, ProcessReading> known_;
};

// What the threads leave for the one that speaks.
struct Desk {
  struct Last {
    Reading reading;
    bool fresh = false;  // not said yet
    bool gone = false;
    std::string why;
    steady_clock::time_point answered;
  };
  std::mutex mutex;
  std::condition_variable_any wake;
  std::map<std::string, Last> cards;
  bool ends = false;
};

// Owns what it uses: a sensor that ends must not wait for a card that hangs.
void Watch(const std::shared_ptr<Desk>& desk, const std::shared_ptr<Card>& card,
           Milliseconds every) {
  auto next = steady_clock::now();
  for (;;) {
    Reading reading;
    std::string why;
    const bool there = card->Read(reading, why);
    const auto now = steady_clock::now();
    next = std::max(next + every, now);
    std::unique_lock lock(desk->mutex);
    Desk::Last& last = desk->cards[card->uuid()];
    last.answered = now;
    last.gone = !there;
    last.why = why;
    if (there) {
      last.reading = std::move(reading);
      last.fresh = true;
    }
    if (desk->wake.wait_until(lock, next, [&] { return desk->ends; })) {
      return;
    }
  }
}

class NvmlSensor final : public Sensor {
 public:
  NvmlSensor(SensorOptions options, std::shared_ptr<const Nvml> nvml,
             std::vector<std::shared_ptr<Card>> cards)
      : options_(std::move(options)), nvml_(std::move(nvml)), cards_(std::move(cards)) {
    Register();
    const auto now = steady_clock::now();
    for (const auto& card : cards_) {
      desk_->cards[card->uuid()].answered = now;
      std::thread(Watch, desk_, card, options_.every).detach();
    }
  }
  ~NvmlSensor() override {
    if (events_ != nullptr) {
      (void)nvml_->more.nvmlEventSetFree(events_);
    }
    {
      const std::lock_guard lock(desk_->mutex);
      desk_->ends = true;
    }
    desk_->wake.notify_all();
  }

  void Run(const std::function<bool(const SensorLine&)>& say) override {
    auto next = steady_clock::now() + options_.every;
    for (;;) {
      if (!WaitForEvents(next, say)) {
        return;
      }
      next = std::max(next + options_.every, steady_clock::now());
      if (!SayFaults(say) || !SayReadings(say)) {
        return;
      }
    }
  }

 private:
  void Register() {
    const auto& more = nvml_->more;
    if (more.nvmlEventSetCreate == nullptr || more.nvmlDeviceRegisterEvents == nullptr ||
        more.nvmlEventSetWait_v2 == nullptr || more.nvmlEventSetFree == nullptr ||
        more.nvmlEventSetCreate(&events_) != nvml::kSuccess) {
      events_ = nullptr;
      return;
    }
    for (const auto& card : cards_) {
      (void)more.nvmlDeviceRegisterEvents(card->device(), nvml::kEventXid, events_);
    }
  }

  bool WaitForEvents(steady_clock::time_point until,
                     const std::function<bool(const SensorLine&)>& say) {
    for (;;) {
      if (!SayKernelLog(say)) {
        return false;
      }
      auto left = std::chrono::ceil<Milliseconds>(until - steady_clock::now()).count();
      if (left <= 0) {
        return true;
      }
      const bool part = options_.kernel_log >= 0 && left > kLogLook.count();
      left = part ? kLogLook.count() : left;
      nvml::EventData data{};
      const Return code = events_ == nullptr ? nvml::kNotSupported
                                             : nvml_->more.nvmlEventSetWait_v2(
                                                   events_, &data, static_cast<unsigned int>(left));
      if (code == nvml::kTimedOut) {
        continue;
      }
      if (code != nvml::kSuccess) {  // such as a lost card: readings say more
        std::this_thread::sleep_until(until);
        return true;
      }
      const auto card = std::find_if(cards_.begin(), cards_.end(),
                                     [&](const auto& one) { return one->device() == data.device; });
      if (card == cards_.end() || data.type != nvml::kEventXid || data.data == 0 ||
          data.data > 99999) {
        continue;
      }
      if (!SayXid(**card, static_cast<std::uint32_t>(data.data),
                  "NVML event: Xid " + std::to_string(data.data), Source::kNvml, say)) {
        return false;
      }
    }
  }

  bool SayKernelLog(const std::function<bool(const SensorLine&)>& say) {
    constexpr int kMessagesMax = 1000;  // in one look
    for (int i = 0; options_.kernel_log >= 0 && i < kMessagesMax; ++i) {
      const auto text = os::NextKernelMessage(options_.kernel_log);
      if (!text.has_value()) {
        break;
      }
      const auto line = ParseXidLine(*text);
      const auto card = std::find_if(cards_.begin(), cards_.end(), [&](const auto& one) {
        return line.has_value() && one->pci_address() == line->pci_address;
      });
      if (card != cards_.end() &&
          !SayXid(**card, line->xid, IsUtf8(*text) ? *text : "", Source::kKernel, say)) {
        return false;
      }
    }
    return true;
  }

  // Of NVML and the kernel's log, whichever comes first is believed; the other's word on the same
  // is no second XID.
  enum class Source : std::uint8_t { kNvml, kKernel };
  bool SayXid(const Card& card, std::uint32_t xid, const std::string& why, Source source,
              const std::function<bool(const SensorLine&)>& say) {
    const auto now = steady_clock::now();
    std::erase_if(xids_, [&](const SaidXid& said) { return now - said.when > kSameXid; });
    const auto twin = std::find_if(xids_.begin(), xids_.end(), [&](const SaidXid& said) {
      return said.uuid == card.uuid() && said.xid == xid && said.source != source;
    });
    if (twin != xids_.end()) {
      xids_.erase(twin);
      return true;
    }
    if (options_.kernel_log >= 0) {
      xids_.push_back({card.uuid(), xid, source, now});
    }
    return say({Now(), {}, GpuFault{card.uuid(), FaultKind::kXid, xid, why}});
  }
  struct SaidXid {
    std::string uuid;
    std::uint32_t xid = 0;
    Source source = Source::kNvml;
    steady_clock::time_point when;
  };

  bool SayFaults(const std::function<bool(const SensorLine&)>& say) {
    const auto now = steady_clock::now();
    std::vector<GpuFault> faults;
    {
      const std::lock_guard lock(desk_->mutex);
      for (const auto& card : cards_) {
        const Desk::Last& last = desk_->cards[card->uuid()];
        const bool hung = now - last.answered >= options_.hung_after + options_.every;
        const auto kind = hung ? FaultKind::kHung : last.gone ? FaultKind::kLost : FaultKind::kBack;
        FaultKind& said = said_.try_emplace(card->uuid(), FaultKind::kBack).first->second;
        if (kind != said) {
          const auto waited = std::chrono::floor<Milliseconds>(now - last.answered);
          faults.push_back({card->uuid(), kind, 0,
                            hung        ? "no answer for " + FormatDuration(waited)
                            : last.gone ? last.why
                                        : "answers again"});
          said = kind;
        }
      }
    }
    return std::all_of(faults.begin(), faults.end(),
                       [&](const GpuFault& fault) { return say({Now(), {}, fault}); });
  }

  bool SayReadings(const std::function<bool(const SensorLine&)>& say) {
    SensorLine line{Now(), {}, {}};
    {
      const std::lock_guard lock(desk_->mutex);
      for (const auto& card : cards_) {
        Desk::Last& last = desk_->cards[card->uuid()];
        if (std::exchange(last.fresh, false)) {
          line.readings.push_back(last.reading);
        }
      }
    }
    return say(line);
  }

  static Timestamp Now() { return SystemClock().Now(); }

  const SensorOptions options_;
  const std::shared_ptr<const Nvml> nvml_;
  const std::vector<std::shared_ptr<Card>> cards_;
  const std::shared_ptr<Desk> desk_ = std::make_shared<Desk>();
  nvml::EventSet events_ = nullptr;
  std::map<std::string, FaultKind> said_;
  std::vector<SaidXid> xids_;  // of the last moment
};

}  // namespace

Result<std::unique_ptr<Sensor>> Sensor::Open(const SensorOptions& options) {
  RINGFENCE_ASSIGN(Library library, Library::Open(options.driver_root, kNvmlName));
  const nvml::Api base = LoadNvml(library);
  nvml::ReadingsApi more;
#define RINGFENCE_LOAD(name, arguments) \
  more.name = reinterpret_cast<decltype(more.name)>(library.Find(#name));
  RINGFENCE_NVML_READING_FUNCTIONS(RINGFENCE_LOAD)
#undef RINGFENCE_LOAD
  const std::shared_ptr<const Nvml> nvml(new Nvml{std::move(library), base, more});
  if (base.nvmlInit_v2 == nullptr || base.nvmlDeviceGetCount_v2 == nullptr ||
      base.nvmlDeviceGetHandleByIndex_v2 == nullptr || base.nvmlDeviceGetUUID == nullptr) {
    return Error{Code::kFailedPrecondition, nvml->library.path() + " is no NVML that can be read",
                 "use a driver of branch 525 or later"};
  }
  // Never shut down: a thread may hang in it, and the process ends with its sensor.
  if (const Return code = base.nvmlInit_v2(); code != nvml::kSuccess) {
    return Error{Code::kUnavailable, nvml->Words("nvmlInit_v2", code)};
  }
  unsigned int count = 0;
  if (const Return code = base.nvmlDeviceGetCount_v2(&count); code != nvml::kSuccess) {
    return Error{Code::kUnavailable, nvml->Words("nvmlDeviceGetCount_v2", code)};
  }
  std::vector<std::shared_ptr<Card>> cards;
  for (unsigned int index = 0; index < std::min<unsigned int>(count, kGpusMax); ++index) {
    nvml::Device device = nullptr;
    std::array<char, nvml::kUuidBytes + 1> uuid{};
    if (base.nvmlDeviceGetHandleByIndex_v2(index, &device) == nvml::kSuccess &&
        base.nvmlDeviceGetUUID(device, uuid.data(), nvml::kUuidBytes) == nvml::kSuccess) {
      cards.push_back(std::make_shared<Card>(nvml, device, uuid.data()));
    }
  }
  return std::unique_ptr<Sensor>(std::make_unique<NvmlSensor>(options, nvml, std::move(cards)));
}

}  // namespace ringfence::gpu
