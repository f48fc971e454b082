// Real tokd processes keep what docs/consistency.md promises, with each directory: programs that put, get and delete the same
// ids while nodes stand still, are killed, and the directory is away, are judged by sim::History; and what once went wrong is
// repeated, a short test each.
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "lib/base/random.h"
#include "tests/daemon/tokd_process.h"
#include "tests/daemon/witness.h"
#include "tests/directory/redis_server.h"

namespace tokamak::daemon {
namespace {

using Strings = std::vector<std::string>;
using Clock = std::chrono::steady_clock;

constexpr int kNodes = 3;
// As the daemons are told: a second, and four.
constexpr base::Duration kLease = base::Seconds(1);
constexpr base::Duration kGrace = base::Seconds(4);

base::ObjectId Id(const std::string& name) { return base::ObjectId::FromName(name); }

std::chrono::microseconds Micros(base::Duration duration) { return std::chrono::microseconds(duration.microseconds()); }

// Lets the other processes live for a while: leases end by their clock, which no test can move.
void LetLive(base::Duration duration) {
  const auto end = Clock::now() + Micros(duration);
  while (Clock::now() < end) poll(nullptr, 0, 10);
}

enum class Kind { kTokd, kRedis };

// Three nodes; the first serves the directory, unless Redis does.
class TruthTest : public testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    if (GetParam() == Kind::kRedis) redis_ = std::make_unique<directory::redis::RedisServer>();
    nodes_.resize(kNodes + 1);
    for (int node = 1; node <= kNodes; ++node) Start(node);
  }

  void TearDown() override {
    for (int node = kNodes; node >= 1; --node) {
      if (nodes_[node] == nullptr) continue;
      nodes_[node]->Signal(SIGCONT);
      const Ended ended = nodes_[node]->Terminate();
      EXPECT_EQ(ended.status.code, 0) << ended.status.ToString() << "\n" << ended.text;
      if (HasFailure()) std::cout << "---- node " << node << "\n" << ended.text;
    }
  }

  Strings Flags(int node) const {
    Strings flags = {"--lease", "1s", "--grace", "4s", "--memory", "64MiB", "--drain", "1s"};
    if (redis_ != nullptr) {
      flags.insert(flags.end(), {"--directory", "redis@" + redis_->address()});
    } else if (node != 1) {
      for (const std::string& flag : DirectoryOfNode1()) flags.push_back(flag);
    }
    return flags;
  }

  void Start(int node) {
    nodes_[node] = std::make_unique<TokdProcess>(folder_, node, Flags(node));
    nodes_[node]->AwaitReady();
  }

  void StopDirectory() { redis_ != nullptr ? redis_->Freeze() : nodes_[1]->Signal(SIGSTOP); }
  void ContinueDirectory() { redis_ != nullptr ? redis_->Thaw() : nodes_[1]->Signal(SIGCONT); }

  client::Client Connect(int node) { return nodes_[node]->Connect(); }

  static client::PutOptions Confirmed() {
    client::PutOptions options;
    options.confirmed = true;
    return options;
  }

  static bool Knows(client::Client& client, const std::string& name) {
    const auto nodes = client.Nodes();
    if (!nodes.ok()) return false;
    for (const client::NodeEntry& node : *nodes) {
      if (node.name == name) return true;
    }
    return false;
  }

  // All nodes are in the directory, which has heard everything.
  void AwaitHealed() {
    for (int node = 1; node <= kNodes; ++node) {
      client::Client client = Connect(node);
      EXPECT_TRUE(Eventually([&] {
        const auto nodes = client.Nodes();
        return nodes.ok() && nodes->size() == kNodes && Number(client, "directory_away") == 0 &&
               Number(client, "fenced") == 0 && Number(client, "directory_updates_behind") == 0;
      })) << "node "
          << node;
    }
  }

  // The content that `client` reads, as Witness numbers it.
  static std::vector<uint8_t> Read(client::Client& client, const std::string& id, base::Duration timeout = kPatience) {
    const auto buffer = client.Get(Id(id), timeout);
    EXPECT_TRUE(buffer.ok()) << id << ": " << buffer.status();
    if (!buffer.ok()) return {};
    return {buffer->data().begin(), buffer->data().end()};
  }

  const ShortFolder folder_;
  std::unique_ptr<directory::redis::RedisServer> redis_;
  std::vector<std::unique_ptr<TokdProcess>> nodes_;  // from 1
};

INSTANTIATE_TEST_SUITE_P(Directory, TruthTest, testing::Values(Kind::kTokd, Kind::kRedis),
                         [](const auto& of) { return of.param == Kind::kTokd ? "tokd" : "redis"; });

// ---- what once went wrong

// A1b: a holder stood still past its lease while the object was deleted.
TEST_P(TruthTest, AHolderThatStandsStillPastItsLeaseDelaysADeletionAndNeverServesItAfterwards) {
  client::Client one = Connect(1), two = Connect(2), three = Connect(3);
  const std::vector<uint8_t> old_bytes = Pattern(100'000, 1), new_bytes = Pattern(100'000, 2);
  ASSERT_TRUE(two.Put(Id("x"), old_bytes).ok());
  ASSERT_TRUE(Same(Read(three, "x"), old_bytes));
  ASSERT_TRUE(Eventually([&] { return Number(three, "directory_updates_behind") == 0; }));
  nodes_[3]->Signal(SIGSTOP);
  ASSERT_TRUE(Eventually([&] { return !Knows(two, "node3"); }));

  const absl::Status deleted = two.Delete(Id("x"));
  EXPECT_TRUE(absl::IsUnavailable(deleted)) << deleted;
  EXPECT_TRUE(absl::StrContains(deleted.message(), "node3")) << deleted;
  const absl::Status refused = one.Put(Id("x"), new_bytes, {}, Confirmed());
  EXPECT_TRUE(absl::IsAlreadyExists(refused)) << "node3 may still read it: " << refused;

  nodes_[3]->Signal(SIGCONT);
  EXPECT_TRUE(Eventually([&] {
    const absl::Status status = two.Delete(Id("x"));
    return status.ok() || absl::IsNotFound(status);
  }));
  ASSERT_TRUE(one.Put(Id("x"), new_bytes, {}, Confirmed()).ok());
  for (client::Client* client : {&three, &two, &one}) EXPECT_TRUE(Same(Read(*client, "x"), new_bytes));
}

// A1b, beyond the grace as well.
TEST_P(TruthTest, AHolderThatIsBackAfterItsGraceNeverServesWhatWasDeleted) {
  client::Client one = Connect(1), two = Connect(2), three = Connect(3);
  const std::vector<uint8_t> old_bytes = Pattern(100'000, 1), new_bytes = Pattern(100'000, 2);
  ASSERT_TRUE(two.Put(Id("x"), old_bytes).ok());
  ASSERT_TRUE(Same(Read(three, "x"), old_bytes));
  ASSERT_TRUE(Eventually([&] { return Number(three, "directory_updates_behind") == 0; }));
  nodes_[3]->Signal(SIGSTOP);
  EXPECT_TRUE(Eventually([&] {
    const absl::Status status = two.Delete(Id("x"));
    return status.ok() || absl::IsNotFound(status);
  }));
  ASSERT_TRUE(one.Put(Id("x"), new_bytes, {}, Confirmed()).ok());
  nodes_[3]->Signal(SIGCONT);
  // From the first moment on: it refuses until it has joined again.
  EXPECT_TRUE(Eventually([&] {
    const auto buffer = three.Get(Id("x"), base::Seconds(1));
    if (buffer.ok()) {
      EXPECT_TRUE(Same(buffer->data(), new_bytes)) << "a deleted content is read";
    }
    return buffer.ok();
  }));
}

// A2: three contents of one id, two of one size.
TEST_P(TruthTest, OnlyOneOfThreeContentsIsConfirmed) {
  client::Client one = Connect(1), two = Connect(2), three = Connect(3);
  EXPECT_TRUE(one.Put(Id("x"), Pattern(5000, 1), {}, Confirmed()).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(two.Put(Id("x"), Pattern(5000, 2), {}, Confirmed())));
  EXPECT_TRUE(absl::IsAlreadyExists(three.Put(Id("x"), Pattern(6000, 3), {}, Confirmed())));
  for (client::Client* client : {&one, &two, &three}) EXPECT_TRUE(Same(Read(*client, "x"), Pattern(5000, 1)));
  const absl::Status deleted = three.Delete(Id("x"));
  EXPECT_TRUE(deleted.ok()) << deleted;
  for (client::Client* client : {&one, &two, &three}) EXPECT_FALSE(*client->Contains(Id("x")));
}

TEST_P(TruthTest, ThreeContentsThatNobodyConfirmedBecomeOne) {
  client::Client one = Connect(1), two = Connect(2), three = Connect(3);
  ASSERT_TRUE(one.Put(Id("x"), Pattern(5000, 1)).ok());
  ASSERT_TRUE(Eventually([&] { return Number(one, "directory_updates_behind") == 0; }));
  ASSERT_TRUE(two.Put(Id("x"), Pattern(5000, 2)).ok());
  ASSERT_TRUE(three.Put(Id("x"), Pattern(6000, 3)).ok());
  EXPECT_TRUE(Eventually([&] { return Number(two, "objects_refused_total") == 1; }));
  EXPECT_TRUE(Eventually([&] { return Number(three, "objects_refused_total") == 1; }));
  for (client::Client* client : {&one, &two, &three}) EXPECT_TRUE(Same(Read(*client, "x"), Pattern(5000, 1)));
  EXPECT_TRUE(one.Delete(Id("x")).ok());
  for (client::Client* client : {&one, &two, &three}) EXPECT_FALSE(*client->Contains(Id("x")));
}

// A3 (and A1c): deleted in the middle of a pull.
TEST_P(TruthTest, AnObjectThatIsDeletedWhileItIsPulledIsNotBackAfterwards) {
  client::Client one = Connect(1), two = Connect(2), looker = Connect(2);
  const std::vector<uint8_t> large = Pattern(size_t{12} << 20, 1), other = Pattern(large.size(), 2);
  int in_the_middle = 0;
  for (int round = 0; round < 6; ++round) {
    const std::string id = absl::StrCat("large", round);
    ASSERT_TRUE(one.Put(Id(id), large, {}, Confirmed()).ok());
    std::thread getter([&] {
      const auto buffer = two.Get(Id(id), base::Seconds(2));
      if (buffer.ok()) {
        EXPECT_TRUE(Same(buffer->data(), large));
      }
    });
    EXPECT_TRUE(Eventually([&] { return Number(looker, "pulls_running") > 0 || *looker.Contains(Id(id)); }));
    in_the_middle += *looker.Contains(Id(id)) ? 0 : 1;
    const absl::Status deleted = one.Delete(Id(id));
    EXPECT_TRUE(deleted.ok()) << deleted;
    EXPECT_FALSE(*looker.Contains(Id(id)));
    // Who served the pull lets go of the old bytes a moment later, and so does the getter, if it has them.
    getter.join();
    EXPECT_TRUE(Eventually([&] { return one.Put(Id(id), other, {}, Confirmed()).ok(); }));
    EXPECT_TRUE(Same(Read(looker, id), other)) << "round " << round;
    EXPECT_TRUE(one.Delete(Id(id)).ok());
  }
  EXPECT_GT(in_the_middle, 0) << "all pulls had ended before the deletion";
}

// A5: waits that were answered leave nothing behind.
TEST_P(TruthTest, AnsweredWaitsOfAProgramThatEndedCostNobodyAnything) {
  client::Client one = Connect(1);
  ASSERT_TRUE(one.Put(Id("here"), Pattern(10, 1)).ok());
  {
    client::Client program = Connect(2);
    for (int call = 0; call < 33; ++call) {
      std::vector<base::ObjectId> ids = {Id("here")};
      for (int i = 1; i < 2048; ++i) ids.push_back(Id(absl::StrCat("absent", call, "-", i)));
      const auto exist = program.Wait(ids, 1, base::Seconds(3600));
      ASSERT_TRUE(exist.ok()) << exist.status();
      EXPECT_TRUE((*exist)[0]);
    }
  }
  client::Client two = Connect(2), three = Connect(3);
  // A Wait for what nobody puts waits, without an error.
  const auto began = Clock::now();
  const std::vector<base::ObjectId> never = {Id("never")};
  const auto exists = two.Wait(never, 1, base::Seconds(1));
  ASSERT_TRUE(exists.ok()) << exists.status();
  EXPECT_FALSE((*exists)[0]);
  EXPECT_GE(Clock::now() - began, std::chrono::milliseconds(990));
  // A Get of what is put later finds it.
  std::thread getter([&] { EXPECT_TRUE(Same(Read(two, "late"), Pattern(100, 2))); });
  client::Client looker = Connect(2);
  EXPECT_TRUE(Eventually([&] { return Number(looker, "pulls_running") > 0; }));
  EXPECT_TRUE(three.Put(Id("late"), Pattern(100, 2)).ok());
  getter.join();
}

// A13: what needs no directory does not wait for it.
TEST_P(TruthTest, WithoutTheDirectoryWhatIsKnownGoesOnAndTheRestIsRefusedAtOnce) {
  client::Client two = Connect(2), three = Connect(3);
  const std::vector<uint8_t> bytes = Pattern(100'000, 1);
  ASSERT_TRUE(three.Put(Id("known"), bytes).ok());
  ASSERT_TRUE(two.Put(Id("own"), bytes).ok());
  ASSERT_TRUE(Same(Read(two, "known"), bytes));
  ASSERT_TRUE(two.Evict(1 << 20).ok());  // its place stays known
  ASSERT_FALSE(*two.Contains(Id("known")));
  StopDirectory();
  for (client::Client* client : {&two, &three}) {
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
  EXPECT_LT(took([&] { EXPECT_TRUE(absl::IsUnavailable(two.Delete(Id("own")))); }), kAtOnce);
  EXPECT_LT(took([&] { EXPECT_TRUE(absl::IsUnavailable(two.Put(Id("sure"), bytes, {}, Confirmed()))); }), kAtOnce);
  EXPECT_FALSE(*two.Contains(Id("sure")));
  ContinueDirectory();
  EXPECT_TRUE(Same(Read(three, "new"), bytes)) << "announced when it is back";
  EXPECT_TRUE(two.Delete(Id("own")).ok());
}

// A16: a second daemon with the name of one that is alive.
TEST_P(TruthTest, ASecondDaemonOfANameThatIsAliveDoesNotDisplaceTheFirst) {
  client::Client one = Connect(1), two = Connect(2);
  const auto life = [&] {
    const auto nodes = one.Nodes();
    if (!nodes.ok()) return uint64_t{0};
    for (const client::NodeEntry& node : *nodes) {
      if (node.name == "node2") return node.incarnation;
    }
    return uint64_t{0};
  };
  const uint64_t first_life = life();
  ASSERT_NE(first_life, 0u);
  Strings flags = Flags(4);
  flags.insert(flags.end(), {"--name", "node2"});
  TokdProcess second(folder_, 4, flags);
  EXPECT_TRUE(Eventually([&] {
    return absl::StrContains(second.log(), "the directory is out of reach") || !second.running();
  })) << second.log();
  // Three renewals of both and more.
  const auto end = Clock::now() + Micros(kLease);
  for (int i = 0; Clock::now() < end; ++i) {
    const std::string id = absl::StrCat("object", i);
    ASSERT_TRUE(two.Put(Id(id), Pattern(100, 1)).ok());
    ASSERT_TRUE(Same(Read(one, id), Pattern(100, 1)));
    ASSERT_EQ(life(), first_life) << second.log();
  }
  EXPECT_EQ(Number(two, "directory_failed_renewals_total"), 0u);
  if (second.running()) second.Kill();
}

// ---- programs under trouble

// Programs of all nodes, until it is dropped.
class Programs final {
 public:
  static constexpr int kForEachNode = 2;
  static constexpr uint64_t kIdsAtOnce = 4;
  // Then others take their place: each trouble meets some, and the history of one id stays short enough to be judged.
  static constexpr base::Duration kSeries = base::Seconds(4);

  Programs(Witness& witness, const std::vector<std::unique_ptr<TokdProcess>>& nodes) : witness_(witness) {
    for (int node = 1; node <= kNodes; ++node) {
      for (int i = 0; i < kForEachNode; ++i) {
        const uint64_t seed = static_cast<uint64_t>(node * kForEachNode + i);
        threads_.emplace_back([this, node, seed, socket = nodes[node]->socket()] {
          Run(static_cast<uint32_t>(node), socket, base::Random(seed));
        });
      }
    }
  }
  ~Programs() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
  }

  static std::string IdOf(uint64_t series, uint64_t place) { return absl::StrCat("s", series, "-", place); }
  Strings AllIds() const {
    Strings ids;
    for (uint64_t series = 0; series <= Series(); ++series) {
      for (uint64_t place = 0; place < kIdsAtOnce; ++place) ids.push_back(IdOf(series, place));
    }
    return ids;
  }

 private:
  uint64_t Series() const { return static_cast<uint64_t>((Clock::now() - began_) / Micros(kSeries)); }

  void Run(uint32_t node, const std::string& socket, base::Random random) {
    client::ClientOptions options;
    options.call_timeout = kPatience;
    while (!stop_) {
      auto client = client::Client::Connect(socket, options);
      if (!client.ok()) poll(nullptr, 0, 5);  // the daemon is being restarted
      while (client.ok() && client->status().ok() && !stop_) Act(node, *client, random);
    }
  }

  void Act(uint32_t node, client::Client& client, base::Random& random) {
    const std::string id = IdOf(Series(), random.Below(kIdsAtOnce));
    switch (random.Below(10)) {
      case 0:
        return (void)witness_.Put(client, node, id, /*confirmed=*/false);
      case 1:
      case 2:
        return (void)witness_.Put(client, node, id, /*confirmed=*/true);
      case 3:
        return (void)witness_.Delete(client, node, id);
      default:
        return (void)witness_.Get(client, node, id, base::Milliseconds(static_cast<int64_t>(random.Below(200))));
    }
  }

  Witness& witness_;
  const Clock::time_point began_ = Clock::now();
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

TEST_P(TruthTest, ProgramsUnderTroubleReadWhatWasPromised) {
  Witness witness;
  Strings ids;
  {
    Programs programs(witness, nodes_);
    LetLive(base::Seconds(2));

    nodes_[3]->Signal(SIGSTOP);
    LetLive(kLease * 2);
    nodes_[3]->Signal(SIGCONT);
    LetLive(base::Seconds(1));

    nodes_[2]->Kill();
    witness.Lost(2);
    LetLive(base::Milliseconds(500));
    Start(2);
    LetLive(base::Seconds(2));

    StopDirectory();
    LetLive(base::Seconds(3));
    ContinueDirectory();
    LetLive(base::Seconds(2));

    nodes_[3]->Signal(SIGSTOP);  // beyond its grace
    LetLive(kLease + kGrace + base::Seconds(1));
    nodes_[3]->Signal(SIGCONT);
    LetLive(base::Seconds(1));
    ids = programs.AllIds();
  }
  AwaitHealed();
  std::vector<std::thread> readers;
  for (int node = 1; node <= kNodes; ++node) {
    readers.emplace_back([&, node] {
      client::Client client = Connect(node);
      // A holder that is silent is left after transport::kPatience, 10 s: only then is the next asked.
      witness.GetLast(client, static_cast<uint32_t>(node), ids, base::Seconds(30));
    });
  }
  for (std::thread& reader : readers) reader.join();

  using sim::Operation;
  EXPECT_GT(witness.Count(Operation::Kind::kGet, Operation::Outcome::kOk), 200u) << witness.Summary();
  EXPECT_GT(witness.Count(Operation::Kind::kPut, Operation::Outcome::kOk), 20u) << witness.Summary();
  EXPECT_GT(witness.Count(Operation::Kind::kPut, Operation::Outcome::kRefused), 20u) << witness.Summary();
  EXPECT_GT(witness.Count(Operation::Kind::kDelete, Operation::Outcome::kOk), 20u) << witness.Summary();
  std::cout << witness.Summary();
  for (const std::string& wrong : witness.Violations()) ADD_FAILURE() << wrong;
}

}  // namespace
}  // namespace tokamak::daemon
