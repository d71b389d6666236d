#pragma once

// The attacks that `ringfence prove` runs: what each tries, what it speaks about, and with which
// walls away it must get through. The code of each is in probes/, under the same name;
// docs/probes.md says what a result means.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "isolate/walls_away.h"
#include "model/isolation.h"

namespace ringfence::isolate {

struct Probe {
  std::string name = {};   // "proc-mem", as the probe program knows it
  std::string title = {};  // for a table
  std::string what = {};   // one sentence: the attack
  // What a result is evidence about. Walls of the kernel are around a box of any class.
  std::vector<model::IsolationClass> classes = {};
  bool victim = false;  // needs a neighbour, in a box of its own with the same walls away
  int gpus = 0;         // that each of the two boxes needs
  // The least that must be taken away, from victim and attacker alike, for the attack to work.
  std::vector<Wall> control = {};
  // What the victim must have done before the attacker starts: "" (it lives on) or why it must have
  // ended.
  std::string victim_ends_before = {};
  // The victim's and the attacker's GPU are one and the same.
  bool same_gpu = false;
  // Facts that only the node knows: the attacker is told them as KEY=VALUE.
  std::vector<std::string> facts = {};
  // What a machine may lack; where it does, the control answers that it cannot be tried.
  std::string needs = {};
};

std::span<const Probe> Probes();
const Probe* FindProbe(std::string_view name);  // nullptr: none

}  // namespace ringfence::isolate
