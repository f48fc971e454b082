// Every directory's promise about objects and their holders.
#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "tests/directory/conformance/fixture.h"

namespace tokamak::directory {

namespace {

base::ObjectName NameOf(const std::string& name) {
  return *base::ObjectName::For(base::ObjectId::FromName(name), name);
}

}  // namespace

TEST_P(DirectoryConformance, WhatOneNodeAnnouncesAnotherLocates) {
  ASSERT_TRUE(Join("a").ok());
  ASSERT_TRUE(Announce("a", "x", UINT64_MAX).ok());
  const Located info = Await(StartLocate(there(), "x", {}));
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(info->generation, base::Generation{UINT64_MAX});
  EXPECT_EQ(info->data_size, 100u);
  EXPECT_EQ(info->metadata_size, 10u);
  EXPECT_EQ(info->holders, Ids{"a"});
}

TEST_P(DirectoryConformance, AllHoldersAreNamed) {
  JoinAndAnnounce({"a", "b", "c"}, "x");
  EXPECT_EQ(Holders("x"), (Ids{"a", "b", "c"}));
}

TEST_P(DirectoryConformance, AnnouncingTwiceIsAnnouncingOnce) {
  ASSERT_TRUE(Join("a").ok());
  EXPECT_TRUE(Announce("a", "x").ok());
  EXPECT_TRUE(Announce("a", "x").ok());
  EXPECT_EQ(Holders("x"), Ids{"a"});
  ASSERT_TRUE(Withdraw("a", "x").ok());
  EXPECT_EQ(Holders("x"), Ids());
}

TEST_P(DirectoryConformance, WithoutALeaseNothingIsAnnounced) {
  EXPECT_TRUE(absl::IsNotFound(Announce("a", "x")));
  EXPECT_TRUE(absl::IsNotFound(Withdraw("a", "x")));
  EXPECT_EQ(Holders("x"), Ids());
}

TEST_P(DirectoryConformance, AnAnnouncementHasAGeneration) {
  ASSERT_TRUE(Join("a").ok());
  EXPECT_TRUE(absl::IsInvalidArgument(Announce("a", "x", 0)));
}

TEST_P(DirectoryConformance, SizesAreKeptToTheLastByte) {
  ASSERT_TRUE(Join("a").ok());
  directory::Update large = AnnouncementOf("x"), empty = AnnouncementOf("empty");
  large.data_size = UINT64_MAX;
  large.metadata_size = UINT64_MAX - 1;
  empty.data_size = empty.metadata_size = 0;
  for (const absl::Status& status : Update("a", {large, empty})) EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(Locate("x")->data_size, UINT64_MAX);
  EXPECT_EQ(Locate("x")->metadata_size, UINT64_MAX - 1);
  EXPECT_EQ(Locate("empty")->data_size, 0u);
}

TEST_P(DirectoryConformance, ANameIsToldToWhoAsksWhereItsObjectIs) {
  ASSERT_TRUE(Join("a").ok());
  ASSERT_TRUE(Join("b").ok());
  const std::string longest(base::ObjectName::kMaxSize, 'x');
  std::vector<directory::Update> updates;
  for (const std::string& name : {std::string("x: 'gr\xc3\xbcn' %s"), longest, std::string("unnamed")}) {
    updates.push_back(AnnouncementOf(name));
    if (name != "unnamed") updates.back().name = NameOf(name);
  }
  for (const absl::Status& status : Update("a", updates)) EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(Locate("x: 'gr\xc3\xbcn' %s")->name.text(), "x: 'gr\xc3\xbcn' %s");
  EXPECT_EQ(Locate(longest)->name.text(), longest);
  EXPECT_TRUE(Locate("unnamed")->name.empty());

  // A copy that was pulled before its name was known, and the directory hears of that first.
  updates = {AnnouncementOf("late")};
  EXPECT_TRUE(Update("b", updates).front().ok());
  EXPECT_TRUE(Locate("late")->name.empty());
  updates.front().name = NameOf("late");
  EXPECT_TRUE(Update("a", updates).front().ok());
  EXPECT_EQ(Locate("late")->name.text(), "late");

  // It ends with its content.
  ASSERT_TRUE(Withdraw("a", longest).ok());
  ASSERT_TRUE(Announce("a", longest, 2).ok());
  EXPECT_TRUE(Locate(longest)->name.empty());
}

TEST_P(DirectoryConformance, AnotherSizeOfOneContentIsRefused) {
  JoinAndAnnounce({"a"}, "x");
  ASSERT_TRUE(Join("b").ok());
  directory::Update other = AnnouncementOf("x", 1, true);
  other.data_size = 101;
  EXPECT_TRUE(absl::IsInvalidArgument(Update("b", {other}).front()));
  other.data_size = 100;
  other.metadata_size = 11;
  EXPECT_TRUE(absl::IsInvalidArgument(Update("b", {other}).front()));
  EXPECT_EQ(Holders("x"), Ids{"a"});
}

TEST_P(DirectoryConformance, TheFirstContentOfAnIdIsTheOne) {
  JoinAndAnnounce({"a"}, "x");
  ASSERT_TRUE(Join("b").ok());
  EXPECT_TRUE(absl::IsAlreadyExists(Announce("b", "x", 2)));
  EXPECT_EQ(Locate("x")->generation, base::Generation{1});
  EXPECT_EQ(Holders("x"), Ids{"a"});
}

TEST_P(DirectoryConformance, AnUpdateTakesEffectInItsOrderAndSaysWhatBecameOfEachPart) {
  ASSERT_TRUE(Join("a").ok());
  const auto statuses = Update("a", {AnnouncementOf("x", 1), AnnouncementOf("y", 1), WithdrawalOf("x", 1),
                                     AnnouncementOf("x", 2), AnnouncementOf("z", 0)});
  for (size_t i = 0; i < 4; ++i) EXPECT_TRUE(statuses[i].ok()) << statuses[i];
  EXPECT_TRUE(absl::IsInvalidArgument(statuses[4]));
  EXPECT_EQ(Locate("x")->generation, base::Generation{2});
  EXPECT_EQ(Locate("y")->generation, base::Generation{1});
}

TEST_P(DirectoryConformance, AnUpdateIsAsLongAsTheBoundOrRefused) {
  ASSERT_TRUE(Join("a").ok());
  std::vector<directory::Update> updates;
  for (size_t i = 0; i < kMaxUpdates; ++i) updates.push_back(AnnouncementOf(std::to_string(i)));
  for (const absl::Status& status : Update("a", updates)) EXPECT_TRUE(status.ok()) << status;
  updates.push_back(AnnouncementOf("one more"));
  EXPECT_TRUE(absl::IsInvalidArgument(Await(StartUpdate(here(), "a", updates)).status()));
  EXPECT_TRUE(Update("a", {}).empty());
}

// The word that the older content is not there any more is still on its way, or was lost.
TEST_P(DirectoryConformance, AnIdIsNotTakenByWhatItsOnlyHolderHadBefore) {
  JoinAndAnnounce({"a"}, "x");
  EXPECT_TRUE(Announce("a", "x", 2).ok());
  EXPECT_EQ(Locate("x")->generation, base::Generation{2});
  EXPECT_TRUE(Withdraw("a", "x", 1).ok());
  EXPECT_EQ(Holders("x"), Ids{"a"});
}

TEST_P(DirectoryConformance, WhoAnnouncesAnotherContentDoesNotHoldTheFirst) {
  JoinAndAnnounce({"a", "b"}, "x");
  EXPECT_TRUE(absl::IsAlreadyExists(Announce("a", "x", 2)));
  EXPECT_EQ(Holders("x"), Ids{"b"});
}

TEST_P(DirectoryConformance, AContentKeepsItsIdAsLongAsAnybodyHoldsIt) {
  JoinAndAnnounce({"a", "b"}, "x");
  ASSERT_TRUE(Withdraw("a", "x").ok());
  EXPECT_TRUE(absl::IsAlreadyExists(Announce("a", "x", 2)));
  ASSERT_TRUE(Withdraw("b", "x").ok());
  EXPECT_EQ(Holders("x"), Ids());
  EXPECT_TRUE(Announce("a", "x", 2).ok());
}

TEST_P(DirectoryConformance, WithdrawingWhatIsNotHeldIsNoError) {
  ASSERT_TRUE(Join("a").ok());
  ASSERT_TRUE(Join("b").ok());
  EXPECT_TRUE(Withdraw("a", "x").ok());
  ASSERT_TRUE(Announce("a", "x").ok());
  EXPECT_TRUE(Withdraw("b", "x").ok());
  EXPECT_TRUE(Withdraw("a", "x", 2).ok());
  EXPECT_EQ(Holders("x"), Ids{"a"});
}

TEST_P(DirectoryConformance, OfMoreHoldersThanCanBeNamedAllAreNamedInTurn) {
  constexpr size_t kHolders = kMaxHoldersNamed + 4;
  std::set<NodeId> all;
  for (size_t i = 0; i < kHolders; ++i) {
    const NodeId node = "n" + std::to_string(i);
    ASSERT_TRUE(Join(node).ok());
    ASSERT_TRUE(Announce(node, "x", 1, i > 0).ok());
    all.insert(node);
  }
  std::set<NodeId> named;
  for (int i = 0; i < 2; ++i) {
    const Ids holders = Holders("x");
    EXPECT_EQ(holders.size(), kMaxHoldersNamed);
    named.insert(holders.begin(), holders.end());
  }
  EXPECT_EQ(named, all);
}

TEST_P(DirectoryConformance, AHolderThatWasNeverNamedIsFoundWhenTheOthersHaveEvicted) {
  constexpr size_t kHolders = kMaxHoldersNamed + 4;
  for (size_t i = 0; i < kHolders; ++i) {
    const NodeId node = "n" + std::to_string(i);
    ASSERT_TRUE(Join(node).ok());
    ASSERT_TRUE(Announce(node, "x", 1, i > 0).ok());
  }
  for (const NodeId& node : Holders("x")) ASSERT_TRUE(Withdraw(node, "x").ok());
  EXPECT_EQ(Holders("x").size(), kHolders - kMaxHoldersNamed);
}

TEST_P(DirectoryConformance, WhoIsComingIsNotNamedButKeepsTheId) {
  JoinAndAnnounce({"a"}, "x");
  ASSERT_TRUE(Join("b").ok());
  EXPECT_EQ(Locate("x", {}, "b")->holders, Ids{"a"});
  EXPECT_EQ(Holders("x"), Ids{"a"});
  ASSERT_TRUE(Withdraw("a", "x").ok());
  EXPECT_EQ(Holders("x"), Ids()) << "its pull has not ended";
  EXPECT_TRUE(absl::IsAlreadyExists(Announce("a", "x", 2)));
  EXPECT_TRUE(Announce("b", "x", 1, true).ok());
  EXPECT_EQ(Holders("x"), Ids{"b"});
}

TEST_P(DirectoryConformance, APullThatFailedIsWithdrawn) {
  JoinAndAnnounce({"a"}, "x");
  ASSERT_TRUE(Join("b").ok());
  ASSERT_TRUE(Locate("x", {}, "b").ok());
  ASSERT_TRUE(Withdraw("b", "x").ok());
  ASSERT_TRUE(Withdraw("a", "x").ok());
  EXPECT_TRUE(Announce("a", "x", 2).ok());
}

TEST_P(DirectoryConformance, WhoHeardNoAnswerWithdrawsWithoutAGeneration) {
  JoinAndAnnounce({"a"}, "x");
  ASSERT_TRUE(Join("b").ok());
  ASSERT_TRUE(Locate("x", {}, "b").ok());
  ASSERT_TRUE(Withdraw("b", "x", 0).ok());
  ASSERT_TRUE(Withdraw("a", "x", 0).ok());
  EXPECT_EQ(Holders("x"), Ids{"a"}) << "only who is coming is withdrawn so";
  ASSERT_TRUE(Withdraw("a", "x", 1).ok());
  EXPECT_TRUE(Announce("a", "x", 2).ok());
}

TEST_P(DirectoryConformance, APullerHasALease) {
  JoinAndAnnounce({"a"}, "x");
  EXPECT_TRUE(absl::IsFailedPrecondition(Locate("x", {}, "b").status()));
  EXPECT_TRUE(Delete("x")->holders == Ids{"a"});
}

TEST_P(DirectoryConformance, VerifyTellsWhatTheDirectoryDoesNotKnowANodeToHold) {
  JoinAndAnnounce({"a", "b"}, "x");
  ASSERT_TRUE(Announce("b", "y").ok());
  ASSERT_TRUE(Locate("y", {}, "a").ok());
  const std::vector<base::ObjectVersion> versions = {Version("x", 1), Version("x", 2), Version("y", 1), Version("z", 1),
                                                     Version("x", 1)};
  EXPECT_EQ(*Verify("a", versions), (std::vector<uint32_t>{1, 2, 3}));
  EXPECT_TRUE(absl::IsNotFound(Verify("c", versions).status()));
  EXPECT_TRUE(Verify("a", {})->empty());
  EXPECT_TRUE(absl::IsInvalidArgument(
      Verify("a", std::vector<base::ObjectVersion>(kMaxVerified + 1, Version("x", 1))).status()));
}

TEST_P(DirectoryConformance, HeldTellsWhatANodeIsTakenToHoldOrToBeComingTo) {
  JoinAndAnnounce({"a", "b"}, "x");
  ASSERT_TRUE(Announce("a", "gone").ok());
  ASSERT_TRUE(Withdraw("a", "gone").ok());
  ASSERT_TRUE(Announce("a", "deleted").ok());
  ASSERT_TRUE(Delete("deleted").ok());
  ASSERT_TRUE(Announce("b", "y", 2).ok());
  ASSERT_TRUE(Locate("y", {}, "a").ok());
  ASSERT_TRUE(Announce("b", "z").ok());
  std::vector<base::ObjectVersion> expected = {Version("x", 1), Version("y", 2)};
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(Held("a"), expected);
  EXPECT_TRUE(absl::IsNotFound(HeldPage("c").status()));
}

// Objects announced or withdrawn meanwhile may be named or not; all others are.
TEST_P(DirectoryConformance, HeldNamesPageByPageWhatIsThereAllTheTime) {
  constexpr int kObjects = 1500;
  ASSERT_TRUE(Join("a").ok());
  ASSERT_TRUE(Join("b").ok());
  std::vector<base::ObjectVersion> expected;
  const auto announce = [&](const NodeId& node, int first, int end) {
    std::vector<directory::Update> updates;
    for (int i = first; i < end; ++i) updates.push_back(AnnouncementOf(std::to_string(i)));
    for (size_t at = 0; at < updates.size(); at += kMaxUpdates) {
      const size_t count = std::min(updates.size() - at, kMaxUpdates);
      const auto from = updates.begin() + static_cast<ptrdiff_t>(at);
      Update(node, {from, from + static_cast<ptrdiff_t>(count)});
    }
  };
  announce("a", 0, kObjects);
  announce("b", kObjects, 3 * kObjects);
  for (int i = 0; i < kObjects; i += 2) expected.push_back(Version(std::to_string(i), 1));
  std::sort(expected.begin(), expected.end());
  std::vector<base::ObjectVersion> held;
  std::string after;
  int pages = 0, changed = 1;
  do {
    const auto page = HeldPage("a", after);
    ASSERT_TRUE(page.ok()) << page.status();
    held.insert(held.end(), page->versions.begin(), page->versions.end());
    after = page->next;
    for (int i = 0; i < 20 && changed < kObjects; ++i, changed += 2) {
      ASSERT_TRUE(Withdraw("a", std::to_string(changed)).ok());
    }
    announce("a", 3 * kObjects + 100 * pages, 3 * kObjects + 100 * (pages + 1));
    ASSERT_LT(++pages, 100);
  } while (!after.empty());
  EXPECT_GT(pages, 1);
  std::sort(held.begin(), held.end());
  EXPECT_TRUE(std::includes(held.begin(), held.end(), expected.begin(), expected.end()));
}

TEST_P(DirectoryConformance, ManyCallsAtOnceAreAllAnswered) {
  ASSERT_TRUE(Join("a").ok());
  std::vector<AnswerOf<Updated>> announced;
  std::vector<AnswerOf<Located>> located;
  for (int i = 0; i < 500; ++i) {
    announced.push_back(StartUpdate(here(), "a", {AnnouncementOf(std::to_string(i))}));
    located.push_back(StartLocate(here(), std::to_string(i), kLong));
  }
  for (const auto& answer : announced) EXPECT_TRUE(Await(answer)->front().ok());
  for (const auto& answer : located) EXPECT_TRUE(Await(answer).ok());
}

TEST_P(DirectoryConformance, CallsTakeEffectInTheOrderInWhichTheyAreMade) {
  ASSERT_TRUE(Join("a").ok());
  std::vector<AnswerOf<Located>> there, not_there;
  for (int i = 0; i < 50; ++i) {
    const auto announced = StartUpdate(here(), "a", {AnnouncementOf("x", 1)});
    there.push_back(StartLocate(here(), "x", {}));
    const auto withdrawn = StartUpdate(here(), "a", {WithdrawalOf("x", 1)});
    not_there.push_back(StartLocate(here(), "x", {}));
    EXPECT_TRUE(Await(announced).ok());
    EXPECT_TRUE(Await(withdrawn).ok());
  }
  for (const auto& answer : there) EXPECT_TRUE(Await(answer).ok());
  for (const auto& answer : not_there) EXPECT_TRUE(absl::IsNotFound(Await(answer).status()));
}

TEST_P(DirectoryConformance, ACallbackMayCallAgain) {
  std::vector<base::Pending> handles;
  const base::ObjectId x = base::ObjectId::FromName("x");
  const std::vector<directory::Update> announcement = {AnnouncementOf("x")};
  bool found = false;
  handles.push_back(here().Join(JoinOf(Node("a")), kDeadline, [&](const Joined&) {
    handles.push_back(here().Update("a", {}, announcement, kDeadline, [&](const Updated&) {
      handles.push_back(here().Locate({x, {}, kDeadline, ""}, [&](const Located& info) { found = info.ok(); }));
    }));
  }));
  EXPECT_TRUE(backend_->RunUntil([&] { return found; }, kPatience));
}

}  // namespace tokamak::directory
