#include "place/state.h"

#include "base/check.h"

namespace ringfence::place {
namespace {

using model::IsolationClass;

GpuCode MaskFor(const NodeKind& kind, const Form& form, std::uint32_t start) {
  const gpu::MigProfile& profile = kind.board->profiles[form.profile];
  return static_cast<GpuCode>(gpu::MaskOf(profile, start) | (profile.media ? kMediaFlag : 0));
}

void AddProfiles(const NodeKind& kind, auto wanted, std::vector<Form>& forms) {
  if (kind.board == nullptr) {
    return;
  }
  for (std::size_t i = 0; i < kind.board->profiles.size(); ++i) {
    if (wanted(kind.board->profiles[i])) {
      forms.push_back({Form::Kind::kMig, 1, static_cast<std::uint8_t>(i), 0});
    }
  }
}

Error Wrong(std::string_view field, const std::string& what) {
  return Error{Code::kInvalidArgument, std::string(field) + ": " + what, {}, std::string(field)};
}

}  // namespace

Status CheckDemand(const Demand& demand) {
  switch (demand.what) {
    case What::kNoGpu:
      return {};
    case What::kWhole:
      if (demand.gpus < 1 || demand.gpus > kGpusPerNodeMax) {
        return Wrong("gpus", "from 1 to " + std::to_string(kGpusPerNodeMax) + " on one node");
      }
      return {};
    case What::kShare:
      if (demand.milli < 1 || demand.milli > kIdle) {
        return Wrong("share", "from 1 to 1000 thousandths of a GPU");
      }
      return {};
    case What::kProfile:
      if (demand.least > IsolationClass::kMig) {
        return Wrong("profile", "a MIG slice has class mig, and " +
                                    std::string(Name(demand.least)) + " is asked for");
      }
      return {};
    case What::kGpuMemory:
      return demand.gpu_memory_mib > 0 ? Status{} : Wrong("gpu_memory", "more than nothing");
  }
  return {};
}

IsolationClass ClassOf(const Form& form) {
  switch (form.kind) {
    case Form::Kind::kNoGpu:
    case Form::Kind::kWhole:
      return IsolationClass::kGpu;
    case Form::Kind::kMig:
      return IsolationClass::kMig;
    case Form::Kind::kShare:
      return IsolationClass::kTime;
  }
  return IsolationClass::kMps;
}

std::vector<Form> FormsOn(const Demand& demand, const NodeKind& kind) {
  if (demand.cpu_milli > kind.cpu_milli || demand.memory_mib > kind.memory_mib) {
    return {};
  }
  if (demand.what == What::kNoGpu) {
    return {Form{}};
  }
  if (!demand.models.empty() &&
      std::find(demand.models.begin(), demand.models.end(), kind.model) == demand.models.end()) {
    return {};
  }
  std::vector<Form> forms;
  const auto whole = [&](std::uint32_t gpus) {
    if (gpus <= kind.gpus) {
      forms.push_back({Form::Kind::kWhole, static_cast<std::uint8_t>(gpus), 0, kIdle});
    }
  };
  const auto share = [&](std::uint64_t milli) {
    if (milli >= kIdle) {
      whole(milli == kIdle ? 1 : kind.gpus + 1);
    } else if (kind.gpus > 0) {
      forms.push_back({Form::Kind::kShare, 1, 0, static_cast<std::uint16_t>(milli)});
    }
  };
  const bool cut = demand.least <= IsolationClass::kMig;
  switch (demand.what) {
    case What::kNoGpu:
      break;
    case What::kWhole:
      whole(demand.gpus);
      break;
    case What::kShare:
      if (demand.least <= IsolationClass::kTime) {
        share(demand.milli);
        break;
      }
      if (cut) {
        AddProfiles(
            kind,
            [&](const gpu::MigProfile& profile) {
              return profile.slices * kIdle >= demand.milli * kind.board->slices && !profile.media;
            },
            forms);
      }
      whole(1);
      break;
    case What::kProfile:
      AddProfiles(
          kind, [&](const gpu::MigProfile& profile) { return profile.name == demand.profile; },
          forms);
      break;
    case What::kGpuMemory:
      if (demand.gpu_memory_mib > kind.gpu_memory_mib) {
        break;
      }
      if (demand.least <= IsolationClass::kTime) {
        share((std::uint64_t{demand.gpu_memory_mib} * kIdle + kind.gpu_memory_mib - 1) /
              kind.gpu_memory_mib);
        break;
      }
      if (cut) {
        AddProfiles(
            kind,
            [&](const gpu::MigProfile& profile) {
              return profile.memory_mib >= demand.gpu_memory_mib && !profile.media;
            },
            forms);
      }
      whole(1);
      break;
  }
  return forms;
}

const std::vector<std::uint32_t>& StartsOf(const NodeKind& kind, const Form& form) {
  static const std::vector<std::uint32_t> kFirst = {0};
  return form.kind == Form::Kind::kMig ? kind.board->profiles[form.profile].starts : kFirst;
}

bool Fits(const NodeKind& kind, const Form& form, GpuCode code, std::uint32_t start, bool reshape) {
  switch (form.kind) {
    case Form::Kind::kNoGpu:
      return true;
    case Form::Kind::kWhole:
      return code == kIdle || (reshape && code == kMigFlag);
    case Form::Kind::kShare:
      return (!IsMig(code) && code >= form.milli) || (reshape && code == kMigFlag);
    case Form::Kind::kMig:
      return IsMig(code) ? (code & MaskFor(kind, form, start)) == 0 : reshape && code == kIdle;
  }
  return false;
}

GpuCode Take(const NodeKind& kind, const Form& form, GpuCode code, std::uint32_t start) {
  switch (form.kind) {
    case Form::Kind::kNoGpu:
      return code;
    case Form::Kind::kWhole:
      return 0;
    case Form::Kind::kShare:
      return static_cast<GpuCode>((IsMig(code) ? kIdle : code) - form.milli);
    case Form::Kind::kMig:
      return static_cast<GpuCode>((IsMig(code) ? code : kMigFlag) | MaskFor(kind, form, start));
  }
  return code;
}

GpuCode GiveBack(const NodeKind& kind, const Form& form, GpuCode code, std::uint32_t start) {
  switch (form.kind) {
    case Form::Kind::kNoGpu:
      return code;
    case Form::Kind::kWhole:
      RINGFENCE_CHECK(code == 0);
      return kIdle;
    case Form::Kind::kShare:
      RINGFENCE_CHECK(!IsMig(code) && code + form.milli <= kIdle);
      return static_cast<GpuCode>(code + form.milli);
    case Form::Kind::kMig: {
      const GpuCode mask = MaskFor(kind, form, start);
      RINGFENCE_CHECK(IsMig(code) && (code & mask) == mask);
      return static_cast<GpuCode>(code & ~mask);
    }
  }
  return code;
}

}  // namespace ringfence::place
