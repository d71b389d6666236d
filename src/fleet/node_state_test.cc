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
