// What only the local directory promises; what all directories promise is in conformance/.
#include "lib/directory/local.h"

#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "sim/sim_loop.h"

namespace tokamak::directory {
namespace {

constexpr base::Duration kDeadline = base::Seconds(2);

class LocalDirectoryTest : public testing::Test {
 protected:
  static base::ObjectId Id(int number) { return base::ObjectId::FromName(std::to_string(number)); }

  void Join(const NodeId& id) {
    local_.Join({id, 1, {"10.0.0.1:7000"}, "", 0}, base::Seconds(10), kDeadline,
                [](const auto& r) { EXPECT_TRUE(r.ok()); });
  }
  absl::Status Announce(int object, const NodeId& node) {
    absl::Status status = absl::InternalError("no answer");
    local_.Announce(Id(object), 1, 1, node, kDeadline, [&](const absl::Status& s) { status = s; });
    scheduler_.RunFor(base::Microseconds(1));
    return status;
  }

  sim::Scheduler scheduler_;
  sim::SimLoop loop_{scheduler_};
  LocalDirectory local_{loop_, {/*objects=*/3, /*waiting=*/2}};
};

TEST_F(LocalDirectoryTest, ObjectsBeyondTheBoundAreRefused) {
  Join("a");
  Join("b");
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(Announce(i, "a").ok());
  EXPECT_TRUE(absl::IsResourceExhausted(Announce(3, "a")));
  EXPECT_TRUE(Announce(2, "b").ok());
  local_.Withdraw(Id(0), "a", kDeadline, [](const absl::Status&) {});
  EXPECT_TRUE(Announce(3, "a").ok());
}

TEST_F(LocalDirectoryTest, WaitsBeyondTheBoundAreRefused) {
  Join("a");
  int found = 0, refused = 0;
  for (int i = 0; i < 3; ++i) {
    local_.Locate(Id(0), base::Seconds(1), kDeadline, [&](const absl::StatusOr<ObjectInfo>& info) {
      found += info.ok();
      refused += absl::IsResourceExhausted(info.status());
    });
  }
  EXPECT_TRUE(Announce(0, "a").ok());
  EXPECT_EQ(found, 2);
  EXPECT_EQ(refused, 1);
}

TEST_F(LocalDirectoryTest, NothingIsLeftOfWaitsAndLeasesThatEnded) {
  Join("a");
  EXPECT_TRUE(Announce(0, "a").ok());
  local_.Locate(Id(1), base::Seconds(1), kDeadline, [](const auto&) {});
  scheduler_.RunFor(base::Microseconds(1));
  EXPECT_EQ(local_.objects(), 2u);
  scheduler_.RunFor(base::Seconds(20));
  EXPECT_EQ(local_.objects(), 0u);
  EXPECT_EQ(local_.nodes(), 0u);
  EXPECT_TRUE(scheduler_.idle());
}

class LocateAnyTest : public LocalDirectoryTest {
 protected:
  LocateAnyTest() { Join("a"); }
  std::unique_ptr<AnyWait> Start(const std::vector<int>& objects, base::Duration wait) {
    std::vector<base::ObjectId> ids;
    for (const int object : objects) ids.push_back(Id(object));
    auto any = local_.LocateAny(ids, wait, [this](const absl::StatusOr<LocalDirectory::Found>& found) {
      ++answers_;
      status_ = found.status();
      places_.clear();
      if (!found.ok()) return;
      for (const auto& [place, object] : *found) places_.push_back(place);
    });
    EXPECT_EQ(answers_, 0);
    return any;
  }

  int answers_ = 0;
  absl::Status status_;
  std::vector<size_t> places_;
};

TEST_F(LocateAnyTest, AllThatAreHeldAreFoundAtOnce) {
  EXPECT_TRUE(Announce(0, "a").ok());
  EXPECT_TRUE(Announce(2, "a").ok());
  const auto any = Start({0, 1, 2}, base::Seconds(1));
  scheduler_.RunFor(base::Microseconds(1));
  EXPECT_EQ(answers_, 1);
  EXPECT_EQ(places_, (std::vector<size_t>{0, 2}));
}

TEST_F(LocateAnyTest, WhatAppearsFirstIsFoundAndNothingIsLeftWaiting) {
  const auto any = Start({0, 1}, base::Seconds(5));
  scheduler_.RunFor(base::Seconds(1));
  EXPECT_EQ(answers_, 0);
  EXPECT_TRUE(Announce(1, "a").ok());
  EXPECT_EQ(answers_, 1);
  EXPECT_EQ(places_, std::vector<size_t>{1});
  EXPECT_EQ(local_.objects(), 1u);
  EXPECT_TRUE(Announce(0, "a").ok());
  EXPECT_EQ(answers_, 1);
}

TEST_F(LocateAnyTest, WhatAppearsTogetherIsFoundTogether) {
  const auto any = Start({0, 1}, base::Seconds(5));
  local_.Announce(Id(0), 1, 1, "a", kDeadline, [](const absl::Status&) {});
  local_.Announce(Id(1), 1, 1, "a", kDeadline, [](const absl::Status&) {});
  scheduler_.RunFor(base::Microseconds(1));
  EXPECT_EQ(places_.size(), 2u);
}

TEST_F(LocateAnyTest, AWaitInVainEndsInItsTime) {
  const auto any = Start({0, 1}, base::Seconds(5));
  scheduler_.RunFor(base::Seconds(5) - base::Microseconds(1));
  EXPECT_EQ(answers_, 0);
  scheduler_.RunFor(base::Microseconds(1));
  EXPECT_EQ(answers_, 1);
  EXPECT_TRUE(absl::IsNotFound(status_));
  EXPECT_EQ(local_.objects(), 0u);
}

TEST_F(LocateAnyTest, DroppedItAnswersNoMoreAndLeavesNothing) {
  auto any = Start({0, 1}, base::Seconds(5));
  any.reset();
  EXPECT_EQ(local_.objects(), 0u);
  EXPECT_TRUE(Announce(1, "a").ok());
  any = Start({1}, base::Seconds(5));
  any.reset();
  scheduler_.RunFor(base::Seconds(10));
  EXPECT_EQ(answers_, 0);
}

TEST_F(LocateAnyTest, BeyondTheBoundItIsRefused) {
  const auto any = Start({0, 1, 2}, base::Seconds(5));
  scheduler_.RunFor(base::Microseconds(1));
  EXPECT_TRUE(absl::IsResourceExhausted(status_));
}

TEST_F(LocalDirectoryTest, ALeaseEndsToThePicosecond) {
  Join("a");
  const base::Time joined = scheduler_.Now();
  scheduler_.RunUntil(joined + base::Seconds(10) - base::Duration::Picoseconds(1));
  EXPECT_EQ(local_.nodes(), 1u);
  scheduler_.RunUntil(joined + base::Seconds(10));
  EXPECT_EQ(local_.nodes(), 0u);
}

}  // namespace
}  // namespace tokamak::directory
