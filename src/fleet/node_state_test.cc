// Goal: an inventory never makes a GPU leasable, whatever it says.
// Method: every state a known GPU can have against an inventory that shows, hides or moves it.

#include "fleet/node_state.h"

#include <gtest/gtest.h>

namespace ringfence::fleet {
namespace {

constexpr Timestamp kNow{Milliseconds(1'000'000'000)};

model::Gpu Card(const std::string& uuid, model::GpuState state, const std::string& lease = "") {
  model::Gpu gpu;
  gpu.uuid = uuid;
  gpu.node = "n1";
  gpu.state = state;
  gpu.lease = lease;
  return gpu;
}

NodeInventory Showing(const std::vector<std::string>& uuids) {
  NodeInventory inventory;
  for (const std::string& uuid : uuids) {
    inventory.gpus.push_back(Card(uuid, model::GpuState::kFree));  // what it claims is not believed
  }
  return inventory;
}

TEST(ReconcileTest, ANewGpuIsDirtyAndOneThatVanishedIsLostAndDirtyWhenItComesBack) {
  const auto added = Reconcile({}, Showing({"GPU-a"}), "n1", kNow);
  ASSERT_TRUE(added.has_value());
  EXPECT_EQ(added->at(0).gpu.state, model::GpuState::kDirty);
  EXPECT_EQ(added->at(0).gpu.dirty_since, kNow);
  EXPECT_FALSE(added->at(0).what.empty());

  for (int state = 0; state <= static_cast<int>(model::GpuState::kLost); ++state) {
    const auto known = Card("GPU-a", static_cast<model::GpuState>(state));
    const auto gone = Reconcile({known}, Showing({}), "n1", kNow);
    ASSERT_TRUE(gone.has_value());
    if (known.state == model::GpuState::kLost) {
      EXPECT_TRUE(gone->empty());
    } else {
      EXPECT_EQ(gone->at(0).gpu.state, model::GpuState::kLost);
    }
    const auto still = Reconcile({known}, Showing({"GPU-a"}), "n1", kNow);
    ASSERT_TRUE(still.has_value());
    EXPECT_EQ(still->at(0).gpu.state,
              known.state == model::GpuState::kLost ? model::GpuState::kDirty : known.state);
  }
  const auto back =
      Reconcile({Card("GPU-a", model::GpuState::kLost, "lease-1")}, Showing({"GPU-a"}), "n1", kNow);
  EXPECT_EQ(back->at(0).gpu.state, model::GpuState::kLeased)
      << "its lease still has to be scrubbed";
}

TEST(ReconcileTest, AClaimOnAnotherNodesCardChangesNothing) {
  const auto moved =
      Reconcile({Card("GPU-a", model::GpuState::kFree)}, Showing({"GPU-a"}), "n2", kNow);
  ASSERT_TRUE(moved.has_value());
  ASSERT_EQ(moved->size(), 1U);
  EXPECT_EQ(moved->at(0).gpu.node, "n1");
  EXPECT_EQ(moved->at(0).gpu.state, model::GpuState::kFree);
  EXPECT_FALSE(moved->at(0).what.empty());
}

model::Gpu Slice(const std::string& uuid, model::GpuState state, const std::string& lease = "") {
  model::Gpu slice = Card(uuid, state, lease);
  slice.parent = "GPU-a";
  slice.profile = "1g.18gb";
  slice.gpu_instance = 7;
  slice.start = 0;
  return slice;
}

model::Gpu InMode(model::Gpu gpu, const std::string& mig) {
  gpu.mig = mig;
  return gpu;
}

TEST(ReconcileTest, AGpuThatIsCutIsNeverLeasableAndDirtyOnceItIsWholeAgain) {
  NodeInventory cut;
  cut.gpus = {InMode(Card("GPU-a", model::GpuState::kFree), "on"),
              Slice("MIG-a", model::GpuState::kFree)};
  const auto fresh = Reconcile({}, cut, "n1", kNow);
  ASSERT_TRUE(fresh.has_value());
  EXPECT_EQ(fresh->at(0).gpu.state, model::GpuState::kCut);
  EXPECT_EQ(fresh->at(1).gpu.state, model::GpuState::kDirty) << "until it has a receipt";
  for (const auto state : {model::GpuState::kFree, model::GpuState::kDirty, model::GpuState::kLost,
                           model::GpuState::kCut}) {
    const auto now_cut = Reconcile({Card("GPU-a", state)}, cut, "n1", kNow);
    EXPECT_EQ(now_cut->at(0).gpu.state, model::GpuState::kCut) << Name(state);
  }
  const auto bad = Reconcile({Card("GPU-a", model::GpuState::kQuarantined)}, cut, "n1", kNow);
  EXPECT_EQ(bad->at(0).gpu.state, model::GpuState::kQuarantined);

  NodeInventory whole;
  whole.gpus = {InMode(Card("GPU-a", model::GpuState::kFree), "off")};
  const auto joined = Reconcile({Card("GPU-a", model::GpuState::kCut)}, whole, "n1", kNow);
  EXPECT_EQ(joined->at(0).gpu.state, model::GpuState::kDirty) << "slices left something in it";
  EXPECT_EQ(joined->at(0).gpu.dirty_since, kNow);
}

TEST(ReconcileTest, ASliceThatIsGoneIsDroppedUnlessSomebodyHasIt) {
  const NodeInventory without = Showing({"GPU-a"});
  const auto idle = Reconcile({Slice("MIG-a", model::GpuState::kFree)}, without, "n1", kNow);
  EXPECT_TRUE(idle->at(1).dropped);
  for (const auto& held : {Slice("MIG-a", model::GpuState::kLeased, "lease-1"),
                           Slice("MIG-a", model::GpuState::kQuarantined)}) {
    const auto gone = Reconcile({held}, without, "n1", kNow);
    EXPECT_FALSE(gone->at(1).dropped);
    EXPECT_EQ(gone->at(1).gpu.state, model::GpuState::kLost);
  }
}

TEST(ReconcileTest, AnotherSliceUnderAKnownNameIsDirty) {
  NodeInventory inventory = Showing({"GPU-a"});
  inventory.gpus.push_back(Slice("MIG-a", model::GpuState::kFree));
  model::Gpu before = inventory.gpus.back();
  EXPECT_EQ(Reconcile({before}, inventory, "n1", kNow)->at(1).gpu.state, model::GpuState::kFree);
  before.start = 1;
  EXPECT_EQ(Reconcile({before}, inventory, "n1", kNow)->at(1).gpu.state, model::GpuState::kDirty);
}

TEST(InventoryTest, ASliceNamesAGpuOfTheSameInventory) {
  const auto parse = [](const std::string& parent) {
    const auto json = ParseJson(
        R"({"simulated":true,"driver_version":"1","library_digest":"sha256:0","gpus":[)"
        R"({"uuid":"GPU-a","model":"m","index":0,"minor":0,"memory_bytes":8,"processes":[],)"
        R"("mig_enabled":true},{"uuid":"MIG-a","model":"m MIG 1g.18gb","index":0,"minor":0,)"
        R"("memory_bytes":1,"processes":[],"slice":{"parent":")" +
            parent + R"(","profile":"1g.18gb","gpu_instance":7,"compute_instance":0,"start":0}}]})",
        1U << 20U);
    EXPECT_TRUE(json.has_value());
    return InventoryOf(*json, "n1");
  };
  const auto good = parse("GPU-a");
  ASSERT_TRUE(good.has_value()) << good.error().message;
  EXPECT_EQ(good->gpus[0].mig, "on");
  EXPECT_EQ(good->gpus[1].parent, "GPU-a");
  EXPECT_EQ(good->gpus[1].profile, "1g.18gb");
  EXPECT_EQ(good->gpus[1].gpu_instance, 7U);
  EXPECT_EQ(good->gpus[1].start, 0U);
  EXPECT_EQ(good->gpus[1].memory_bytes, 1U);
  for (const char* parent : {"GPU-b", "MIG-a", ""}) {
    EXPECT_FALSE(parse(parent).has_value()) << parent;
  }
}

TEST(InventoryTest, MalformedInventoriesAreRefusedWithTheField) {
  const std::string good =
      R"({"simulated":true,"driver_version":"1","library_digest":"sha256:0","gpus":[{"uuid":"GPU-a",)"
      R"("model":"m","index":0,"minor":0,"memory_bytes":1,"processes":[]}]})";
  const auto parse = [](const std::string& text) {
    const auto json = ParseJson(text, 1U << 20U);
    EXPECT_TRUE(json.has_value());
    return InventoryOf(*json, "n1");
  };
  ASSERT_TRUE(parse(good).has_value());
  EXPECT_EQ(parse(good)->gpus[0].ecc, "unknown");
  for (const auto& [from, to] : {std::pair<std::string, std::string>{"GPU-a", "a"},
                                 {"\"memory_bytes\":1", "\"memory_bytes\":-1"},
                                 {"\"minor\":0,", ""},
                                 {"true", "1"}}) {
    std::string bad = good;
    bad.replace(bad.find(from), from.size(), to);
    EXPECT_FALSE(parse(bad).has_value()) << bad;
  }
}

TEST(NodeStateTest, SilentWinsOverIncapable) {
  model::Node node;
  node.last_seen = kNow;
  EXPECT_EQ(StateOf(node, kNow), NodeState::kReady);
  node.missing = {"x"};
  EXPECT_EQ(StateOf(node, kNow), NodeState::kIncapable);
  EXPECT_EQ(StateOf(node, kNow + kSilentAfter + Milliseconds(1)), NodeState::kSilent);
}

}  // namespace
}  // namespace ringfence::fleet
