#include "lib/base/trace.h"

#include <gtest/gtest.h>

namespace tokamak::base {
namespace {

TraceEvent Event() { return {Time() + Nanoseconds(5), TraceKind::kPacketSent, 1, 2, 3}; }

uint64_t HashOf(std::initializer_list<TraceEvent> events) {
  TraceHash hash;
  for (const TraceEvent& event : events) hash.Record(event);
  EXPECT_EQ(hash.events(), events.size());
  return hash.hash();
}

TEST(TraceHashTest, EqualEventsGiveEqualHashes) { EXPECT_EQ(HashOf({Event(), Event()}), HashOf({Event(), Event()})); }

TEST(TraceHashTest, EveryFieldCounts) {
  TraceEvent time = Event(), kind = Event(), node = Event(), number = Event(), size = Event();
  time.time = Time();
  kind.kind = TraceKind::kNak;
  node.node = 9;
  number.number = 9;
  size.size = 9;
  for (const TraceEvent& other : {time, kind, node, number, size}) EXPECT_NE(HashOf({other}), HashOf({Event()}));
}

TEST(TraceHashTest, TheActivityOfAPhaseCounts) {
  TraceEvent phase = Event();
  phase.kind = TraceKind::kPhase;
  TraceEvent other = phase;
  other.activity = 9;
  EXPECT_NE(HashOf({phase}), HashOf({other}));
}

TEST(TraceHashTest, OrderAndCountCount) {
  TraceEvent other = Event();
  other.node = 2;
  EXPECT_NE(HashOf({Event(), other}), HashOf({other, Event()}));
  EXPECT_NE(HashOf({Event()}), HashOf({Event(), Event()}));
  EXPECT_NE(HashOf({Event()}), HashOf({}));
}

TEST(TraceHashTest, IsFnv1aOverLittleEndianFields) {
  EXPECT_EQ(HashOf({}), 0xcbf29ce484222325u);
  EXPECT_EQ(HashOf({TraceEvent{Time::FromPicoseconds(1), TraceKind::kNak, 2, 3, 4}}), 0x714227b85c6a4a5u);
}

}  // namespace
}  // namespace tokamak::base
