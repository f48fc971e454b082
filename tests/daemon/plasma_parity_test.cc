// The checks of the published tests of Plasma's client, on real daemons and through the public
// client. docs/plasma.md says which test holds which call.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/os/memory_limits.h"
#include "tests/daemon/tokd_process.h"
#include "tokamak/client.h"
#include "tokamak/gets.h"

namespace tokamak::daemon {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using Bytes = std::vector<uint8_t>;
using Strings = std::vector<std::string>;

constexpr uint64_t kMiB = 1 << 20;

ObjectId Id(const std::string& name) { return ObjectId::FromName(name); }

class PlasmaParityTest : public testing::Test {
 protected:
  // Node 1, or another one in its cluster.
  TokdProcess& Start(Strings flags = {}) {
    const int index = static_cast<int>(nodes_.size()) + 1;
    if (index > 1) {
      for (const std::string& flag : DirectoryOfNode1()) flags.push_back(flag);
    }
    nodes_.push_back(std::make_unique<TokdProcess>(folder_, index, flags));
    nodes_.back()->AwaitReady();
    return *nodes_.back();
  }

  // Fails at once where there is no room.
  static PutOptions AtOnce() {
    PutOptions options;
    options.timeout = Timeout();
    return options;
  }

  static void Put(Client& client, const std::string& name, size_t size = 10) {
    const Status put = client.Put(Id(name), Pattern(size, 1));
    ASSERT_TRUE(put.ok()) << put;
  }

  // A program of its own that does `act` with a client and then is killed by itself; waits for its
  // end.
  template <typename Act>
  static void LetDie(const TokdProcess& tokd, Act act) {
    const pid_t pid = fork();
    ASSERT_GE(pid, 0);
    if (pid == 0) {
      auto doomed = Client::Connect(tokd.socket());
      if (!doomed.ok() || !act(*doomed)) _exit(1);
      kill(getpid(), SIGKILL);
    }
    int how = 0;
    ASSERT_EQ(waitpid(pid, &how, 0), pid);
    ASSERT_TRUE(WIFSIGNALED(how)) << "it could not do its part: " << WEXITSTATUS(how);
  }

  // Hears until `last` was heard of; what it heard of each, in order.
  static std::map<ObjectId, std::vector<EventKind>> HearUntil(Subscription& subscription, const ObjectId& last,
                                                              EventKind kind) {
    std::map<ObjectId, std::vector<EventKind>> heard;
    for (bool over = false; !over;) {
      const auto next = subscription.Next(kPatience);
      EXPECT_TRUE(next.ok()) << next.status();
      if (!next.ok()) break;
      EXPECT_EQ(next->dropped, 0u);
      for (const Event& event : next->events) {
        heard[event.id].push_back(event.kind);
        over = over || (event.id == last && event.kind == kind);
      }
    }
    return heard;
  }

  ShortFolder folder_;
  std::vector<std::unique_ptr<TokdProcess>> nodes_;
};

TEST_F(PlasmaParityTest, MetadataOfEveryLengthComesBack) {
  Client client = Start().Connect();
  constexpr size_t kLengths = 1000;
  std::vector<Bytes> metadata;
  std::vector<ObjectId> ids;
  std::vector<PutObject> objects;
  const Bytes data = Pattern(7, 3);
  for (size_t length = 0; length < kLengths; ++length) {
    metadata.push_back(Pattern(length, static_cast<uint8_t>(length)));
    ids.push_back(Id(absl::StrCat("metadata ", length)));
  }
  for (size_t length = 0; length < kLengths; ++length) objects.push_back({ids[length], data, metadata[length]});
  for (const Status& put : client.Put(objects)) ASSERT_TRUE(put.ok()) << put;
  const auto buffers = client.Get(ids, Timeout());
  for (size_t length = 0; length < kLengths; ++length) {
    ASSERT_TRUE(buffers[length].ok()) << buffers[length].status();
    EXPECT_TRUE(Same(buffers[length]->metadata(), metadata[length])) << length;
    EXPECT_EQ(buffers[length]->metadata().size(), length);
    EXPECT_TRUE(Same(buffers[length]->data(), data)) << length;
  }
}

TEST_F(PlasmaParityTest, AnObjectIsSealedOnceAndByItsCreatorAlone) {
  TokdProcess& tokd = Start();
  Client client = tokd.Connect(), other = tokd.Connect();
  auto buffer = client.Create(Id("a"), 100);
  ASSERT_TRUE(buffer.ok()) << buffer.status();
  EXPECT_EQ(client.Create(Id("a"), 100).status().code(), StatusCode::kAlreadyExists);
  EXPECT_EQ(other.Create(Id("a"), 100).status().code(), StatusCode::kAlreadyExists) << "nor is it another's to seal";
  EXPECT_TRUE(buffer->Seal().ok());
  EXPECT_EQ(buffer->Seal().code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(client.Create(Id("a"), 100).status().code(), StatusCode::kAlreadyExists);
}

TEST_F(PlasmaParityTest, AnAbortedObjectNeverWas) {
  TokdProcess& tokd = Start();
  Client client = tokd.Connect(), other = tokd.Connect();
  auto buffer = client.Create(Id("a"), 100'000);
  ASSERT_TRUE(buffer.ok()) << buffer.status();
  EXPECT_EQ(other.Get(Id("a"), Timeout()).status().code(), StatusCode::kNotFound);
  EXPECT_TRUE(buffer->Abort().ok());
  EXPECT_EQ(buffer->Abort().code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(buffer->Seal().code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(Number(client, "store_used_bytes"), 0u);
  EXPECT_EQ(other.Get(Id("a"), Timeout()).status().code(), StatusCode::kNotFound);

  Put(other, "a");
  EXPECT_TRUE(client.Get(Id("a"), Timeout()).ok());
}

TEST_F(PlasmaParityTest, OneIdIsCreatedAgainAndAgain) {
  Client client = Start().Connect();
  for (int i = 0; i < 50; ++i) {
    auto aborted = client.Create(Id("a"), 1000);
    ASSERT_TRUE(aborted.ok()) << aborted.status();
    ASSERT_TRUE(aborted->Abort().ok());
    Put(client, "a", 1000);
    const Status deleted = client.Delete(Id("a"));
    ASSERT_TRUE(deleted.ok()) << deleted;
  }
  EXPECT_EQ(Number(client, "store_used_bytes"), 0u);
}

TEST_F(PlasmaParityTest, ADeletionWaitsForTheLastReaderAlone) {
  TokdProcess& tokd = Start();
  Client client = tokd.Connect(), other = tokd.Connect();
  const StatusCode never = client.Delete(Id("never")).code();
  EXPECT_TRUE(never == StatusCode::kNotFound || never == StatusCode::kUnavailable) << "its directory has just begun";
  auto unsealed = client.Create(Id("unsealed"), 100);
  ASSERT_TRUE(unsealed.ok()) << unsealed.status();
  EXPECT_FALSE(client.Delete(Id("unsealed")).ok());
  EXPECT_TRUE(unsealed->Seal().ok()) << "which it is all the same";
  EXPECT_TRUE(client.Delete(Id("unsealed")).ok());

  Put(client, "a", 1000);
  auto one = client.Get(Id("a"), Timeout());
  auto two = other.Get(Id("a"), Timeout());
  ASSERT_TRUE(one.ok() && two.ok());
  EXPECT_TRUE(client.Delete(Id("a")).ok());
  EXPECT_FALSE(*client.Contains(Id("a")));
  EXPECT_EQ(other.Get(Id("a"), Timeout()).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(client.Put(Id("a"), Pattern(10, 2), {}, AtOnce()).code(), StatusCode::kFailedPrecondition);
  one->Release();
  EXPECT_TRUE(Same(two->data(), Pattern(1000, 1)));
  EXPECT_GT(Number(client, "store_used_bytes"), 0u);
  two->Release();
  EXPECT_TRUE(Eventually([&] { return Number(client, "store_used_bytes") == 0; }));
  Put(client, "a");
}

TEST_F(PlasmaParityTest, OnlySealedObjectsAreContained) {
  TokdProcess& tokd = Start();
  Client client = tokd.Connect(), other = tokd.Connect();
  EXPECT_FALSE(*client.Contains(Id("a")));
  auto buffer = client.Create(Id("a"), 100);
  ASSERT_TRUE(buffer.ok()) << buffer.status();
  EXPECT_FALSE(*client.Contains(Id("a")));
  EXPECT_FALSE(*other.Contains(Id("a")));
  ASSERT_TRUE(buffer->Seal().ok());
  EXPECT_TRUE(*client.Contains(Id("a")));
  EXPECT_TRUE(*other.Contains(Id("a")));
  ASSERT_TRUE(client.Delete(Id("a")).ok());
  EXPECT_FALSE(*client.Contains(Id("a")));
}

// Zero looks, a finite one ends, and the longest waits until the object is there.
TEST_F(PlasmaParityTest, AGetTakesEveryTimeout) {
  TokdProcess& tokd = Start();
  Client client = tokd.Connect(), other = tokd.Connect();
  EXPECT_EQ(client.Get(Id("a"), Timeout()).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(client.Get(Id("a"), std::chrono::seconds(-5)).status().code(), StatusCode::kNotFound);
  const auto began = std::chrono::steady_clock::now();
  EXPECT_FALSE(client.Get(Id("a"), milliseconds(50)).ok());
  EXPECT_GE(std::chrono::steady_clock::now() - began, milliseconds(50));

  Gets gets(client);
  ASSERT_TRUE(gets.Begin(Id("a"), Timeout::Longest()).ok());
  ASSERT_TRUE(gets.Send().ok());
  EXPECT_EQ(gets.Next(milliseconds(20)).status().code(), StatusCode::kDeadlineExceeded);
  Put(other, "a");
  const auto next = gets.Next(kPatience);
  ASSERT_TRUE(next.ok() && next->buffer.ok()) << next.status();
  EXPECT_TRUE(Same(next->buffer->data(), Pattern(10, 1)));
}

// Some are here, one is on another node, and some are nowhere, at time-outs of zero and more.
TEST_F(PlasmaParityTest, AMultiGetReturnsThePresentObjects) {
  Client here = Start().Connect(), there = Start().Connect();
  Put(here, "here", 100);
  Put(there, "there", 200);
  const std::vector<ObjectId> ids = {Id("nowhere"), Id("here"), Id("there"), Id("here"), Id("not here")};
  auto buffers = here.Get(ids, Timeout());
  EXPECT_FALSE(buffers[2].ok()) << "a time-out of zero takes what is on this node";
  EXPECT_TRUE(buffers[1].ok() && buffers[3].ok());
  ASSERT_TRUE(here.Get(Id("there"), kPatience).ok());
  buffers = here.Get(ids, milliseconds(100));
  EXPECT_FALSE(buffers[0].ok() || buffers[4].ok());
  ASSERT_TRUE(buffers[1].ok() && buffers[2].ok() && buffers[3].ok());
  EXPECT_EQ(buffers[1]->data().data(), buffers[3]->data().data()) << "in place, both";
  EXPECT_EQ(buffers[2]->data().size(), 200u);
}

// Before this another one was there, or no room, or too much: then none is, and no id is taken.
TEST_F(PlasmaParityTest, ABatchIsPutTogetherOrNotAtAll) {
  TokdProcess& tokd = Start({"--memory", "1MiB"});
  Client client = tokd.Connect(), other = tokd.Connect();
  const Bytes data = Pattern(20'000, 1), metadata = Pattern(5, 2);
  const std::vector<PutObject> objects = {{Id("a"), data, metadata}, {Id("b"), data, {}}, {Id("c"), {}, metadata}};
  const auto none_is_there = [&] {
    return !*other.Contains(Id("a")) && !*other.Contains(Id("b")) && !*other.Contains(Id("c"));
  };
  auto taken = other.Create(Id("c"), 10);
  ASSERT_TRUE(taken.ok()) << taken.status();
  EXPECT_EQ(client.PutTogether(objects).code(), StatusCode::kAlreadyExists);
  EXPECT_TRUE(none_is_there());
  ASSERT_TRUE(taken->Abort().ok());

  auto room = other.Create(Id("room"), kMiB - 30'000);
  ASSERT_TRUE(room.ok()) << room.status();
  EXPECT_EQ(client.PutTogether(objects).code(), StatusCode::kResourceExhausted);
  EXPECT_TRUE(none_is_there());
  ASSERT_TRUE(room->Abort().ok());
  EXPECT_EQ(Number(client, "store_used_bytes"), 0u);

  const Bytes large(PutOptions::kSmall + 1);
  EXPECT_EQ(client.PutTogether(std::vector<PutObject>{{Id("large"), large, {}}}).code(), StatusCode::kInvalidArgument);
  const Status put = client.PutTogether(objects);
  ASSERT_TRUE(put.ok()) << put;
  const auto buffers = other.Get(std::vector<ObjectId>{Id("a"), Id("b"), Id("c")}, Timeout());
  for (const auto& buffer : buffers) ASSERT_TRUE(buffer.ok()) << buffer.status();
  EXPECT_TRUE(Same(buffers[0]->data(), data) && Same(buffers[0]->metadata(), metadata));
  EXPECT_TRUE(Same(buffers[1]->data(), data) && Same(buffers[2]->metadata(), metadata));
}

TEST_F(PlasmaParityTest, AHundredThousandObjects) {
  Client client = Start({"--memory", "16MiB"}).Connect();
  constexpr size_t kObjects = 100'000;
  constexpr size_t kAtOnce = 2000;
  const auto id_of = [](size_t i) { return Id(absl::StrCat("many ", i)); };
  const auto bytes_of = [](size_t i) { return Pattern(10, static_cast<uint8_t>(i)); };
  for (size_t first = 0; first < kObjects; first += kAtOnce) {
    std::vector<Bytes> bytes;
    std::vector<PutObject> objects;
    for (size_t i = first; i < first + kAtOnce; ++i) bytes.push_back(bytes_of(i));
    for (size_t i = first; i < first + kAtOnce; ++i) objects.push_back({id_of(i), bytes[i - first], {}});
    for (const Status& put : client.Put(objects)) ASSERT_TRUE(put.ok()) << put;
  }
  EXPECT_EQ(client.List()->size(), kObjects);
  for (size_t first = 0; first < kObjects; first += kAtOnce) {
    std::vector<ObjectId> ids;
    for (size_t i = first; i < first + kAtOnce; ++i) ids.push_back(id_of(i));
    auto buffers = client.Get(ids, Timeout());
    std::vector<Buffer> held;
    for (size_t i = 0; i < kAtOnce; ++i) {
      ASSERT_TRUE(buffers[i].ok()) << buffers[i].status();
      ASSERT_TRUE(Same(buffers[i]->data(), bytes_of(first + i))) << first + i;
      held.push_back(*std::move(buffers[i]));
    }
    Buffer::ReleaseAll(held);
  }
  EXPECT_TRUE(Eventually([&] { return Number(client, "store_pins") == 0; }));
  EXPECT_EQ(Number(client, "store_used_bytes"), kObjects * 64);
}

TEST_F(PlasmaParityTest, ManyClientsSeeEachOthersObjects) {
  TokdProcess& tokd = Start();
  constexpr size_t kClients = 200;
  std::vector<Client> clients;
  std::vector<ObjectId> ids;
  for (size_t i = 0; i < kClients; ++i) {
    clients.push_back(tokd.Connect());
    Put(clients[i], absl::StrCat("of client ", i), 100 + i);
    ids.push_back(Id(absl::StrCat("of client ", i)));
  }
  for (Client& client : clients) {
    const auto buffers = client.Get(ids, Timeout());
    for (size_t i = 0; i < kClients; ++i) {
      ASSERT_TRUE(buffers[i].ok()) << buffers[i].status();
      ASSERT_EQ(buffers[i]->data().size(), 100 + i);
    }
  }
  clients.erase(clients.begin() + 1, clients.end());
  EXPECT_TRUE(Eventually([&] { return Number(clients.front(), "store_pins") == 0; }));
}

// In a cache what was put goes as copies go elsewhere: the least recently used first, where reading
// and touching are uses.
TEST_F(PlasmaParityTest, TheLeastRecentlyUsedGoesFirst) {
  Client client = Start({"--memory", "4MiB", "--cache"}).Connect();
  for (const char* name : {"a", "b", "c", "d"}) Put(client, name, kMiB);
  ASSERT_TRUE(client.Touch(Id("a")).ok());
  ASSERT_TRUE(client.Get(Id("c"), Timeout()).ok());
  const auto there = [&] {
    std::string names;
    for (const char* name : {"a", "b", "c", "d", "e", "f", "g"}) names += *client.Contains(Id(name)) ? name : "";
    return names;
  };
  Put(client, "e", kMiB);
  EXPECT_EQ(there(), "acde") << "b is the one used longest ago";
  Put(client, "f", kMiB);
  EXPECT_EQ(there(), "acef");
  Put(client, "g", kMiB);
  EXPECT_EQ(there(), "cefg") << "a was touched before c was read";
  EXPECT_EQ(client.Touch(Id("a")).code(), StatusCode::kNotFound);

  const auto evicted = client.Evict(kMiB + 1);
  ASSERT_TRUE(evicted.ok());
  EXPECT_EQ(evicted->objects, 2u);
  EXPECT_EQ(there(), "fg");
}

TEST_F(PlasmaParityTest, APinnedObjectIsNotEvicted) {
  Client client = Start({"--memory", "2MiB", "--cache"}).Connect();
  Put(client, "a", kMiB);
  Put(client, "b", kMiB);
  const auto buffer = client.Get(Id("a"), Timeout());
  ASSERT_TRUE(buffer.ok());
  Put(client, "c", kMiB);
  EXPECT_TRUE(*client.Contains(Id("a")));
  EXPECT_FALSE(*client.Contains(Id("b")));
  EXPECT_EQ(client.Put(Id("d"), Bytes(2 * kMiB), {}, AtOnce()).code(), StatusCode::kResourceExhausted);
  EXPECT_TRUE(*client.Contains(Id("c"))) << "nothing goes where that would not make the room";
}

// All of it, as one object and as many, and again after everything was deleted in another order.
TEST_F(PlasmaParityTest, AllOfTheMemoryCanBeUsed) {
  Client client = Start({"--memory", "8MiB"}).Connect();
  const uint64_t all = client.capacity();
  constexpr uint64_t kPart = 64 * 1024;
  for (int round = 0; round < 3; ++round) {
    {
      auto whole = client.Create(Id("whole"), all, {}, AtOnce());
      ASSERT_TRUE(whole.ok()) << whole.status();
      EXPECT_EQ(Number(client, "store_used_bytes"), all);
      EXPECT_EQ(client.Put(Id("one more"), Pattern(1, 1), {}, AtOnce()).code(), StatusCode::kResourceExhausted);
      ASSERT_TRUE(whole->Abort().ok());
    }
    std::vector<ObjectId> ids;
    for (uint64_t used = 0; used < all; used += kPart) {
      ids.push_back(Id(absl::StrCat("part ", used)));
      const Status put = client.Put(ids.back(), Bytes(kPart), {}, AtOnce());
      ASSERT_TRUE(put.ok()) << used << " of " << all << ": " << put;
    }
    EXPECT_EQ(Number(client, "store_used_bytes"), all);
    std::rotate(ids.begin(), ids.begin() + static_cast<ptrdiff_t>(ids.size()) / 3, ids.end());
    for (const ObjectId& id : ids) ASSERT_TRUE(client.Delete(id).ok());
  }
  EXPECT_EQ(client.Put(Id("too large"), Bytes(all + 1)).code(), StatusCode::kResourceExhausted);
}

// A program's unsealed and pinned bytes together: the only part that it alone can give back.
TEST_F(PlasmaParityTest, AProgramHasAQuotaAndOthersHaveTheirs) {
  TokdProcess& tokd = Start({"--quota", "2MiB"});
  Client client = tokd.Connect(), again = tokd.Connect();
  for (const char* name : {"a", "b", "c"}) Put(client, name, kMiB);
  auto unsealed = client.Create(Id("unsealed"), kMiB);
  auto pinned = again.Get(Id("a"), Timeout());
  ASSERT_TRUE(unsealed.ok() && pinned.ok());
  const auto beyond = client.Get(Id("b"), Timeout());
  EXPECT_EQ(beyond.status().code(), StatusCode::kResourceExhausted) << "both clients are one program";
  EXPECT_THAT(beyond.status().message(), HasSubstr("quota"));
  EXPECT_EQ(again.Create(Id("more"), 1).status().code(), StatusCode::kResourceExhausted);
  LetDie(tokd, [](Client& other) { return other.Get(Id("b"), Timeout()).ok() && other.Create(Id("its"), kMiB).ok(); });

  ASSERT_TRUE(unsealed->Seal().ok());
  EXPECT_TRUE(client.Get(Id("b"), Timeout()).ok());
}

TEST_F(PlasmaParityTest, AClientHasAQuotaOfItsOwn) {
  TokdProcess& tokd = Start();
  Client other = tokd.Connect();
  for (const char* name : {"a", "b"}) Put(other, name, kMiB);
  ClientOptions options;
  options.quota = kMiB + 1000;
  auto client = Client::Connect(tokd.socket(), options);
  ASSERT_TRUE(client.ok()) << client.status();
  auto buffer = client->Get(Id("a"), Timeout());
  ASSERT_TRUE(buffer.ok()) << buffer.status();
  EXPECT_EQ(client->Get(Id("b"), Timeout()).status().code(), StatusCode::kResourceExhausted);
  const auto beyond = client->Create(Id("c"), 1001);
  EXPECT_THAT(beyond.status().message(), HasSubstr("quota"));
  EXPECT_TRUE(other.Get(Id("b"), Timeout()).ok());
  EXPECT_TRUE(client->Put(Id("put"), Pattern(10'000, 1)).ok()) << "a small put holds nothing";
  buffer->Release();
  EXPECT_TRUE(client->Get(Id("b"), Timeout()).ok());
}

// Deletions, also through another node, and evictions are each reported once.
TEST_F(PlasmaParityTest, DeletionsAndEvictionsAreReported) {
  Client one = Start().Connect(), two = Start().Connect();
  auto subscription = two.Subscribe();
  ASSERT_TRUE(subscription.ok()) << subscription.status();
  Put(one, "a");
  Put(one, "b");
  Put(two, "c");
  for (const char* name : {"a", "b"}) ASSERT_TRUE(two.Get(Id(name), kPatience).ok());
  EXPECT_TRUE(
      Eventually([&] { return Number(two, "store_pins") == 0 && Number(two, "directory_updates_behind") == 0; }));
  ASSERT_TRUE(one.Delete(Id("a")).ok());
  EXPECT_EQ(two.Evict(1)->objects, 1u) << "the other copy";
  ASSERT_TRUE(one.Delete(Id("c")).ok());
  const auto heard = HearUntil(*subscription, Id("c"), EventKind::kDeleted);
  EXPECT_EQ(heard.size(), 3u);
  EXPECT_THAT(heard.at(Id("a")), ElementsAre(EventKind::kSealed, EventKind::kDeleted));
  EXPECT_THAT(heard.at(Id("b")), ElementsAre(EventKind::kSealed, EventKind::kEvicted));
  EXPECT_THAT(heard.at(Id("c")), ElementsAre(EventKind::kSealed, EventKind::kDeleted));
}

TEST_F(PlasmaParityTest, ALateSubscriberHearsOfAllSealedObjects) {
  Client client = Start().Connect();
  constexpr size_t kObjects = 5000;
  const Bytes data = Pattern(10, 1);
  std::vector<PutObject> objects;
  for (size_t i = 0; i < kObjects; ++i) objects.push_back({Id(absl::StrCat("early ", i)), data, {}});
  for (const Status& put : client.Put(objects)) ASSERT_TRUE(put.ok()) << put;
  ASSERT_TRUE(client.Delete(Id("early 7")).ok());
  auto unsealed = client.Create(Id("unsealed"), 10);
  ASSERT_TRUE(unsealed.ok());

  SubscribeOptions options;
  options.existing = true;
  auto subscription = client.Subscribe(options);
  ASSERT_TRUE(subscription.ok()) << subscription.status();
  ASSERT_TRUE(client.Delete(Id("early 8")).ok());
  Put(client, "late");
  std::map<ObjectId, std::vector<EventKind>> heard;
  bool caught_up = false;
  for (bool over = false; !over;) {
    const auto next = subscription->Next(kPatience);
    ASSERT_TRUE(next.ok()) << next.status();
    EXPECT_FALSE(caught_up && !next->caught_up) << "it was before";
    caught_up = next->caught_up;
    for (const Event& event : next->events) heard[event.id].push_back(event.kind);
    over = caught_up && heard.count(Id("late")) == 1;
  }
  EXPECT_EQ(heard.count(Id("early 7")) + heard.count(Id("unsealed")), 0u);
  for (size_t i = 0; i < kObjects; ++i) {
    if (i == 7 || i == 8) continue;
    ASSERT_THAT(heard[Id(absl::StrCat("early ", i))], ElementsAre(EventKind::kSealed)) << i;
  }
  EXPECT_TRUE(heard.count(Id("early 8")) == 0 || heard[Id("early 8")].size() == 2) << "told before its end, or not";
}

// While it waits, and while it reads.
TEST_F(PlasmaParityTest, AClientThatDiesInAGetLeavesNothing) {
  TokdProcess& tokd = Start();
  Client client = tokd.Connect();
  Put(client, "a", kMiB);
  LetDie(tokd, [](Client& doomed) {
    Gets gets(doomed);
    const bool waits = gets.Begin(Id("later"), Timeout::Longest()).ok() && gets.Begin(Id("a"), kPatience).ok() &&
                       gets.Next(kPatience).ok();
    if (waits) kill(getpid(), SIGKILL);  // before anything is given back or cancelled
    return false;
  });
  EXPECT_TRUE(Eventually([&] { return Number(client, "store_pins") == 0 && Number(client, "pulls_running") == 0; }));
  Put(client, "later");
  EXPECT_TRUE(client.Get(Id("later"), Timeout()).ok());
  EXPECT_TRUE(client.Delete(Id("a")).ok());
  EXPECT_TRUE(client.Delete(Id("later")).ok());
  EXPECT_TRUE(Eventually([&] { return Number(client, "store_used_bytes") == 0; }));
}

TEST_F(PlasmaParityTest, AnObjectMayHaveNoBytes) {
  Client client = Start().Connect();
  auto buffer = client.Create(Id("filled in place"), 0);
  ASSERT_TRUE(buffer.ok()) << buffer.status();
  EXPECT_TRUE(buffer->data().empty());
  ASSERT_TRUE(buffer->Seal().ok());
  ASSERT_TRUE(client.Put(Id("put"), {}).ok());
  for (const char* name : {"filled in place", "put"}) {
    const auto got = client.Get(Id(name), Timeout());
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_FALSE(got->empty()) << "an object, with no bytes";
    EXPECT_TRUE(got->data().empty() && got->metadata().empty());
  }
  EXPECT_EQ(*client.Hash(Id("put")), *client.Hash(Id("filled in place")));
  EXPECT_EQ(client.Put(Id("put"), {}).code(), StatusCode::kAlreadyExists);
  EXPECT_TRUE(client.Delete(Id("put")).ok());
}

// Equal bytes have equal hashes on every node, however they are put; a bit more or other metadata
// has another.
TEST_F(PlasmaParityTest, AHashCoversTheBytes) {
  Client one = Start().Connect(), two = Start().Connect();
  const Bytes data = Pattern(100'000, 1), metadata = Pattern(10, 2);
  Bytes other = data;
  other[70'000] ^= 1;
  ASSERT_TRUE(one.Put(Id("a"), data, metadata).ok());
  ASSERT_TRUE(two.Put(Id("the same"), data, metadata).ok());
  ASSERT_TRUE(two.Put(Id("one bit"), other, metadata).ok());
  ASSERT_TRUE(two.Put(Id("no metadata"), data).ok());
  ASSERT_TRUE(two.Get(Id("a"), kPatience).ok());
  EXPECT_EQ(*one.Hash(Id("a")), *two.Hash(Id("a")));
  EXPECT_EQ(*one.Hash(Id("a")), *two.Hash(Id("the same")));
  EXPECT_NE(*one.Hash(Id("a")), *two.Hash(Id("one bit")));
  EXPECT_NE(*one.Hash(Id("a")), *two.Hash(Id("no metadata")));
  EXPECT_EQ(one.Hash(Id("one bit")).status().code(), StatusCode::kNotFound) << "it is not on this node";
}

// As Ray's object manager does it beside Plasma: what a program will need soon is brought before.
TEST_F(PlasmaParityTest, ObjectsArePrefetched) {
  Client one = Start().Connect(), two = Start().Connect();
  Put(one, "a", 3 * kMiB);
  Put(one, "b", 1000);
  const std::vector<ObjectId> ids = {Id("a"), Id("nowhere"), Id("b")};
  const auto statuses = two.Prefetch(ids, milliseconds(200));
  EXPECT_EQ(statuses[1].ok(), false);
  EXPECT_TRUE(two.Prefetch(std::vector<ObjectId>{Id("a"), Id("b")}, kPatience).back().ok());
  EXPECT_TRUE(two.Get(Id("a"), Timeout()).ok() && two.Get(Id("b"), Timeout()).ok()) << "they are here";
  EXPECT_TRUE(Eventually([&] { return Number(two, "store_pins") == 0; }));
  EXPECT_GE(two.Evict(kMiB)->bytes, kMiB) << "copies like others";

  Put(two, "c", 1000);
  for (const Status& pushed : two.Push(std::vector<ObjectId>{Id("c")}, "node1", kPatience)) {
    EXPECT_TRUE(pushed.ok()) << pushed;
  }
  EXPECT_TRUE(one.Get(Id("c"), Timeout()).ok()) << "it is there";
  EXPECT_EQ(two.Push(ids, "node3", kPatience).front().code(), StatusCode::kNotFound);
  EXPECT_EQ(two.Push(ids, "node2", kPatience).front().code(), StatusCode::kInvalidArgument);
}

TEST_F(PlasmaParityTest, APinnedObjectStaysUntilItIsUnpinnedOrDeleted) {
  TokdProcess& tokd = Start({"--memory", "4MiB", "--cache"});
  Client client = tokd.Connect();
  for (const char* name : {"a", "b", "c"}) Put(client, name, kMiB);
  LetDie(tokd, [](Client& other) {
    for (const Status& pinned : other.Pin(std::vector<ObjectId>{Id("a"), Id("b")}, Timeout())) {
      if (!pinned.ok()) return false;
    }
    return true;
  });
  EXPECT_EQ(client.Evict(4 * kMiB)->objects, 1u) << "whoever pinned the others is gone, they stay";
  EXPECT_TRUE(client.Stat(Id("a"))->object.pinned_here);
  ASSERT_TRUE(client.Unpin(Id("a")).ok());
  EXPECT_FALSE(client.Stat(Id("a"))->object.pinned_here);
  EXPECT_EQ(client.Evict(4 * kMiB)->objects, 1u);
  EXPECT_TRUE(client.Delete(Id("b")).ok()) << "a pin keeps from eviction alone";
  EXPECT_EQ(Number(client, "store_used_bytes"), 0u);
  EXPECT_EQ(client.Pin(std::vector<ObjectId>{Id("b")}, Timeout()).front().code(), StatusCode::kNotFound);
  EXPECT_EQ(client.Unpin(Id("b")).code(), StatusCode::kNotFound);
}

TEST_F(PlasmaParityTest, AStoreInHugePagesWorks) {
  const os::HugePages pages = os::FreeHugePages();
  if (pages.page_size == 0 || pages.free * pages.page_size < 8 * kMiB) {
    GTEST_SKIP() << "this machine has no 8 MiB of free huge pages: sysctl vm.nr_hugepages=16";
  }
  Client client = Start({"--memory", "8MiB", "--huge-pages"}).Connect();
  for (int i = 0; i < 3; ++i) {
    Put(client, absl::StrCat("in huge pages ", i), 2 * kMiB);
    EXPECT_TRUE(Same(client.Get(Id(absl::StrCat("in huge pages ", i)), Timeout())->data(), Pattern(2 * kMiB, 1)));
  }
}

}  // namespace
}  // namespace tokamak::daemon
