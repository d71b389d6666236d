#pragma once

// The worker that touches an image's bytes: its own user, no capability, no network, nothing to see
// but its libraries and the one tree it fills or reads, Landlock and a seccomp filter. What it
// reads comes as open files, so it needs no way to where they lie.

#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "image/report.h"
#include "isolate/worker.h"
#include "os/process.h"

namespace ringfence::isolate {

enum class ImageWork {
  kResolve,  // prints {"digest"} of what the files hold
  kUnpack,   // fills the tree, prints image::Report
  kCheck,    // prints {"tree_digest"} of the tree
};

struct ImageTask {
  ImageWork work = ImageWork::kResolve;
  std::vector<std::pair<std::string, int>> files;  // name in the layout, and our descriptor
  int tar = -1;                                    // or this
  image::Wanted wanted;
  std::string tree;  // for kUnpack and kCheck; it gets this folder open, and no way to it
};

// How to start it; the task's descriptors must live until it has been. Without root there is no
// user to change to and no namespace: Landlock and seccomp hold all the same.
Result<os::SpawnOptions> ImageWorkerProcess(const WorkerPlace& place, const ImageTask& task);
// For the jailer's loop.
Result<StartedWorker> StartImageCheck(const WorkerPlace& place, const std::string& tree);
Result<std::string> TreeDigestOf(const std::string& report);  // of what kCheck prints

// The user whose files the images of a node are; no box's range has it.
unsigned ImageUid(unsigned uid_base);

}  // namespace ringfence::isolate
