// Two stores in one process, on one loop, with real streams over loopback between them.
#include "tests/bench/streams/socket_transfer.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "lib/base/bytes.h"
#include "lib/base/trace.h"
#include "lib/os/epoll_loop.h"
#include "tests/bench/cluster/content.h"
#include "tests/bench/streams/kernel_streams.h"

namespace tokamak::bench {
namespace {

using Result = absl::StatusOr<store::Location>;

constexpr uint64_t kArena = 24 << 20;

const verbs::Address& Loopback() {
  static const verbs::Address address = *verbs::Address::Parse("127.0.0.1");
  return address;
}

// A store with memory of its own, and a transfer on it.
struct Side {
  Side(os::EpollLoop& loop, SocketVariant variant, uint64_t seed)
      : memory(new Block[kArena / sizeof(Block)]), store(Arena(), Options(seed), loop, trace), me(store.NewOwner()) {
    auto listening = SocketTransfer::Listen(loop, store, std::make_unique<KernelStreams>(loop, Loopback()), variant);
    EXPECT_TRUE(listening.ok()) << listening.status();
    transfer = *std::move(listening);
  }

  struct alignas(64) Block {
    uint8_t bytes[64];
  };
  absl::Span<uint8_t> Arena() { return absl::MakeSpan(memory[0].bytes, kArena); }
  static store::Options Options(uint64_t seed) {
    store::Options options;
    options.random = base::Random(seed);
    return options;
  }

  void Put(const Content& content, uint64_t size) {
    const auto place = store.Create(content.id(), size, 0, me);
    ASSERT_TRUE(place.ok()) << place.status();
    content.Fill(0, store.Memory(*place));
    ASSERT_TRUE(store.Seal(content.id(), me).ok());
  }
  // With the bytes of `content`, and given back after.
  void ExpectHolds(const Content& content, uint64_t size, const Result& place) {
    ASSERT_TRUE(place.ok()) << place.status();
    ASSERT_EQ(place->data_size, size);
    std::vector<uint8_t> expected(size);
    content.Fill(0, absl::MakeSpan(expected));
    EXPECT_TRUE(store.Bytes(*place) == absl::MakeConstSpan(expected)) << size << " bytes";
    EXPECT_TRUE(store.Release(content.id(), me).ok());
  }
  void ExpectNothingHalf() {
    const store::Statistics statistics = store.statistics();
    EXPECT_EQ(statistics.unsealed_objects, 0u);
    EXPECT_EQ(statistics.pins, 0u);
    EXPECT_EQ(statistics.lost(), 0);
    EXPECT_TRUE(store.CheckConsistency().ok());
  }

  base::NoTrace trace;
  std::unique_ptr<Block[]> memory;
  store::Store store;
  const store::Owner me;
  std::unique_ptr<SocketTransfer> transfer;
};

Content MakeContent(uint32_t number) { return {1, number, 0, {0, 1}}; }

// A peer that is no SocketTransfer: one stream, by hand.
class RawPeer final {
 public:
  RawPeer() : listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(listener_.get(), 1), 0);
    EXPECT_EQ(getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    address_ = Loopback();
    address_.port = ntohs(address.sin_port);
  }

  const verbs::Address& address() const { return address_; }
  void Accept() { stream_ = os::FileDescriptor(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC)); }
  void Send(const std::vector<uint8_t>& bytes) {
    EXPECT_EQ(send(stream_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  }
  void Close() { stream_.Close(); }

 private:
  os::FileDescriptor listener_;
  os::FileDescriptor stream_;
  verbs::Address address_;
};

struct Header {
  uint32_t magic = SocketTransfer::kHeaderMagic;
  uint32_t status = 0;
  base::ObjectId id;
  uint64_t generation = 7;
  uint64_t data_size = 0;
  uint64_t metadata_size = 0;

  std::vector<uint8_t> Bytes() const {
    std::vector<uint8_t> bytes(SocketTransfer::kHeaderSize);
    base::StoreLittle<uint32_t>(&bytes[0], magic);
    base::StoreLittle<uint32_t>(&bytes[4], status);
    std::memcpy(&bytes[8], id.data(), base::ObjectId::kSize);
    base::StoreLittle<uint64_t>(&bytes[28], generation);
    base::StoreLittle<uint64_t>(&bytes[36], data_size);
    base::StoreLittle<uint64_t>(&bytes[44], metadata_size);
    return bytes;
  }
};

class SocketTransferTest : public ::testing::TestWithParam<SocketVariant> {
 protected:
  SocketTransferTest() : holder(std::in_place, loop, GetParam(), 1), puller(std::in_place, loop, GetParam(), 2) {}

  base::Pending Start(const verbs::Address& from, const Content& content, std::optional<Result>* into,
                      base::Duration timeout = base::Seconds(20)) {
    return puller->transfer->Pull(from, content.id(), puller->me, timeout,
                                  [into](const Result& result) { *into = result; });
  }
  bool RunUntil(const std::function<bool()>& done) { return loop.RunUntil(done, loop.Now() + base::Seconds(20)); }

  Result Pull(const verbs::Address& from, const Content& content, base::Duration timeout = base::Seconds(20)) {
    std::optional<Result> result;
    const base::Pending pull = Start(from, content, &result, timeout);
    EXPECT_FALSE(result.has_value()) << "answered inside the call";
    EXPECT_TRUE(RunUntil([&] { return result.has_value(); }));
    return result.value_or(absl::UnknownError("no answer"));
  }
  Result Pull(const Content& content) { return Pull(holder->transfer->address(), content); }

  // Asks a peer that answers with these bytes, and then with nothing more.
  Result AskRaw(const Content& content, const std::vector<uint8_t>& answer, bool then_close) {
    RawPeer peer;
    std::optional<Result> result;
    const base::Pending pull = Start(peer.address(), content, &result);
    peer.Accept();
    peer.Send(answer);
    if (then_close) peer.Close();
    EXPECT_TRUE(RunUntil([&] { return result.has_value(); }));
    return result.value_or(absl::UnknownError("no answer"));
  }

  os::EpollLoop loop;
  std::optional<Side> holder;
  std::optional<Side> puller;
};

TEST_P(SocketTransferTest, ObjectsOfAllSizesArriveWhole) {
  uint32_t number = 0;
  for (const uint64_t size : {0, 1, 55, 4095, 4096, 4097, 300'000, 3'000'001}) {
    const Content content = MakeContent(++number);
    holder->Put(content, size);
    puller->ExpectHolds(content, size, Pull(content));
    EXPECT_EQ(puller->store.Stat(content.id())->location.generation,
              holder->store.Stat(content.id())->location.generation);
    EXPECT_EQ(puller->store.Stat(content.id())->origin, store::Origin::kPulled);
  }
  puller->ExpectNothingHalf();
  holder->ExpectNothingHalf();
}

TEST_P(SocketTransferTest, ManyWaitOnOneStreamAndComeInTheirOrder) {
  std::vector<Content> contents;
  std::vector<base::Pending> pulls;
  std::vector<uint32_t> order;
  std::vector<std::optional<Result>> results(100);
  for (uint32_t i = 0; i < 100; ++i) {
    contents.push_back(MakeContent(i));
    holder->Put(contents.back(), i * 100);
    pulls.push_back(puller->transfer->Pull(holder->transfer->address(), contents[i].id(), puller->me, base::Seconds(20),
                                           [&results, &order, i](const Result& result) {
                                             results[i] = result;
                                             order.push_back(i);
                                           }));
  }
  ASSERT_TRUE(RunUntil([&] { return order.size() == 100; }));
  for (uint32_t i = 0; i < 100; ++i) {
    EXPECT_EQ(order[i], i);
    puller->ExpectHolds(contents[i], i * 100, *results[i]);
  }
}

TEST_P(SocketTransferTest, BothMayPullFromEachOtherAtATime) {
  const Content here = MakeContent(1), there = MakeContent(2);
  puller->Put(here, 2'000'000);
  holder->Put(there, 2'000'000);
  std::optional<Result> mine, other;
  const base::Pending pull = Start(holder->transfer->address(), there, &mine);
  const base::Pending back = holder->transfer->Pull(puller->transfer->address(), here.id(), holder->me,
                                                    base::Seconds(20), [&](const Result& result) { other = result; });
  ASSERT_TRUE(RunUntil([&] { return mine.has_value() && other.has_value(); }));
  puller->ExpectHolds(there, 2'000'000, *mine);
  holder->ExpectHolds(here, 2'000'000, *other);
}

TEST_P(SocketTransferTest, AnObjectThatThePeerLacksIsNotFoundAndHarmsNoOther) {
  const Content there = MakeContent(1), missing = MakeContent(2);
  holder->Put(there, 100);
  EXPECT_EQ(Pull(missing).status().code(), absl::StatusCode::kNotFound);
  puller->ExpectHolds(there, 100, Pull(there));
}

TEST_P(SocketTransferTest, APullWithoutAListenerFails) {
  const verbs::Address gone = holder->transfer->address();
  holder.reset();
  const Result result = Pull(gone, MakeContent(1));
  EXPECT_EQ(result.status().code(), absl::StatusCode::kUnavailable) << result.status();
}

TEST_P(SocketTransferTest, APeerThatDiesInTheMiddleLeavesNoPartialObject) {
  const Content content = MakeContent(1), next = MakeContent(2);
  holder->Put(content, 20'000'000);
  std::optional<Result> result, waiting;
  const base::Pending pull = Start(holder->transfer->address(), content, &result);
  const base::Pending second = Start(holder->transfer->address(), next, &waiting);
  ASSERT_TRUE(RunUntil([&] { return puller->store.statistics().unsealed_objects == 1; }));
  holder.reset();
  ASSERT_TRUE(RunUntil([&] { return result.has_value() && waiting.has_value(); }));
  EXPECT_EQ(result->status().code(), absl::StatusCode::kUnavailable) << result->status();
  EXPECT_EQ(waiting->status().code(), absl::StatusCode::kUnavailable) << waiting->status();
  puller->ExpectNothingHalf();
}

TEST_P(SocketTransferTest, APullerThatDiesInTheMiddleLeavesNoPin) {
  const Content content = MakeContent(1);
  holder->Put(content, 20'000'000);
  std::optional<Result> result;
  base::Pending pull = Start(holder->transfer->address(), content, &result);
  ASSERT_TRUE(RunUntil([&] { return puller->store.statistics().unsealed_objects == 1; }));
  EXPECT_EQ(holder->store.statistics().pins, 1u);
  puller.reset();
  EXPECT_TRUE(RunUntil([&] { return holder->store.statistics().pins == 0; }));
  EXPECT_FALSE(result.has_value());
}

TEST_P(SocketTransferTest, DroppingAPullEndsItAtBothEnds) {
  const Content content = MakeContent(1), other = MakeContent(2);
  holder->Put(content, 20'000'000);
  holder->Put(other, 64);
  std::optional<Result> result, beside;
  base::Pending pull = Start(holder->transfer->address(), content, &result);
  const base::Pending second = Start(holder->transfer->address(), other, &beside);
  ASSERT_TRUE(RunUntil([&] { return puller->store.statistics().unsealed_objects == 1; }));
  pull.reset();
  ASSERT_TRUE(RunUntil([&] { return beside.has_value() && holder->store.statistics().pins == 0; }));
  EXPECT_FALSE(result.has_value());
  EXPECT_EQ(beside->status().code(), absl::StatusCode::kAborted);
  puller->ExpectNothingHalf();
  puller->ExpectHolds(other, 64, Pull(other));  // over a new stream
}

TEST_P(SocketTransferTest, AnUnclaimedAnswerReturnsItsPin) {
  const Content content = MakeContent(1);
  holder->Put(content, 64);
  std::optional<Result> result;
  base::Pending pull = Start(holder->transfer->address(), content, &result);
  ASSERT_TRUE(RunUntil([&] { return puller->store.Contains(content.id()); }));
  pull.reset();
  loop.RunUntil([] { return false; }, loop.Now() + base::Milliseconds(1));
  puller->ExpectNothingHalf();
}

TEST_P(SocketTransferTest, ASilentPeerIsGivenUpAtTheDeadline) {
  RawPeer silent;
  const base::Time began = loop.Now();
  const Result result = Pull(silent.address(), MakeContent(1), base::Milliseconds(50));
  EXPECT_EQ(result.status().code(), absl::StatusCode::kDeadlineExceeded) << result.status();
  EXPECT_GE(loop.Now() - began, base::Milliseconds(50));
}

TEST_P(SocketTransferTest, AMalformedHeaderEndsTheStream) {
  const Content content = MakeContent(1);
  Header good;
  good.id = content.id();
  good.data_size = 64;
  std::vector<Header> all(6, good);
  all[0].magic = 0x47455420;
  all[1].id = MakeContent(2).id();
  all[2].status = 3;
  all[3].generation = 0;
  all[4].data_size = UINT64_MAX;
  all[5].metadata_size = UINT64_MAX - 63;  // with the data it makes nothing
  for (const Header& header : all) {
    const Result result = AskRaw(content, header.Bytes(), /*then_close=*/false);
    EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument) << result.status();
    EXPECT_NE(result.status().message().find("is that a node of this benchmark?"), absl::string_view::npos);
    puller->ExpectNothingHalf();
  }
}

TEST_P(SocketTransferTest, AnObjectThatHasNoRoomIsRefused) {
  const Content content = MakeContent(1);
  Header header;
  header.id = content.id();
  header.data_size = 2 * kArena;
  const Result result = AskRaw(content, header.Bytes(), /*then_close=*/false);
  EXPECT_EQ(result.status().code(), absl::StatusCode::kResourceExhausted) << result.status();
  puller->ExpectNothingHalf();
}

TEST_P(SocketTransferTest, AStreamThatEndsWithinAHeaderOrAnObjectFails) {
  const Content content = MakeContent(1);
  Header header;
  header.id = content.id();
  header.data_size = 5000;
  std::vector<uint8_t> bytes = header.Bytes();
  for (const size_t length : {size_t{0}, size_t{10}, bytes.size(), bytes.size() + 4999}) {
    bytes.resize(length);
    const Result result = AskRaw(content, bytes, /*then_close=*/true);
    EXPECT_EQ(result.status().code(), absl::StatusCode::kUnavailable) << length;
    puller->ExpectNothingHalf();
    bytes = header.Bytes();
  }
}

TEST_P(SocketTransferTest, AnUnrequestedAnswerEndsTheStream) {
  const Content content = MakeContent(1), other = MakeContent(2);
  RawPeer peer;
  std::optional<Result> result;
  base::Pending pull = Start(peer.address(), content, &result);
  peer.Accept();
  Header header;
  header.id = content.id();
  peer.Send(header.Bytes());
  ASSERT_TRUE(RunUntil([&] { return result.has_value(); }));
  puller->ExpectHolds(content, 0, *result);
  header.id = other.id();
  peer.Send(header.Bytes());
  loop.RunUntil([] { return false; }, loop.Now() + base::Milliseconds(1));
  EXPECT_FALSE(puller->store.Contains(other.id()));
}

TEST_P(SocketTransferTest, AMalformedRequestEndsOnlyItsStream) {
  const Content content = MakeContent(1);
  holder->Put(content, 64);
  const os::FileDescriptor stranger(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(holder->transfer->address().port);
  ASSERT_EQ(connect(stranger.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  const std::string words = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
  ASSERT_EQ(send(stranger.get(), words.data(), words.size(), MSG_NOSIGNAL), static_cast<ssize_t>(words.size()));
  char byte = 0;
  ssize_t got = -1;
  ASSERT_TRUE(RunUntil([&] {
    got = recv(stranger.get(), &byte, 1, MSG_DONTWAIT);
    return got == 0 || errno == ECONNRESET;
  }));
  EXPECT_LE(got, 0);
  puller->ExpectHolds(content, 64, Pull(content));
}

INSTANTIATE_TEST_SUITE_P(Variants, SocketTransferTest,
                         ::testing::Values(SocketVariant::kOriginal, SocketVariant::kTuned),
                         [](const auto& one) { return one.param == SocketVariant::kOriginal ? "Original" : "Tuned"; });

}  // namespace
}  // namespace tokamak::bench
