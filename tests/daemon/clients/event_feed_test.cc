// One client's events about the store's objects: all of them, unless it does not keep up.
#include "lib/daemon/clients/event_feed.h"

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/daemon/clients/one_session.h"

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
  sim::Scheduler scheduler_;
  sim::SimLoop loop_{scheduler_};
  EventFeed feed_{loop_,
                  [this](const Bytes& frame) {
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

TEST_F(EventFeedTest, DroppedEventsAreCountedOnce) {
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

TEST_F(EventFeedTest, AClientThatCatchesUpIsToldWhatItMissedThoughNothingElseHappens) {
  congested_ = true;
  feed_.Tell(kRequest, Sealed(3));
  scheduler_.RunFor(base::Seconds(1));
  EXPECT_TRUE(said_.empty());
  congested_ = false;
  scheduler_.RunFor(base::Milliseconds(20));
  ASSERT_EQ(said_.size(), 1u);
  EXPECT_EQ(said_[0].request_id, kRequest);
  EXPECT_EQ(said_[0].events.dropped, 3u);
  EXPECT_TRUE(said_[0].events.events.empty());
  scheduler_.RunFor(base::Seconds(1));
  EXPECT_EQ(said_.size(), 1u) << "once";
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

// A late subscriber's events about a store, added up.
class LateEventFeedTest : public EventFeedTest {
 protected:
  static constexpr size_t kThere = 2 * client::kMaxEvents + 100;

  LateEventFeedTest() : arena_(512 * 1024 / sizeof(Line)) {
    store_ = std::make_unique<store::Store>(absl::MakeSpan(arena_[0].bytes, arena_.size() * sizeof(Line)),
                                            store::Options(), loop_, trace_);
    owner_ = store_->NewOwner();
  }

  void Put(const std::string& name) { ASSERT_TRUE(store_->CreateAndSeal({Id(name), {}, {}}, owner_).ok()); }
  void Delete(const std::string& name) { ASSERT_TRUE(store_->Delete(Id(name)).ok()); }

  // Adds up the events: an object that is reported twice, or gone without having been reported, is
  // a failure. `caught_up` is true once all existing objects have been reported, and from then on.
  std::set<base::ObjectId> Known() {
    std::set<base::ObjectId> known;
    for (const Said& one : said_) {
      for (const client::EventEntry& event : one.events.events) {
        const bool changed =
            event.kind == EventKind::kSealed ? known.insert(event.id).second : known.erase(event.id) == 1;
        EXPECT_TRUE(changed) << event.id.ToHex() << " " << static_cast<int>(event.kind);
      }
    }
    return known;
  }
  std::set<base::ObjectId> Sealed() const {
    std::set<base::ObjectId> sealed;
    for (const store::StoredObject& info : store_->List(SIZE_MAX)) {
      if (info.state == store::State::kSealed) sealed.insert(info.id);
    }
    return sealed;
  }

  struct alignas(64) Line {
    uint8_t bytes[64];
  };
  base::NoTrace trace_;
  std::vector<Line> arena_;
  std::unique_ptr<store::Store> store_;
  store::Owner owner_{};
};

TEST_F(LateEventFeedTest, ObjectsSealedAlreadyComeFirst) {
  for (size_t i = 0; i < kThere; ++i) Put(std::to_string(i));
  ASSERT_TRUE(store_->Create(Id("unsealed"), 10, 0, owner_).ok());
  feed_.Start(*store_, kRequest, /*existing=*/true);
  EXPECT_TRUE(said_.empty()) << "never inside the call";
  scheduler_.RunFor(base::Milliseconds(1));
  ASSERT_EQ(said_.size(), 3u);
  EXPECT_FALSE(said_[0].events.caught_up || said_[1].events.caught_up);
  EXPECT_TRUE(said_[2].events.caught_up);
  EXPECT_EQ(Known().size(), kThere);
  ASSERT_TRUE(store_->Seal(Id("unsealed"), owner_).ok());
  scheduler_.RunFor(base::Milliseconds(1));
  EXPECT_EQ(Known(), Sealed());
}

TEST_F(LateEventFeedTest, AnEmptyStoreIsReportedAsEmpty) {
  feed_.Start(*store_, kRequest, /*existing=*/true);
  scheduler_.RunFor(base::Milliseconds(1));
  ASSERT_EQ(said_.size(), 1u);
  EXPECT_TRUE(said_[0].events.caught_up);
  EXPECT_TRUE(said_[0].events.events.empty());
}

TEST_F(LateEventFeedTest, OnlyNewEventsAreSentUnlessAskedOtherwise) {
  Put("old");
  feed_.Start(*store_, kRequest, /*existing=*/false);
  Put("new");
  scheduler_.RunFor(base::Milliseconds(1));
  ASSERT_EQ(said_.size(), 1u);
  EXPECT_EQ(said_[0].events.events.size(), 1u);
  EXPECT_TRUE(said_[0].events.caught_up);
}

// Objects come and go between any two frames: just before the subscription, too.
TEST_F(LateEventFeedTest, ChangesDuringTheCatchUpAreReportedOnceAndInOrder) {
  for (size_t i = 0; i < kThere; ++i) Put(std::to_string(i));
  size_t turn = 0;
  const auto change = [&] {
    for (size_t i = 0; i < 50; ++i) Put(absl::StrCat("new ", turn, " ", i));
    for (size_t i = 0; i < 50; ++i) Delete(std::to_string(turn * 50 + i));
    for (size_t i = 0; i < 25; ++i) Delete(absl::StrCat("new ", turn, " ", i));
    ++turn;
  };
  std::vector<base::Timer> changes;
  after_a_frame_ = [&] {
    changes.push_back(loop_.Post([&] {
      if (turn < 10) change();
    }));
  };
  change();
  feed_.Start(*store_, kRequest, /*existing=*/true);
  change();
  scheduler_.RunFor(base::Milliseconds(1));
  EXPECT_EQ(turn, 10u);
  EXPECT_EQ(Known(), Sealed());
  EXPECT_TRUE(said_.back().events.caught_up);
}

TEST_F(LateEventFeedTest, ExistingObjectsWaitForACongestedClient) {
  for (size_t i = 0; i < kThere; ++i) Put(std::to_string(i));
  after_a_frame_ = [this] { congested_ = true; };
  feed_.Start(*store_, kRequest, /*existing=*/true);
  scheduler_.RunFor(base::Seconds(1));
  ASSERT_EQ(said_.size(), 1u);
  // An event that this client missed is counted; the rest shows.
  const base::ObjectId told = said_[0].events.events.front().id;
  ASSERT_TRUE(store_->Delete(told).ok());
  after_a_frame_ = [] {};
  scheduler_.RunFor(base::Milliseconds(5));
  congested_ = false;
  scheduler_.RunFor(base::Seconds(1));
  EXPECT_EQ(said_.size(), 3u);
  EXPECT_EQ(said_[1].events.dropped, 1u);
  EXPECT_TRUE(said_.back().events.caught_up);
  EXPECT_EQ(Known().size(), kThere) << "with the one whose deletion was dropped";
}

TEST_F(LateEventFeedTest, ASubscriberThatStopsMeanwhileHearsNothing) {
  for (size_t i = 0; i < kThere; ++i) Put(std::to_string(i));
  congested_ = true;
  feed_.Start(*store_, kRequest, /*existing=*/true);
  scheduler_.RunFor(base::Milliseconds(1));
  feed_.Stop();
  congested_ = false;
  scheduler_.RunFor(base::Seconds(1));
  EXPECT_TRUE(said_.empty());
}

}  // namespace
}  // namespace tokamak::daemon
