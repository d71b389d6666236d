// Goal: a node counts as proven only by attacks about whole GPUs that held, as of the oldest one.
// Method: documents as store/proofs.h keeps them, whole and broken.

#include "server/proven.h"

#include <gtest/gtest.h>

namespace ringfence::server {
namespace {

JsonObject Document(const char* grade, const JsonObject& probes) {
  return {{"classes", JsonObject{{"gpu", JsonObject{{"grade", grade}}}}}, {"probes", probes}};
}

JsonObject ProbeAt(const char* time, const char* result, const char* isolation = "gpu") {
  return {{"classes", JsonArray{Json(isolation)}}, {"result", result}, {"time", time}};
}

TEST(ProvenTest, TheOldestAttackThatHeldCounts) {
  const char* const older = "2026-11-15T08:00:00.000Z";
  const char* const newer = "2026-11-16T08:00:00.000Z";
  const char* const oldest = "2026-11-01T08:00:00.000Z";
  const Proven proven = ProvenOf(Document("held", {{"a", ProbeAt(newer, "held")},
                                                   {"b", ProbeAt(older, "held")},
                                                   {"c", ProbeAt(oldest, "could not be tried")},
                                                   {"d", ProbeAt(oldest, "held", "mps")}}));
  EXPECT_EQ(proven.grade, "held");
  EXPECT_EQ(proven.time, ParseTime(older).value());
}

TEST(ProvenTest, NothingElseProvesAnything) {
  EXPECT_EQ(ProvenOf({}).grade, "unproven");
  EXPECT_EQ(ProvenOf(Document("held", {})).grade, "unproven");
  const Proven leaked =
      ProvenOf(Document("leaked", {{"a", ProbeAt("2026-11-16T08:00:00.000Z", "leaked")}}));
  EXPECT_EQ(leaked.grade, "leaked");
  EXPECT_FALSE(leaked.time.has_value());
  EXPECT_FALSE(ProvenOf(Document("held", {{"a", ProbeAt("soon", "held")}})).time.has_value());
  EXPECT_EQ(ProvenOf({{"classes", 7}, {"probes", "x"}}).grade, "unproven");
}

}  // namespace
}  // namespace ringfence::server
