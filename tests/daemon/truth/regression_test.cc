// Past faults, a short test each, with real tokd processes and each directory. The rows of the
// table in docs/testing.md that say "real daemons" are here; each test names its row.
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/daemon/truth/three_daemons.h"

namespace tokamak::daemon {
namespace {

using Clock = std::chrono::steady_clock;
using RegressionTest = ThreeDaemons;

INSTANTIATE_TEST_SUITE_P(Directory, RegressionTest, kBothDirectories, NameOfDirectory);

// Row 1: a holder stood still past its lease while the object was deleted.
TEST_P(RegressionTest, AHolderThatStallsPastItsLeaseDelaysADeletionAndNeverServesTheObjectAfterwards) {
  Client one = Connect(1), two = Connect(2), three = Connect(3);
  const std::vector<uint8_t> old_bytes = Pattern(100'000, 1), new_bytes = Pattern(100'000, 2);
  ASSERT_TRUE(two.Put(Id("x"), old_bytes).ok());
  ASSERT_TRUE(Same(Read(three, "x"), old_bytes));
  ASSERT_TRUE(Eventually([&] { return AllIsAnnounced(three); }));
  nodes_[3]->Signal(SIGSTOP);
  ASSERT_TRUE(Eventually([&] { return !Knows(two, "node3"); }));

  const Status deleted = two.Delete(Id("x"));
  EXPECT_EQ(deleted.code(), StatusCode::kUnavailable) << deleted;
  EXPECT_TRUE(absl::StrContains(deleted.message(), "node3")) << deleted;
  const Status refused = one.Put(Id("x"), new_bytes, {}, Confirmed());
  EXPECT_EQ(refused.code(), StatusCode::kAlreadyExists) << "node3 may still read it: " << refused;

  nodes_[3]->Signal(SIGCONT);
  EXPECT_TRUE(Eventually([&] {
    const Status status = two.Delete(Id("x"));
    return status.ok() || status.code() == StatusCode::kNotFound;
  }));
  ASSERT_TRUE(one.Put(Id("x"), new_bytes, {}, Confirmed()).ok());
  for (Client* client : {&three, &two, &one}) EXPECT_TRUE(Same(Read(*client, "x"), new_bytes));
}

// Row 1, beyond the grace as well.
TEST_P(RegressionTest, AHolderThatReturnsAfterItsGraceNeverServesDeletedObjects) {
  Client one = Connect(1), two = Connect(2), three = Connect(3);
  const std::vector<uint8_t> old_bytes = Pattern(100'000, 1), new_bytes = Pattern(100'000, 2);
  ASSERT_TRUE(two.Put(Id("x"), old_bytes).ok());
  ASSERT_TRUE(Same(Read(three, "x"), old_bytes));
  ASSERT_TRUE(Eventually([&] { return AllIsAnnounced(three); }));
  nodes_[3]->Signal(SIGSTOP);
  EXPECT_TRUE(Eventually([&] {
    const Status status = two.Delete(Id("x"));
    return status.ok() || status.code() == StatusCode::kNotFound;
  }));
  ASSERT_TRUE(one.Put(Id("x"), new_bytes, {}, Confirmed()).ok());
  nodes_[3]->Signal(SIGCONT);
  // From the first moment on: it refuses until it has joined again.
  EXPECT_TRUE(Eventually([&] {
    const auto buffer = three.Get(Id("x"), std::chrono::seconds(1));
    if (buffer.ok()) {
      EXPECT_TRUE(Same(buffer->data(), new_bytes)) << "a deleted content is read";
    }
    return buffer.ok();
  }));
}

// Row 2: three contents of one id, two of one size.
TEST_P(RegressionTest, OnlyOneOfThreeContentsIsConfirmed) {
  Client one = Connect(1), two = Connect(2), three = Connect(3);
  EXPECT_TRUE(one.Put(Id("x"), Pattern(5000, 1), {}, Confirmed()).ok());
  EXPECT_EQ(two.Put(Id("x"), Pattern(5000, 2), {}, Confirmed()).code(), StatusCode::kAlreadyExists);
  EXPECT_EQ(three.Put(Id("x"), Pattern(6000, 3), {}, Confirmed()).code(), StatusCode::kAlreadyExists);
  for (Client* client : {&one, &two, &three}) EXPECT_TRUE(Same(Read(*client, "x"), Pattern(5000, 1)));
  const Status deleted = three.Delete(Id("x"));
  EXPECT_TRUE(deleted.ok()) << deleted;
  for (Client* client : {&one, &two, &three}) EXPECT_FALSE(*client->Contains(Id("x")));
}

TEST_P(RegressionTest, ThreeContentsThatNobodyConfirmedBecomeOne) {
  Client one = Connect(1), two = Connect(2), three = Connect(3);
  ASSERT_TRUE(one.Put(Id("x"), Pattern(5000, 1)).ok());
  ASSERT_TRUE(Eventually([&] { return AllIsAnnounced(one); }));
  ASSERT_TRUE(two.Put(Id("x"), Pattern(5000, 2)).ok());
  ASSERT_TRUE(three.Put(Id("x"), Pattern(6000, 3)).ok());
  EXPECT_TRUE(Eventually([&] { return Number(two, "objects_refused_total") == 1; }));
  EXPECT_TRUE(Eventually([&] { return Number(three, "objects_refused_total") == 1; }));
  for (Client* client : {&one, &two, &three}) EXPECT_TRUE(Same(Read(*client, "x"), Pattern(5000, 1)));
  EXPECT_TRUE(one.Delete(Id("x")).ok());
  for (Client* client : {&one, &two, &three}) EXPECT_FALSE(*client->Contains(Id("x")));
}

// Rows 1 and 3: deleted in the middle of a pull.
TEST_P(RegressionTest, AnObjectThatIsDeletedWhileItIsPulledIsNotBackAfterwards) {
  Client one = Connect(1), two = Connect(2), looker = Connect(2);
  const std::vector<uint8_t> large = Pattern(size_t{12} << 20, 1), other = Pattern(large.size(), 2);
  int in_the_middle = 0;
  // Six times, and on until a deletion has met one.
  for (int round = 0; round < 6 || (in_the_middle == 0 && round < 60); ++round) {
    const std::string id = absl::StrCat("large", round);
    ASSERT_TRUE(one.Put(Id(id), large, {}, Confirmed()).ok());
    std::thread getter([&] {
      const auto buffer = two.Get(Id(id), std::chrono::seconds(2));
      if (buffer.ok()) {
        EXPECT_TRUE(Same(buffer->data(), large));
      }
    });
    EXPECT_TRUE(Eventually([&] { return Number(looker, "pulls_running") > 0 || *looker.Contains(Id(id)); }));
    in_the_middle += *looker.Contains(Id(id)) ? 0 : 1;
    const Status deleted = one.Delete(Id(id));
    EXPECT_TRUE(deleted.ok()) << deleted;
    EXPECT_FALSE(*looker.Contains(Id(id)));
    // The holder that served the pull releases the old bytes a moment later, and so does the
    // getter, if it has them.
    getter.join();
    EXPECT_TRUE(Eventually([&] { return one.Put(Id(id), other, {}, Confirmed()).ok(); }));
    EXPECT_TRUE(Same(Read(looker, id), other)) << "round " << round;
    EXPECT_TRUE(one.Delete(Id(id)).ok());
  }
  EXPECT_GT(in_the_middle, 0) << "all pulls had ended before the deletion";
}

// Row 5: waits that were answered leave nothing behind.
TEST_P(RegressionTest, AnsweredWaitsOfAProgramThatEndedCostNobodyAnything) {
  Client one = Connect(1);
  ASSERT_TRUE(one.Put(Id("here"), Pattern(10, 1)).ok());
  {
    Client program = Connect(2);
    for (int call = 0; call < 33; ++call) {
      std::vector<ObjectId> ids = {Id("here")};
      for (int i = 1; i < 2048; ++i) ids.push_back(Id(absl::StrCat("absent", call, "-", i)));
      const auto exist = program.Wait(ids, 1, std::chrono::seconds(3600));
      ASSERT_TRUE(exist.ok()) << exist.status();
      EXPECT_TRUE((*exist)[0]);
    }
  }
  Client two = Connect(2), three = Connect(3);
  // A Wait for what nobody puts waits, without an error.
  const auto began = Clock::now();
  const std::vector<ObjectId> never = {Id("never")};
  const auto exists = two.Wait(never, 1, std::chrono::seconds(1));
  ASSERT_TRUE(exists.ok()) << exists.status();
  EXPECT_FALSE((*exists)[0]);
  EXPECT_GE(Clock::now() - began, std::chrono::milliseconds(990));
  // A Get of what is put later finds it.
  std::thread getter([&] { EXPECT_TRUE(Same(Read(two, "late"), Pattern(100, 2))); });
  Client looker = Connect(2);
  EXPECT_TRUE(Eventually([&] { return Number(looker, "pulls_running") > 0; }));
  EXPECT_TRUE(three.Put(Id("late"), Pattern(100, 2)).ok());
  getter.join();
}

// Row 6: put again with another size before the withdrawal of the old content has gone out.
TEST_P(RegressionTest, AnObjectPutAgainAtOnceWithAnotherSizeIsFoundByOthers) {
  Client two = Connect(2), three = Connect(3);
  for (uint8_t round = 0; round < 20; ++round) {
    const std::string name = absl::StrCat("again", round);
    ASSERT_TRUE(two.Put(Id(name), Pattern(1000, round)).ok());
    ASSERT_TRUE(Same(Read(three, name), Pattern(1000, round)));
    // Both nodes have a backlog when it is deleted and put again.
    for (int i = 0; i < 200; ++i) {
      ASSERT_TRUE(two.Put(Id(absl::StrCat("two", round, "-", i)), Pattern(10, 1)).ok());
      ASSERT_TRUE(three.Put(Id(absl::StrCat("three", round, "-", i)), Pattern(10, 1)).ok());
    }
    const Status deleted = three.Delete(Id(name));
    ASSERT_TRUE(deleted.ok()) << deleted;
    ASSERT_TRUE(Eventually([&] { return two.Put(Id(name), Pattern(2000u + round, round)).ok(); }));
    ASSERT_TRUE(Same(Read(three, name), Pattern(2000u + round, round))) << "round " << int{round};
  }
}

// Row 7: a pin in the middle of the arena. Only what makes the room is evicted.
TEST_P(RegressionTest, NothingIsEvictedForAnObjectThatCannotFit) {
  constexpr int kObjects = 20;
  constexpr size_t kSize = size_t{5} << 19;  // 2.5 MiB, of 64 MiB
  Client two = Connect(2), three = Connect(3);
  for (int i = 0; i < kObjects; ++i) {
    ASSERT_TRUE(three.Put(Id(absl::StrCat("copy", i)), Pattern(kSize, 1)).ok());
  }
  for (int i = 0; i < kObjects; ++i) {
    const auto buffer = two.Get(Id(absl::StrCat("copy", i)), kPatience);
    ASSERT_TRUE(buffer.ok()) << buffer.status();
  }
  const auto here = [&] {
    int objects = 0;
    for (int i = 0; i < kObjects; ++i) objects += *two.Contains(Id(absl::StrCat("copy", i))) ? 1 : 0;
    return objects;
  };
  const auto pinned = two.Get(Id(absl::StrCat("copy", kObjects / 2)), kPatience);
  ASSERT_TRUE(pinned.ok()) << pinned.status();
  ASSERT_EQ(here(), kObjects);
  PutOptions at_once;
  at_once.timeout = std::chrono::milliseconds(100);
  const auto refused = two.Create(Id("too large"), size_t{45} << 20, {}, at_once);
  EXPECT_EQ(refused.status().code(), StatusCode::kResourceExhausted) << refused.status();
  EXPECT_EQ(here(), kObjects) << "copies were evicted without success: " << refused.status();
  const auto fits = two.Create(Id("fits"), size_t{20} << 20, {}, at_once);
  EXPECT_TRUE(fits.ok()) << fits.status();
  EXPECT_GE(here(), kObjects - 8) << "5 of them leave the room, beside 14 MiB that were free";
}

// Row 8: more is put than fits.
TEST_P(RegressionTest, StoredObjectsStayAndPutsWithoutRoomAreRefused) {
  constexpr size_t kSize = size_t{10} << 20;  // of 64 MiB
  Client two = Connect(2), three = Connect(3);
  PutOptions at_once;
  at_once.timeout = std::chrono::milliseconds(100);
  std::vector<std::string> put;
  for (int i = 0; i < 12; ++i) {
    const std::string name = absl::StrCat("kept", i);
    const Status status = two.Put(Id(name), Pattern(kSize, static_cast<uint8_t>(i)), {}, at_once);
    if (status.ok()) {
      put.push_back(name);
    } else {
      EXPECT_EQ(status.code(), StatusCode::kResourceExhausted) << status;
    }
  }
  EXPECT_GE(put.size(), 5u);
  EXPECT_LE(put.size(), 6u);
  for (size_t i = 0; i < put.size(); ++i) {
    EXPECT_TRUE(Same(Read(three, put[i]), Pattern(kSize, static_cast<uint8_t>(i)))) << put[i];
    ASSERT_TRUE(three.Evict(kSize).ok());
  }
}

// Row 9: whoever waits for the highest id of thousands, and whoever announces it, is not overtaken
// by the others.
TEST_P(RegressionTest, AnIdThatSortsLastIsNoticedLikeEveryOther) {
  std::array<uint8_t, ObjectId::kSize> highest;
  highest.fill(0xff);
  const ObjectId last(highest);
  Client two = Connect(2), three = Connect(3);
  std::vector<std::thread> programs;
  for (int program = 0; program < 3; ++program) {
    programs.emplace_back([this, program] {
      Client client = Connect(2);
      std::vector<ObjectId> ids;
      for (int i = 0; i < 2000; ++i) ids.push_back(Id(absl::StrCat("awaited", program, "-", i)));
      EXPECT_TRUE(client.Wait(ids, 1, std::chrono::seconds(6)).ok());
    });
  }
  std::thread putter([this] {
    Client client = Connect(3);
    const auto end = Clock::now() + std::chrono::seconds(4);
    for (int i = 0; Clock::now() < end; ++i) {
      EXPECT_TRUE(client.Put(Id(absl::StrCat("sustained", i)), Pattern(64, 1)).ok());
    }
  });
  LetLive(base::Seconds(1));
  const auto began = Clock::now();
  ASSERT_TRUE(three.Put(last, Pattern(100, 1)).ok());
  const auto buffer = two.Get(last, kPatience);
  EXPECT_TRUE(buffer.ok()) << buffer.status();
  EXPECT_LT(Clock::now() - began, std::chrono::seconds(3)) << "it was 25 to 60 seconds";
  putter.join();
  for (std::thread& program : programs) program.join();
}

// Row 13: what needs no directory does not wait for it.
TEST_P(RegressionTest, WithoutTheDirectoryKnownObjectsAreServedAndTheRestIsRefusedAtOnce) {
  Client two = Connect(2), three = Connect(3);
  const std::vector<uint8_t> bytes = Pattern(100'000, 1);
  ASSERT_TRUE(three.Put(Id("known"), bytes).ok());
  ASSERT_TRUE(two.Put(Id("own"), bytes).ok());
  ASSERT_TRUE(Same(Read(two, "known"), bytes));
  ASSERT_TRUE(two.Evict(1 << 20).ok());  // its place stays known
  ASSERT_FALSE(*two.Contains(Id("known")));
  StopDirectory();
  for (Client* client : {&two, &three}) {
    EXPECT_TRUE(Eventually([&] { return Number(*client, "directory_away") == 1; }));
  }
  const auto took = [](const std::function<void()>& call) {
    const auto began = Clock::now();
    call();
    return std::chrono::duration<double>(Clock::now() - began).count();
  };
  constexpr double kAtOnce = 1;  // seconds; a deadline of the directory's is two
  EXPECT_LT(took([&] { EXPECT_TRUE(two.Stat(Id("own")).ok()); }), kAtOnce);
  EXPECT_LT(took([&] { EXPECT_TRUE(Same(Read(two, "own"), bytes)); }), kAtOnce);
  EXPECT_LT(took([&] { EXPECT_TRUE(Same(Read(two, "known"), bytes)); }), kAtOnce);
  EXPECT_LT(took([&] { EXPECT_TRUE(two.Put(Id("new"), bytes).ok()); }), kAtOnce);
  EXPECT_LT(took([&] { EXPECT_EQ(two.Delete(Id("own")).code(), StatusCode::kUnavailable); }), kAtOnce);
  EXPECT_LT(took([&] { EXPECT_EQ(two.Put(Id("sure"), bytes, {}, Confirmed()).code(), StatusCode::kUnavailable); }),
            kAtOnce);
  EXPECT_FALSE(*two.Contains(Id("sure")));
  ContinueDirectory();
  EXPECT_TRUE(Same(Read(three, "new"), bytes)) << "announced when it is back";
  // Each node finds out by itself that it is back.
  EXPECT_TRUE(Eventually([&] { return Number(two, "directory_away") == 0; }));
  EXPECT_TRUE(two.Delete(Id("own")).ok());
}

// Row 16: a second daemon with the name of one that is alive.
TEST_P(RegressionTest, ASecondDaemonOfALivingNameEndsAndDoesNotDisplaceTheFirst) {
  Client one = Connect(1), two = Connect(2);
  const auto life = [&] {
    const auto nodes = one.Nodes();
    if (!nodes.ok()) return uint64_t{0};
    for (const NodeInfo& node : *nodes) {
      if (node.name == "node2") return node.incarnation;
    }
    return uint64_t{0};
  };
  const uint64_t first_life = life();
  ASSERT_NE(first_life, 0u);
  std::vector<std::string> flags = Flags(4);
  flags.insert(flags.end(), {"--name", "node2"});
  TokdProcess second(folder_, 4, flags);
  const Ended ended = second.AwaitEnd();
  EXPECT_EQ(ended.status.code, 2) << ended.text;
  EXPECT_TRUE(absl::StrContains(ended.text, "\ntokd: a node node2 is alive at ")) << ended.text;
  EXPECT_TRUE(absl::EndsWith(ended.text, ": stop it, or give this one another name\n")) << ended.text;
  EXPECT_FALSE(absl::StrContains(ended.text, " ready: ")) << ended.text;
  // Three renewals of both and more.
  const auto end = Clock::now() + std::chrono::microseconds(kLease.microseconds());
  for (int i = 0; Clock::now() < end; ++i) {
    const std::string id = absl::StrCat("object", i);
    ASSERT_TRUE(two.Put(Id(id), Pattern(100, 1)).ok());
    ASSERT_TRUE(Same(Read(one, id), Pattern(100, 1)));
    ASSERT_EQ(life(), first_life) << ended.text;
  }
  EXPECT_EQ(Number(two, "directory_failed_renewals_total"), 0u);
}

std::vector<std::string> Evacuating(std::vector<std::string> flags) {
  *(std::find(flags.begin(), flags.end(), "--drain") + 1) = "60s";
  flags.push_back("--evacuate");
  return flags;
}

// Row 21: a program deletes while a node ends.
TEST_P(RegressionTest, KeptObjectsOutliveTheirNodeWhateverIsDeletedMeanwhile) {
  constexpr int kObjects = 600;
  TokdProcess leaving(folder_, 4, Evacuating(Flags(4)));
  leaving.AwaitReady();
  Client one = Connect(1), three = Connect(3);
  const auto bytes = [](int i) {
    return Pattern(i % 3 == 0 ? 10 : i % 3 == 1 ? 5000 : 70'000, static_cast<uint8_t>(i));
  };
  std::vector<int> order;
  {
    Client four = leaving.Connect();
    for (int i = 0; i < kObjects; ++i) {
      ASSERT_TRUE(four.Put(Id(absl::StrCat("object", i)), bytes(i)).ok());
      order.push_back(i);
    }
    ASSERT_TRUE(Eventually([&] { return AllIsAnnounced(four); }));
  }
  const auto id = [](int i) { return Id(absl::StrCat("object", i)); };
  std::sort(order.begin(), order.end(), [&](int a, int b) { return id(a) < id(b); });
  leaving.Signal(SIGTERM);
  const auto began = Clock::now();
  // In the order in which they are handed over.
  for (int i = 0; i < kObjects; i += 5) {
    const Status deleted = one.Delete(id(order[static_cast<size_t>(i)]));
    EXPECT_TRUE(deleted.ok()) << deleted;
  }
  const Ended ended = leaving.AwaitEnd();
  EXPECT_EQ(ended.status.code, 0) << ended.text;
  EXPECT_LT(Clock::now() - began, std::chrono::seconds(40)) << ended.text;
  EXPECT_FALSE(absl::StrContains(ended.text, "could not be saved")) << ended.text;
  for (int i = 0; i < kObjects; ++i) {
    const int object = order[static_cast<size_t>(i)];
    if (i % 5 == 0) continue;
    EXPECT_TRUE(Same(Read(three, absl::StrCat("object", object)), bytes(object)));
  }
}

// Row 21: programs put until they are refused.
TEST_P(RegressionTest, APutOnANodeThatLeavesIsKeptElsewhereOrRefused) {
  TokdProcess leaving(folder_, 4, Evacuating(Flags(4)));
  leaving.AwaitReady();
  std::array<std::vector<std::string>, 3> put;
  std::array<Status, 3> end;
  std::vector<std::thread> programs;
  for (size_t i = 0; i < put.size(); ++i) {
    programs.emplace_back([&leaving, i, &put = put[i], &end = end[i]] {
      Client four = leaving.Connect();
      PutOptions options;
      options.confirmed = i == 2;
      while (end.ok()) {
        const std::string name = absl::StrCat("program", i, "-", put.size());
        end = four.Put(Id(name), Pattern(i == 1 ? 7000 : 1000, static_cast<uint8_t>(put.size())), {}, options);
        if (end.ok()) put.push_back(name);
      }
    });
  }
  LetLive(base::Milliseconds(300));
  const Ended ended = leaving.Terminate();
  for (std::thread& program : programs) program.join();
  EXPECT_EQ(ended.status.code, 0) << ended.text;
  EXPECT_FALSE(absl::StrContains(ended.text, "could not be saved")) << ended.text;
  Client three = Connect(3);
  for (size_t i = 0; i < put.size(); ++i) {
    EXPECT_EQ(end[i].code(), StatusCode::kUnavailable) << end[i];
    EXPECT_GT(put[i].size(), 1u);
    for (size_t k = 0; k < put[i].size(); ++k) {
      const auto buffer = three.Get(Id(put[i][k]), kPatience);
      ASSERT_TRUE(buffer.ok()) << put[i][k] << " of " << put[i].size() << ": " << buffer.status() << "\n" << ended.text;
      EXPECT_TRUE(Same(buffer->data(), Pattern(i == 1 ? 7000 : 1000, static_cast<uint8_t>(k))));
    }
  }
}

}  // namespace
}  // namespace tokamak::daemon
