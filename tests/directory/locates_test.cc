// The Locates of one node that do not wait, asked together.
#include "lib/directory/remote/locates.h"

#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/directory/remote_fixture.h"

namespace tokamak::directory {
namespace {

class LocatesTest : public RemoteDirectoryTest {
 protected:
  struct Asked {
    std::unique_ptr<base::Handle> handle;
    int answers = 0;
    absl::StatusOr<LocatedObject> told = absl::InternalError("no answer");
  };

  // `count` objects that "a" holds: "0", "1" and so on.
  void Hold(int count) {
    ASSERT_TRUE(Join("a").ok());
    for (int i = 0; i < count; ++i) ASSERT_TRUE(Announce(std::to_string(i), "a").ok());
    calls_before_ = caller_.calls();
  }
  std::shared_ptr<Asked> Ask(const std::string& object, base::Duration deadline = kDeadline,
                             const NodeId& puller = "") {
    auto asked = std::make_shared<Asked>();
    asked->handle = remote_.Locate({Id(object), {}, deadline, puller},
                                   [asked = asked.get()](const absl::StatusOr<LocatedObject>& info) {
                                     ++asked->answers;
                                     asked->told = info;
                                   });
    all_.push_back(asked);
    return asked;
  }
  uint64_t calls() const { return caller_.calls() - calls_before_; }

  std::vector<std::shared_ptr<Asked>> all_;
  uint64_t calls_before_ = 0;
};

TEST_F(LocatesTest, LocatesOfOneTaskGoInOneRequest) {
  Hold(50);
  for (int i = 0; i < 50; ++i) Ask(std::to_string(i));
  Ask("nobody has it");
  scheduler_.RunFor(kDeadline);
  EXPECT_EQ(calls(), 1u);
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(all_[i]->answers, 1);
    ASSERT_TRUE(all_[i]->told.ok()) << all_[i]->told.status();
    EXPECT_EQ(all_[i]->told->holders, std::vector<NodeId>{"a"});
  }
  EXPECT_EQ(all_[50]->answers, 1);
  EXPECT_TRUE(absl::IsNotFound(all_[50]->told.status())) << all_[50]->told.status();
}

TEST_F(LocatesTest, ARequestIsBounded) {
  Hold(1);
  for (size_t i = 0; i < kMaxLocated + 1; ++i) Ask("0");
  scheduler_.RunFor(kDeadline);
  EXPECT_EQ(calls(), 2u);
  for (const auto& asked : all_) EXPECT_EQ(asked->answers, 1);
}

TEST_F(LocatesTest, LocatesBeyondTheBoundOfRequestsWaitAndAreNotRefused) {
  Hold(1);
  constexpr size_t kMany = (Locates::kMaxCalls * 3 + 1) * kMaxLocated;
  for (size_t i = 0; i < kMany; ++i) Ask("0");
  scheduler_.RunFor(caller_.one_way);
  EXPECT_EQ(caller_.pending(), Locates::kMaxCalls);
  scheduler_.RunFor(kDeadline);
  EXPECT_EQ(calls(), Locates::kMaxCalls * 3 + 1);
  for (const auto& asked : all_) {
    ASSERT_EQ(asked->answers, 1);
    ASSERT_TRUE(asked->told.ok()) << asked->told.status();
  }
}

TEST_F(LocatesTest, AnUnsentLocateEndsAtItsDeadline) {
  Hold(1);
  caller_.cut = true;
  constexpr size_t kFirst = Locates::kMaxCalls * kMaxLocated;
  for (size_t i = 0; i < kFirst; ++i) Ask("0", kDeadline * 2);
  for (size_t i = 0; i < kMaxLocated; ++i) Ask("0", kDeadline);
  scheduler_.RunFor(kDeadline);
  for (size_t i = 0; i < kMaxLocated; ++i) {
    ASSERT_EQ(all_[kFirst + i]->answers, 1);
    EXPECT_TRUE(absl::IsDeadlineExceeded(all_[kFirst + i]->told.status())) << all_[kFirst + i]->told.status();
  }
  EXPECT_EQ(all_[0]->answers, 0);
}

TEST_F(LocatesTest, ManyDroppedLocatesAreNotSentOneByOne) {
  Hold(1);
  for (size_t i = 0; i < Locates::kMaxCalls * kMaxLocated * 3; ++i) Ask("0");
  scheduler_.RunFor(caller_.one_way);
  for (const auto& asked : all_) asked->handle.reset();
  Ask("0");
  scheduler_.RunFor(kDeadline);
  EXPECT_LE(calls(), Locates::kMaxCalls + 1);
  EXPECT_EQ(all_.back()->answers, 1);
}

TEST_F(LocatesTest, LocatesThatFindNoRoomInAReplyAreSentAgain) {
  UseSmallReplies();
  Hold(20);
  for (int i = 0; i < 20; ++i) Ask(std::to_string(i));
  scheduler_.RunFor(kDeadline);
  EXPECT_GT(calls(), 2u);
  for (const auto& asked : all_) {
    EXPECT_EQ(asked->answers, 1);
    EXPECT_TRUE(asked->told.ok()) << asked->told.status();
  }
}

TEST_F(LocatesTest, ALocateDroppedBeforeItIsSentIsNotSent) {
  Hold(2);
  Ask("0")->handle.reset();
  scheduler_.RunFor(kDeadline);
  EXPECT_EQ(calls(), 0u);
  Ask("0");
  Ask("1")->handle.reset();
  scheduler_.RunFor(kDeadline);
  EXPECT_EQ(calls(), 1u);
  EXPECT_EQ(all_[1]->answers, 1);
  EXPECT_EQ(all_[0]->answers + all_[2]->answers, 0);
}

TEST_F(LocatesTest, AnAnswerMayDropOtherLocatesAndStartOne) {
  Hold(3);
  const auto first = std::make_shared<Asked>();
  first->handle = remote_.Locate({Id("0"), {}, kDeadline, ""}, [&](const absl::StatusOr<LocatedObject>&) {
    ++first->answers;
    first->handle.reset();
    all_[0]->handle.reset();
    Ask("2");
  });
  Ask("1");
  scheduler_.RunFor(kDeadline);
  EXPECT_EQ(first->answers, 1);
  EXPECT_EQ(all_[0]->answers, 0);
  EXPECT_EQ(all_[1]->answers, 1);
}

TEST_F(LocatesTest, AnAnswerMayDropTheDirectory) {
  Hold(2);
  auto remote =
      std::make_unique<RemoteDirectory>(loop_, caller_, *verbs::Address::Parse("10.0.0.1:7000"), base::Random(2));
  int answers = 0;
  std::vector<base::Pending> handles;
  for (const char* object : {"0", "1"}) {
    handles.push_back(remote->Locate({Id(object), {}, kDeadline, ""}, [&](const absl::StatusOr<LocatedObject>&) {
      ++answers;
      remote.reset();
    }));
  }
  scheduler_.RunFor(kDeadline);
  EXPECT_EQ(answers, 1);
  handles.clear();
}

TEST_F(LocatesTest, LocatesOfAnotherDeadlineOrPullerGoInAnotherRequest) {
  Hold(1);
  Ask("0");
  Ask("0", kDeadline * 2);
  Ask("0", kDeadline * 2, "a");
  scheduler_.RunFor(kDeadline);
  EXPECT_EQ(calls(), 3u);
  for (const auto& asked : all_) EXPECT_TRUE(asked->told.ok()) << asked->told.status();
}

TEST_F(LocatesTest, ALaterCallFollowsTheLocates) {
  Hold(1);
  Ask("0");
  ASSERT_TRUE(Delete("0").ok());
  EXPECT_TRUE(all_[0]->told.ok()) << all_[0]->told.status();
}

TEST_F(LocatesTest, AFailedCallEndsAllItsLocates) {
  Hold(2);
  caller_.cut = true;
  Ask("0");
  Ask("1");
  scheduler_.RunFor(kDeadline * 2);
  for (const auto& asked : all_) {
    EXPECT_EQ(asked->answers, 1);
    EXPECT_FALSE(asked->told.ok());
  }
}

}  // namespace
}  // namespace tokamak::directory
