// What goes wrong in a simulated world. A new fault: a name in World::Fault, what it does here, and
// how it ends (For, and Heal if it lasts).

#include "world.h"

namespace ringfence::simulation {

void World::PlanFault() {
  scheduler_.After(scheduler_.chance().Time(0, 2 * fault_every_.count()), [this] {
    if (healed_) {
      return;
    }
    Strike();
    PlanFault();
  });
}

void World::For(Milliseconds time, std::function<void()> undo) {
  scheduler_.After(time, [this, undo = std::move(undo)] {
    if (!healed_) {
      undo();
    }
  });
}

World::Fault World::ChooseFault() {
  std::int64_t sum = 0;
  for (const int weight : weights_) {
    sum += std::max(weight, 0);
  }
  std::int64_t at = sum == 0 ? 0 : scheduler_.chance().Between(1, sum);
  std::size_t chosen = 0;
  while (chosen + 1 < weights_.size() && (at -= std::max(weights_[chosen], 0)) > 0) {
    ++chosen;
  }
  return static_cast<Fault>(chosen);
}

void World::Strike() {
  ++report_.faults;
  const Fault fault = ChooseFault();
  SimNode& node = *scheduler_.chance().Pick(nodes_);
  switch (fault) {
    case Fault::kServerDies:
    case Fault::kServerDiesAtWrites:
    case Fault::kBadNetwork:
    case Fault::kDiskFull:
    case Fault::kServerClock:
      StrikeServer(fault);
      return;
    case Fault::kAgentDies:
    case Fault::kJailerDies:
    case Fault::kReboot:
    case Fault::kPartition:
    case Fault::kNodeClock:
    case Fault::kBadMemory:
    case Fault::kGpuVanishes:
    case Fault::kBadMachine:
    case Fault::kLie:
      StrikeNode(fault, node);
      return;
    case Fault::kCount:
      return;
  }
}

void World::StrikeServer(Fault fault) {
  Chance& chance = scheduler_.chance();
  if (fault == Fault::kServerDies) {
    server_.Crash("killed");
  } else if (fault == Fault::kServerDiesAtWrites) {
    server_.killed_at_write_in_1000 = static_cast<int>(chance.Between(20, 300));
    For(chance.Time(500, 8000), [this] { server_.killed_at_write_in_1000 = 0; });
  } else if (fault == Fault::kBadNetwork) {
    scheduler_.Trace("the network goes bad");
    network_.lost_in_1000 = static_cast<int>(chance.Between(0, 200));
    network_.unheard_in_1000 = static_cast<int>(chance.Between(0, 200));
    network_.repeated_in_1000 = static_cast<int>(chance.Between(0, 200));
    network_.late_in_1000 = static_cast<int>(chance.Between(0, 100));
    For(chance.Time(2000, 60000), [this] {
      network_.lost_in_1000 = network_.unheard_in_1000 = 0;
      network_.repeated_in_1000 = network_.late_in_1000 = 0;
    });
  } else if (fault == Fault::kDiskFull) {
    scheduler_.Trace("the server's disk is full");
    server_.writes_failing_in_1000 = static_cast<int>(chance.Between(200, 1000));
    For(chance.Time(1000, 40000), [this] { server_.writes_failing_in_1000 = 0; });
  } else if (fault == Fault::kServerClock) {
    const std::int64_t most = chance.In1000(500) ? 5 * 60'000 : 6 * 3'600'000;
    server_.clock().offset = chance.Time(-most, most);
    scheduler_.Trace("the server's clock is off by " +
                     std::to_string(server_.clock().offset.count()) + " ms");
    For(chance.Time(1000, 200000), [this] { server_.clock().offset = Milliseconds(0); });
  }
}

void World::StrikeNode(Fault fault, SimNode& node) {
  Chance& chance = scheduler_.chance();
  SimNode* const raw = &node;
  if (fault == Fault::kAgentDies) {
    node.CrashAgent();
  } else if (fault == Fault::kJailerDies) {
    node.CrashJailer();
  } else if (fault == Fault::kReboot) {
    node.Reboot();
  } else if (fault == Fault::kPartition) {
    const std::string line = chance.In1000(150) ? "users" : node.name();
    scheduler_.Trace(line + " is cut off");
    network_.cut.insert(line);
    For(chance.Time(500, 90000), [this, line] { network_.cut.erase(line); });
  } else if (fault == Fault::kNodeClock) {
    const std::int64_t most = chance.In1000(700) ? 3 * 60'000 : 5 * 24 * 3'600'000LL;
    node.clock().offset = chance.Time(-most, most);
    scheduler_.Trace(node.name() + " has its clock off by " +
                     std::to_string(node.clock().offset.count()) + " ms");
    For(chance.Time(1000, 200000), [raw] { raw->clock().offset = Milliseconds(0); });
  } else if (fault == Fault::kBadMemory || fault == Fault::kGpuVanishes) {
    const auto index = static_cast<std::size_t>(
        chance.Between(0, static_cast<std::int64_t>(node.gpus().size()) - 1));
    SimGpu& gpu = node.gpus()[index];
    const bool vanishes = fault == Fault::kGpuVanishes;
    scheduler_.Trace(gpu.uuid + (vanishes ? " falls off the bus" : " forgets what is written"));
    (vanishes ? gpu.present : gpu.bad) = !vanishes;
    For(chance.Time(5000, 150000), [raw, index, vanishes] {
      SimGpu& again = raw->gpus()[index];
      (vanishes ? again.present : again.bad) = vanishes;
    });
  } else if (fault == Fault::kBadMachine) {
    node.faults = {static_cast<int>(chance.Between(0, 500)),
                   static_cast<int>(chance.Between(0, 500)),
                   static_cast<int>(chance.Between(0, 800))};
    For(chance.Time(2000, 60000), [raw] { raw->faults = {}; });
  } else if (fault == Fault::kLie) {
    users_.Lie(node);
  }
}

}  // namespace ringfence::simulation
