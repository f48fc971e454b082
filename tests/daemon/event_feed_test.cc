// What one client is told of the store's objects: all of it, unless it does not keep up.
#include "lib/daemon/event_feed.h"

#include <functional>
#include <string>
#include <vector>

#include "tests/daemon/one_session.h"

namespace tokamak::daemon {
namespace {

constexpr uint64_t kRequest = 9;

std::vector<store::Event> Sealed(size_t count) {
  std::vector<store::Event> events(count);
  for (size_t i = 0; i < count; ++i) events[i].id = Id(std::to_string(i));
  return events;
}

class EventFeedTest : public testing::Test {
 protected:
  struct Said {
    uint64_t request_id;
    client::EventsNotification events;
  };

  void Take(const Bytes& frame) {
    const auto header = client::DecodeHeader(frame);
    const auto events = client::DecodeBody<client::EventsNotification>(frame);
    ASSERT_TRUE(header.ok() && events.ok()) << events.status();
    said_.push_back({header->request_id, *events});
  }

  std::vector<Said> said_;
  bool congested_ = false;
  std::function<void()> after_a_frame_ = [] {};
  EventFeed feed_{[this](const Bytes& frame) {
                    Take(frame);
                    after_a_frame_();
                  },
                  [this] { return congested_; }};
};

TEST_F(EventFeedTest, MoreEventsThanAFrameHoldsAreSeveralFramesInOrder) {
  const auto events = Sealed(2 * client::kMaxEvents + 1);
  feed_.Tell(kRequest, events);
  ASSERT_EQ(said_.size(), 3u);
  size_t at = 0;
  for (const Said& one : said_) {
    EXPECT_EQ(one.request_id, kRequest);
    EXPECT_EQ(one.events.dropped, 0u);
    for (const client::EventEntry& event : one.events.events) EXPECT_EQ(event.id, events[at++].id);
  }
  EXPECT_EQ(at, events.size());
}

TEST_F(EventFeedTest, WhatIsLeftOutIsCountedOnce) {
  congested_ = true;
  feed_.Tell(kRequest, Sealed(3));
  feed_.Tell(kRequest, Sealed(2));
  EXPECT_TRUE(said_.empty());
  congested_ = false;
  feed_.Tell(kRequest, Sealed(1));
  feed_.Tell(kRequest, Sealed(1));
  ASSERT_EQ(said_.size(), 2u);
  EXPECT_EQ(said_[0].events.dropped, 5u);
  EXPECT_EQ(said_[1].events.dropped, 0u);
}

TEST_F(EventFeedTest, AClientThatOneFrameCongestsMissesTheRest) {
  after_a_frame_ = [this] { congested_ = true; };
  feed_.Tell(kRequest, Sealed(2 * client::kMaxEvents + 1));
  ASSERT_EQ(said_.size(), 1u);
  congested_ = false;
  feed_.Tell(kRequest, Sealed(1));
  ASSERT_EQ(said_.size(), 2u);
  EXPECT_EQ(said_[1].events.dropped, client::kMaxEvents + 1);
}

}  // namespace
}  // namespace tokamak::daemon
