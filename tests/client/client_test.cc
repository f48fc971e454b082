// The client against a daemon that behaves: what a program sees.
#include "tokamak/client.h"

#include <algorithm>
#include <atomic>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/base/random.h"
#include "tests/client/fake_daemon.h"
#include "tests/client/samples.h"

namespace tokamak::client {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::chrono::nanoseconds kSoon = std::chrono::seconds(10);  // long before it, unless something is broken
constexpr std::chrono::nanoseconds kShort = std::chrono::milliseconds(20);

Span<const uint8_t> AsBytes(std::string_view text) { return text; }

class ClientTest : public testing::Test {
 protected:
  ClientTest() : client_(*Client::Connect(daemon_.path())) {}

  // Awaits the end of the client's requests without answers: this call, behind them, is answered.
  void Settle() { ASSERT_TRUE(client_.Contains(SampleId(0)).ok()); }

  static PutOptions Unclaimed() {
    PutOptions options;
    options.claim = false;
    return options;
  }

  uint64_t pins() {
    Settle();
    return daemon_.statistics().pins;
  }

  FakeDaemon daemon_;
  Client client_;
};

TEST_F(ClientTest, KnowsItsNode) {
  EXPECT_EQ(client_.node(), "fake");
  EXPECT_EQ(client_.capacity(), FakeDaemon::kCapacity);
  EXPECT_TRUE(client_.status().ok());
}

TEST_F(ClientTest, AnObjectIsReadInPlace) {
  ASSERT_EQ(client_.Put(SampleId(1), AsBytes("data"), AsBytes("metadata")), Status());
  const Result<Buffer> buffer = client_.Get(SampleId(1), kSoon);
  ASSERT_TRUE(buffer.ok()) << buffer.status();
  EXPECT_EQ(buffer->data(), AsBytes("data"));
  EXPECT_EQ(buffer->metadata(), AsBytes("metadata"));
  EXPECT_EQ(buffer->id(), SampleId(1));
}

TEST_F(ClientTest, ALargeObjectIsPutToo) {
  std::vector<uint8_t> large(kMaxInlineBytes + 1);
  std::generate(large.begin(), large.end(), [n = 0]() mutable { return static_cast<uint8_t>(n++ * 7); });
  ASSERT_EQ(client_.Put(SampleId(1), large, AsBytes("m")), Status());
  const Buffer buffer = *client_.Get(SampleId(1), kSoon);
  EXPECT_EQ(buffer.data(), Span<const uint8_t>(large));
  EXPECT_EQ(buffer.metadata(), AsBytes("m"));
}

TEST_F(ClientTest, AnObjectCanBeFilledInPlace) {
  Result<MutableBuffer> buffer = client_.Create(SampleId(1), 5, AsBytes("about"));
  ASSERT_TRUE(buffer.ok()) << buffer.status();
  EXPECT_FALSE(*client_.Contains(SampleId(1)));
  std::copy_n("hello", 5, buffer->data().begin());
  ASSERT_EQ(buffer->Seal(), Status());
  EXPECT_TRUE(buffer->empty());
  const Buffer read = *client_.Get(SampleId(1), kSoon);
  EXPECT_EQ(read.data(), AsBytes("hello"));
  EXPECT_EQ(read.metadata(), AsBytes("about"));
}

TEST_F(ClientTest, ABufferThatIsDroppedUnsealedAbortsItsObject) {
  { const MutableBuffer buffer = *client_.Create(SampleId(1), 100); }
  Settle();
  EXPECT_EQ(daemon_.statistics().aborted, 1u);
  EXPECT_TRUE(client_.Create(SampleId(1), 100).ok());
}

TEST_F(ClientTest, AbortingIsPossibleOnce) {
  MutableBuffer buffer = *client_.Create(SampleId(1), 100);
  EXPECT_EQ(buffer.Abort(), Status());
  EXPECT_EQ(buffer.Abort().code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(buffer.Seal().code(), StatusCode::kFailedPrecondition);
}

TEST_F(ClientTest, AnUnclaimedObjectIsPutWhenItIsSealed) {
  Result<MutableBuffer> buffer = client_.Create(SampleId(1), 5, AsBytes("about"), Unclaimed());
  ASSERT_TRUE(buffer.ok()) << buffer.status();
  EXPECT_EQ(daemon_.statistics().unsealed_objects, 0u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer->data().data()) % 64, 0u);
  std::copy_n("hello", 5, buffer->data().begin());
  MutableBuffer moved = *std::move(buffer);
  ASSERT_EQ(moved.Seal(), Status());
  EXPECT_TRUE(moved.empty());
  EXPECT_EQ(moved.Seal().code(), StatusCode::kFailedPrecondition);
  const Buffer read = *client_.Get(SampleId(1), kSoon);
  EXPECT_EQ(read.data(), AsBytes("hello"));
  EXPECT_EQ(read.metadata(), AsBytes("about"));
}

TEST_F(ClientTest, TheFirstSealedOfTwoUnclaimedObjectsHasTheId) {
  MutableBuffer first = *client_.Create(SampleId(1), 0, {}, Unclaimed());
  MutableBuffer second = *client_.Create(SampleId(1), 10, {}, Unclaimed());
  ASSERT_EQ(second.Seal(), Status());
  EXPECT_EQ(first.Seal().code(), StatusCode::kAlreadyExists);
  EXPECT_EQ(client_.Get(SampleId(1), kSoon)->data().size(), 10u);
}

TEST_F(ClientTest, AnUnclaimedObjectIsAbortedWithoutTheDaemon) {
  { const MutableBuffer dropped = *client_.Create(SampleId(1), 100, {}, Unclaimed()); }
  MutableBuffer aborted = *client_.Create(SampleId(1), 100, {}, Unclaimed());
  EXPECT_EQ(aborted.Abort(), Status());
  EXPECT_EQ(aborted.Abort().code(), StatusCode::kFailedPrecondition);
  Settle();
  EXPECT_EQ(daemon_.statistics().aborted, 0u);
  EXPECT_FALSE(*client_.Contains(SampleId(1)));
}

TEST_F(ClientTest, OnlySmallObjectsAreUnclaimed) {
  const std::vector<uint8_t> metadata(10);
  const MutableBuffer small = *client_.Create(SampleId(1), kMaxInlineBytes - 10, metadata, Unclaimed());
  EXPECT_EQ(daemon_.statistics().unsealed_objects, 0u);
  const MutableBuffer larger = *client_.Create(SampleId(2), kMaxInlineBytes - 9, metadata, Unclaimed());
  EXPECT_EQ(daemon_.statistics().unsealed_objects, 1u);
  EXPECT_EQ(client_.Create(SampleId(3), UINT64_MAX, metadata, Unclaimed()).status().code(),
            StatusCode::kResourceExhausted);
}

TEST_F(ClientTest, ABufferPinsItsObjectWhileItLives) {
  ASSERT_TRUE(client_.Put(SampleId(1), AsBytes("x")).ok());
  {
    Buffer first = *client_.Get(SampleId(1), kSoon);
    const Buffer second = *client_.Get(SampleId(1), kSoon);
    EXPECT_EQ(pins(), 2u);
    first = Buffer();
    EXPECT_EQ(pins(), 1u);
  }
  EXPECT_EQ(pins(), 0u);
}

TEST_F(ClientTest, AMovedBufferReleasesOnce) {
  ASSERT_TRUE(client_.Put(SampleId(1), AsBytes("x")).ok());
  Buffer first = *client_.Get(SampleId(1), kSoon);
  Buffer second = std::move(first);
  EXPECT_TRUE(first.empty());  // NOLINT: what moving promises
  EXPECT_EQ(second.data(), AsBytes("x"));
  second.Release();
  second.Release();
  EXPECT_EQ(pins(), 0u);
}

TEST_F(ClientTest, ABufferOutlivesItsClient) {
  ASSERT_TRUE(client_.Put(SampleId(1), AsBytes("x")).ok());
  Buffer buffer;
  {
    Client other = *Client::Connect(daemon_.path());
    buffer = *other.Get(SampleId(1), kSoon);
  }
  EXPECT_EQ(client_.Evict(1)->objects, 0u);
  EXPECT_EQ(buffer.data(), AsBytes("x"));
  buffer.Release();
  while (daemon_.connections() != 1) std::this_thread::yield();
  EXPECT_EQ(pins(), 0u);
}

TEST_F(ClientTest, PinsOfADeadClientAreReturned) {
  ASSERT_TRUE(client_.Put(SampleId(1), AsBytes("x")).ok());
  MutableBuffer unsealed = *client_.Create(SampleId(2), 10);
  const Buffer pinned = *client_.Get(SampleId(1), kSoon);
  daemon_.Disconnect();
  EXPECT_EQ(daemon_.statistics().pins, 0u);
  EXPECT_EQ(daemon_.statistics().unsealed_objects, 0u);
  EXPECT_EQ(unsealed.Seal().code(), StatusCode::kUnavailable);
}

TEST_F(ClientTest, AGetWaitsForAnObjectThatDoesNotExistYet) {
  std::thread putter([&] {
    EXPECT_TRUE(daemon_.AwaitGets(1));
    EXPECT_TRUE(client_.Put(SampleId(1), AsBytes("late")).ok());
  });
  const Result<Buffer> buffer = client_.Get(SampleId(1), kSoon);
  putter.join();
  ASSERT_TRUE(buffer.ok()) << buffer.status();
  EXPECT_EQ(buffer->data(), AsBytes("late"));
}

TEST_F(ClientTest, AGetEndsByItsTimeOut) {
  EXPECT_EQ(client_.Get(SampleId(1), kShort).status().code(), StatusCode::kDeadlineExceeded);
  EXPECT_EQ(client_.Get(SampleId(1), Timeout()).status().code(), StatusCode::kDeadlineExceeded);
  EXPECT_TRUE(client_.status().ok());
}

TEST_F(ClientTest, AMultiGetReturnsThePresentObjectsInOrder) {
  ASSERT_TRUE(client_.Put(SampleId(2), AsBytes("two")).ok());
  const auto buffers = client_.Get({SampleId(1), SampleId(2)}, kShort);
  ASSERT_EQ(buffers.size(), 2u);
  EXPECT_EQ(buffers[0].status().code(), StatusCode::kDeadlineExceeded);
  ASSERT_TRUE(buffers[1].ok());
  EXPECT_EQ(buffers[1]->data(), AsBytes("two"));
  EXPECT_EQ(pins(), 1u);
}

TEST_F(ClientTest, ObjectsBeyondOneRequestArePutListedAndGot) {
  const size_t count = kMaxIds + 10;
  std::vector<PutObject> objects;
  std::vector<ObjectId> ids;
  for (size_t i = 0; i < count; ++i) ids.push_back(SampleId(static_cast<int>(i)));
  for (const ObjectId& id : ids) objects.push_back({id, {id.data(), ObjectId::kSize}, {}});
  for (const Status& status : client_.Put(objects)) ASSERT_EQ(status, Status());

  EXPECT_EQ(client_.List()->size(), count);
  EXPECT_EQ(client_.List(7)->size(), 7u);
  EXPECT_EQ(client_.List(7, client_.List(7)->back().id)->size(), 7u);
  auto buffers = client_.Get(ids, kSoon);
  ASSERT_EQ(buffers.size(), count);
  for (size_t i = 0; i < count; ++i) {
    ASSERT_TRUE(buffers[i].ok());
    ASSERT_EQ(buffers[i]->data(), Span<const uint8_t>(ids[i].data(), ObjectId::kSize));
  }
  buffers.clear();
  EXPECT_EQ(pins(), 0u);
}

TEST_F(ClientTest, EachObjectOfABatchSucceedsOrFailsAlone) {
  ASSERT_TRUE(client_.Put(SampleId(2), AsBytes("there")).ok());
  const std::vector<uint8_t> large(kMaxInlineBytes + 1);
  const std::vector<uint8_t> medium(kMaxInlineBytes / 2 + 1);
  const auto statuses = client_.Put({{SampleId(1), medium, {}},
                                     {SampleId(2), AsBytes("again"), {}},
                                     {SampleId(3), large, {}},
                                     {SampleId(4), medium, {}}});
  ASSERT_EQ(statuses.size(), 4u);
  EXPECT_TRUE(statuses[0].ok() && statuses[2].ok() && statuses[3].ok());
  EXPECT_EQ(statuses[1].code(), StatusCode::kAlreadyExists);
}

TEST_F(ClientTest, NamesAreKeptAndListed) {
  const std::vector<uint8_t> large(kMaxInlineBytes + 1), data(10);
  PutOptions named = Unclaimed();
  named.name = "small";
  ASSERT_EQ(client_.Put(ObjectId::FromName("small"), data, {}, named), Status());
  named.name = "unclaimed";
  ASSERT_EQ(client_.Create(ObjectId::FromName("unclaimed"), 10, {}, named)->Seal(), Status());
  const std::vector<PutObject> objects = {{ObjectId::FromName("large"), large, {}, "large"},
                                          {ObjectId::FromName("of many"), data, {}, "of many"},
                                          {ObjectId::FromName("unnamed"), data, {}}};
  EXPECT_EQ(client_.Put(objects), std::vector<Status>(3));
  ASSERT_EQ(client_.PutTogether(std::vector<PutObject>{{ObjectId::FromName("together"), data, {}, "together"}}),
            Status());
  const auto listed = client_.List();
  ASSERT_TRUE(listed.ok()) << listed.status();
  std::set<std::string> names;
  for (const ObjectInfo& object : *listed) names.insert(object.name);
  EXPECT_EQ(names, (std::set<std::string>{"", "large", "of many", "small", "together", "unclaimed"}));
  EXPECT_EQ(client_.Stat(ObjectId::FromName("large"))->object.name, "large");
}

TEST_F(ClientTest, AWrongNameIsRefusedForItsObjectAlone) {
  const std::vector<uint8_t> data(10);
  PutOptions wrong;
  wrong.name = "y";
  for (const Status& refused :
       {client_.Put(ObjectId::FromName("x"), data, {}, wrong),
        client_.Create(ObjectId::FromName("x"), 10, {}, wrong).status(),
        client_.PutTogether(std::vector<PutObject>{{ObjectId::FromName("x"), data, {}, "y"}})}) {
    EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
    EXPECT_NE(refused.message().find("the name 'y' is not that of object"), std::string::npos) << refused;
  }
  const std::vector<PutObject> objects = {{ObjectId::FromName("1"), data, {}, "1"},
                                          {ObjectId::FromName("2"), data, {}, "3"},
                                          {ObjectId::FromName("a\nb"), data, {}, "a\nb"},
                                          {ObjectId::FromName("4"), data, {}}};
  const std::vector<Status> statuses = client_.Put(objects);
  EXPECT_EQ(statuses[0], Status());
  EXPECT_EQ(statuses[1].code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(statuses[2].code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(statuses[3], Status());
  EXPECT_EQ(client_.List()->size(), 2u);
  EXPECT_TRUE(PutOptions::MayBeKept(std::string(PutOptions::kMaxName, 'x')));
  EXPECT_FALSE(PutOptions::MayBeKept(std::string(PutOptions::kMaxName + 1, 'x')));
}

TEST_F(ClientTest, TheDaemonsErrorsReachTheProgram) {
  EXPECT_EQ(client_.Delete(SampleId(1)).code(), StatusCode::kNotFound);
  EXPECT_EQ(client_.Touch(SampleId(1)).code(), StatusCode::kNotFound);
  EXPECT_EQ(client_.Stat(SampleId(1)).status().code(), StatusCode::kNotFound);
  const Status full = client_.Create(SampleId(1), FakeDaemon::kCapacity + 1).status();
  EXPECT_EQ(full.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(full.message(), HasSubstr("--memory"));
}

TEST_F(ClientTest, ObjectsAreLookedAtDeletedAndEvicted) {
  ASSERT_TRUE(client_.Put(SampleId(1), AsBytes("12345"), AsBytes("1")).ok());
  const ObjectStat stat = *client_.Stat(SampleId(1));
  EXPECT_EQ(stat.object.data_size, 5u);
  EXPECT_EQ(stat.object.state, ObjectState::kSealed);
  EXPECT_THAT(stat.holders, ElementsAre("fake"));
  EXPECT_EQ(client_.Touch(SampleId(1)), Status());
  EXPECT_EQ(client_.Delete(SampleId(1)), Status());
  EXPECT_FALSE(*client_.Contains(SampleId(1)));
  ASSERT_TRUE(client_.Put(SampleId(2), AsBytes("x")).ok());
  EXPECT_EQ(client_.Evict(1)->objects, 1u);
  EXPECT_EQ(client_.Nodes()->at(0).name, "fake");
  const Result<ClusterView> cluster = client_.Cluster();
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  EXPECT_TRUE(cluster->located);
  ASSERT_EQ(cluster->nodes.size(), 2u) << "in two replies";
  EXPECT_TRUE(cluster->nodes[0].info.is_this);
  EXPECT_EQ(cluster->nodes[0].numbers.size(), 1u);
  EXPECT_EQ(cluster->nodes[1].state, NodeState::kSuspected);
  EXPECT_EQ(cluster->nodes[1].unheard_for, std::chrono::seconds(7));
}

TEST_F(ClientTest, AWaitReturnsTheExistingObjects) {
  ASSERT_TRUE(client_.Put(SampleId(2), AsBytes("x")).ok());
  const auto ready = client_.Wait({SampleId(1), SampleId(2)}, 1, kSoon);
  ASSERT_TRUE(ready.ok());
  EXPECT_EQ(*ready, (std::vector<bool>{false, true}));
  EXPECT_EQ(client_.Wait(std::vector<ObjectId>(kMaxIds + 1), 1, kSoon).status().code(), StatusCode::kInvalidArgument);
}

TEST_F(ClientTest, ASubscriptionReportsObjects) {
  Subscription subscription = *client_.Subscribe();
  ASSERT_TRUE(client_.Put(SampleId(1), AsBytes("12345")).ok());
  const Result<Events> events = subscription.Next(kSoon);
  ASSERT_TRUE(events.ok()) << events.status();
  EXPECT_EQ(events->events.at(0).kind, EventKind::kSealed);
  EXPECT_EQ(events->events.at(0).id, SampleId(1));
  EXPECT_EQ(events->events.at(0).data_size, 5u);
  EXPECT_EQ(subscription.Next(kShort).status().code(), StatusCode::kDeadlineExceeded);
}

TEST_F(ClientTest, AClientThatOnlyReadsCannotCreate) {
  ClientOptions options;
  options.access = Access::kRead;
  Client reader = *Client::Connect(daemon_.path(), options);
  ASSERT_TRUE(client_.Put(SampleId(1), AsBytes("x")).ok());
  EXPECT_EQ(reader.Get(SampleId(1), kSoon)->data(), AsBytes("x"));
  EXPECT_EQ(reader.Create(SampleId(2), 10).status().code(), StatusCode::kFailedPrecondition);
}

using ClientDeathTest = ClientTest;

TEST_F(ClientDeathTest, WritingToASealedObjectFaultsInTheWriter) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  ASSERT_TRUE(client_.Put(SampleId(1), AsBytes("x")).ok());
  const Buffer buffer = *client_.Get(SampleId(1), kSoon);
  EXPECT_DEATH(*const_cast<uint8_t*>(buffer.data().data()) = 0, "");
}

TEST_F(ClientTest, ManyThreadsShareOneClient) {
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      base::Random random(static_cast<uint64_t>(t));
      for (int i = 0; i < 100; ++i) {
        const ObjectId id = ObjectId::FromName(absl::StrCat(t, "/", i));
        const std::vector<uint8_t> data(1 + random.Below(100), static_cast<uint8_t>(t));
        const bool put = client_.Put(id, data).ok();
        // Half of them ask for what the next thread will put.
        const int other = random.Chance(0.5) ? t : (t + 1) % 4;
        const auto buffer = client_.Get(ObjectId::FromName(absl::StrCat(other, "/", i)), kSoon);
        if (!put || !buffer.ok() || buffer->data()[0] != other) ++failures;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(pins(), 0u);
}

}  // namespace
}  // namespace tokamak::client
