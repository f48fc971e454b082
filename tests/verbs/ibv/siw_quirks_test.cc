// SoftiWARP's differences from the promises of libibverbs (lib/verbs/ibv/translation/quirks.h),
// seen through libibverbs and librdmacm alone. A case that fails shows that the kernel or the
// library has fixed it: then the quirk, and our workaround, may go.
#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <rdma/rdma_cma.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/faults/wire.h"

namespace tokamak::verbs::ibv {
namespace {

constexpr int kSiwPatience = 20000;  // milliseconds
constexpr int kLookOn = 300;         // milliseconds
constexpr int kTries = 20;
constexpr size_t kSize = 4000;

// Longer than a socket holds, and takes seconds.
constexpr size_t kLongWrite = 8 << 20;
constexpr char kSlow[] = "rate 20mbit";

// The message of a failure.
std::string Mended(const std::string& quirk) {
  return "mended: Quirks::" + quirk + " may go, once all its cases here say so";
}

bool Spin(const std::function<bool()>& done) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(kSiwPatience);
  while (!done()) {
    if (std::chrono::steady_clock::now() > until) return false;
  }
  return true;
}

// The next event of the channel, which must be `type`; the id that it is about.
rdma_cm_id* Expect(rdma_event_channel* channel, rdma_cm_event_type type) {
  pollfd readable = {channel->fd, POLLIN, 0};
  rdma_cm_event* event = nullptr;
  if (poll(&readable, 1, kSiwPatience) != 1 || rdma_get_cm_event(channel, &event) != 0) {
    ADD_FAILURE() << "no event where this one was expected: " << rdma_event_str(type);
    return nullptr;
  }
  EXPECT_EQ(event->event, type) << rdma_event_str(event->event) << ", status " << event->status;
  rdma_cm_id* const id = event->id;
  rdma_ack_cm_event(event);
  return id;
}

// One end of a connection: a queue pair of one place for sends, so that each is put where the one
// before was.
struct SiwEnd {
  ~SiwEnd() {
    if (id != nullptr && id->qp != nullptr) rdma_destroy_qp(id);
    if (queue != nullptr) ibv_destroy_cq(queue);
    if (events != nullptr) ibv_destroy_comp_channel(events);
    if (domain != nullptr) ibv_dealloc_pd(domain);
    if (id != nullptr) rdma_destroy_id(id);
  }

  void Prepare() {
    domain = ibv_alloc_pd(id->verbs);
    events = ibv_create_comp_channel(id->verbs);
    queue = ibv_create_cq(id->verbs, 16, nullptr, events, 0);
    ASSERT_NE(queue, nullptr);
    ibv_qp_init_attr wanted{};
    wanted.send_cq = wanted.recv_cq = queue;
    wanted.qp_type = IBV_QPT_RC;
    wanted.cap = {1, 1, 1, 1, 0};
    ASSERT_EQ(rdma_create_qp(id, domain, &wanted), 0);
  }

  ibv_wc_status Await() {
    ibv_wc done{};
    EXPECT_TRUE(Spin([&] { return ibv_poll_cq(queue, 1, &done) == 1; }));
    return done.status;
  }

  rdma_cm_id* id = nullptr;
  ibv_pd* domain = nullptr;
  ibv_comp_channel* events = nullptr;
  ibv_cq* queue = nullptr;
};

class Region final {
 public:
  Region(const SiwEnd& end, uint8_t fill, int access, size_t size = kSize)
      : bytes_(size, fill), region_(ibv_reg_mr(end.domain, bytes_.data(), size, access), ibv_dereg_mr) {
    EXPECT_NE(region_, nullptr);
  }

  // Deregisters; the memory stays.
  void Drop() { region_.reset(); }
  void Fill(uint8_t byte) { std::fill(bytes_.begin(), bytes_.end(), byte); }

  uint8_t first() const { return *static_cast<const volatile uint8_t*>(&bytes_.front()); }
  uint8_t last() const { return *static_cast<const volatile uint8_t*>(&bytes_.back()); }
  bool IsAll(uint8_t byte) const {
    const volatile uint8_t* const bytes = bytes_.data();
    return std::all_of(bytes, bytes + bytes_.size(), [=](uint8_t there) { return there == byte; });
  }
  ibv_sge piece() {
    return {reinterpret_cast<uint64_t>(bytes_.data()), static_cast<uint32_t>(bytes_.size()), region_->lkey};
  }
  uint64_t address() const { return reinterpret_cast<uint64_t>(bytes_.data()); }
  uint32_t rkey() const { return region_->rkey; }

 private:
  std::vector<uint8_t> bytes_;
  std::unique_ptr<ibv_mr, int (*)(ibv_mr*)> region_;
};

constexpr int kAll = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;

class SiwQuirksTest : public testing::Test {
 protected:
  ~SiwQuirksTest() override {
    if (listener_ != nullptr) rdma_destroy_id(listener_);
  }

  void SetUp() override {
    ASSERT_STREQ(std::getenv("TOKAMAK_LAB_KIND"), "siw") << "it runs in the lab's guest";
    std::istringstream addresses(std::getenv("TOKAMAK_LAB_ADDRESSES"));
    std::string first, second;
    ASSERT_TRUE(addresses >> first >> second);
    sockaddr_in here = ToAddress(first), there = ToAddress(second);

    ASSERT_EQ(rdma_create_id(channel_.get(), &listener_, nullptr, RDMA_PS_TCP), 0);
    ASSERT_EQ(rdma_bind_addr(listener_, reinterpret_cast<sockaddr*>(&there)), 0);
    ASSERT_EQ(rdma_listen(listener_, 1), 0);
    there.sin_port = rdma_get_src_port(listener_);

    ASSERT_TRUE(Resolve(here, there));
    ASSERT_EQ(rdma_resolve_route(active_.id, kSiwPatience), 0);
    Expect(active_channel_.get(), RDMA_CM_EVENT_ROUTE_RESOLVED);
    ASSERT_NO_FATAL_FAILURE(active_.Prepare());
    rdma_conn_param parameters{};
    parameters.responder_resources = parameters.initiator_depth = 1;
    ASSERT_EQ(rdma_connect(active_.id, &parameters), 0);
    passive_.id = Expect(channel_.get(), RDMA_CM_EVENT_CONNECT_REQUEST);
    ASSERT_NE(passive_.id, nullptr);
    ASSERT_NO_FATAL_FAILURE(passive_.Prepare());
    ASSERT_EQ(rdma_accept(passive_.id, &parameters), 0);
    Expect(active_channel_.get(), RDMA_CM_EVENT_ESTABLISHED);
    Expect(channel_.get(), RDMA_CM_EVENT_ESTABLISHED);
  }

  // The first questions may be lost, when the devices are new.
  bool Resolve(sockaddr_in here, sockaddr_in there) {
    for (int tries = 0; tries < kTries; ++tries) {
      if (rdma_create_id(active_channel_.get(), &active_.id, nullptr, RDMA_PS_TCP) != 0) return false;
      if (rdma_resolve_addr(active_.id, reinterpret_cast<sockaddr*>(&here), reinterpret_cast<sockaddr*>(&there),
                            kSiwPatience / kTries) != 0) {
        return false;
      }
      rdma_cm_event* event = nullptr;
      if (rdma_get_cm_event(active_channel_.get(), &event) != 0) return false;  // it comes in the time given above
      const rdma_cm_event_type type = event->event;
      rdma_ack_cm_event(event);
      if (type == RDMA_CM_EVENT_ADDR_RESOLVED) return true;
      rdma_destroy_id(active_.id);
      active_.id = nullptr;
    }
    return false;
  }

  // Signaled.
  void Post(ibv_wr_opcode opcode, Region* here, const Region* there, unsigned int flags = 0) {
    ibv_sge piece = here == nullptr ? ibv_sge{} : here->piece();
    ibv_send_wr request{};
    request.opcode = opcode;
    request.send_flags = IBV_SEND_SIGNALED | flags;
    request.sg_list = &piece;
    request.num_sge = here == nullptr ? 0 : 1;
    if (there != nullptr) {
      request.wr.rdma.remote_addr = there->address();
      request.wr.rdma.rkey = there->rkey();
    }
    ibv_send_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_send(active_.id->qp, &request, &bad), 0);
  }

  void PostReceive(Region* there) {
    ibv_sge piece = there->piece();
    ibv_recv_wr receive{};
    receive.sg_list = &piece;
    receive.num_sge = 1;
    ibv_recv_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_recv(passive_.id->qp, &receive, &bad), 0);
  }

  // Posts what brings bytes of `source` into `sink` over a slow wire, and returns when the first
  // are there and the last are not.
  void Begin(ibv_wr_opcode opcode, Region* here, const Region* there, const Region& source, const Region& sink) {
    auto slow = faults::Netem::Start({"v0", "v1"}, kSlow);
    ASSERT_TRUE(slow.ok()) << slow.status();
    slow_ = *std::move(slow);
    ASSERT_NO_FATAL_FAILURE(Post(opcode, here, there));
    ASSERT_TRUE(Spin([&] { return sink.first() == source.first(); }));
    ASSERT_NE(sink.last(), source.last()) << "it was faster";
  }

  static sockaddr_in ToAddress(const std::string& text) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    EXPECT_EQ(inet_pton(AF_INET, text.c_str(), &address.sin_addr), 1) << text;
    return address;
  }

  using Channel = std::unique_ptr<rdma_event_channel, void (*)(rdma_event_channel*)>;
  const Channel channel_{rdma_create_event_channel(), rdma_destroy_event_channel};
  const Channel active_channel_{rdma_create_event_channel(), rdma_destroy_event_channel};
  rdma_cm_id* listener_ = nullptr;
  SiwEnd active_, passive_;
  std::unique_ptr<faults::Netem> slow_;
};

// Quirks::needs_a_piece
TEST_F(SiwQuirksTest, AReadWithoutPiecesReadsIntoThoseOfAnOlderRequest) {
  Region older(active_, 1, kAll), there(passive_, 2, kAll), sink(passive_, 3, kAll);
  Post(IBV_WR_RDMA_WRITE, &older, &sink);
  EXPECT_EQ(active_.Await(), IBV_WC_SUCCESS);
  Post(IBV_WR_RDMA_READ, nullptr, &there);
  EXPECT_EQ(active_.Await(), IBV_WC_SUCCESS);
  EXPECT_TRUE(older.IsAll(2)) << Mended("needs_a_piece");
}

// Quirks::reads_any_region
TEST_F(SiwQuirksTest, ARegionWithoutRemoteReadIsRead) {
  Region here(active_, 1, kAll), there(passive_, 2, IBV_ACCESS_LOCAL_WRITE);
  Post(IBV_WR_RDMA_READ, &here, &there);
  EXPECT_EQ(active_.Await(), IBV_WC_SUCCESS) << Mended("reads_any_region");
  EXPECT_TRUE(here.IsAll(2));
}

// Quirks::ignores_queue_pair_rights
TEST_F(SiwQuirksTest, AQueuePairWithoutTheRightLetsWritesAndReadsThrough) {
  Region here(active_, 1, kAll), there(passive_, 2, kAll), back(active_, 3, kAll);
  ibv_qp_attr none{};
  ASSERT_EQ(ibv_modify_qp(passive_.id->qp, &none, IBV_QP_ACCESS_FLAGS), 0);
  Post(IBV_WR_RDMA_WRITE, &here, &there);
  EXPECT_EQ(active_.Await(), IBV_WC_SUCCESS);
  Post(IBV_WR_RDMA_READ, &back, &there);
  EXPECT_EQ(active_.Await(), IBV_WC_SUCCESS) << Mended("ignores_queue_pair_rights");
  EXPECT_TRUE(there.IsAll(1)) << Mended("ignores_queue_pair_rights");
  EXPECT_TRUE(back.IsAll(1));
}

// Quirks::forgets_solicited
TEST_F(SiwQuirksTest, ASolicitedReceiveRaisesNoEvent) {
  Region here(active_, 1, kAll), there(passive_, 2, kAll);
  PostReceive(&there);
  ASSERT_EQ(ibv_req_notify_cq(passive_.queue, /*solicited_only=*/1), 0);
  Post(IBV_WR_SEND, &here, nullptr, IBV_SEND_SOLICITED);
  EXPECT_EQ(passive_.Await(), IBV_WC_SUCCESS);
  pollfd readable = {passive_.events->fd, POLLIN, 0};
  EXPECT_EQ(poll(&readable, 1, kLookOn), 0) << Mended("forgets_solicited");
}

// Quirks::finishes_what_has_begun
TEST_F(SiwQuirksTest, AReadThatHasBegunGoesOnIntoARegionThatWasDropped) {
  Region sink(active_, 1, kAll, kLongWrite), source(passive_, 2, kAll, kLongWrite);
  ASSERT_NO_FATAL_FAILURE(Begin(IBV_WR_RDMA_READ, &sink, &source, source, sink));
  sink.Drop();
  sink.Fill(3);
  EXPECT_EQ(active_.Await(), IBV_WC_SUCCESS) << Mended("finishes_what_has_begun");
  EXPECT_EQ(sink.last(), 2) << Mended("finishes_what_has_begun");
}

TEST_F(SiwQuirksTest, AReadThatHasBegunGoesOnOutOfARegionThatWasDropped) {
  Region sink(active_, 1, kAll, kLongWrite), source(passive_, 2, kAll, kLongWrite);
  ASSERT_NO_FATAL_FAILURE(Begin(IBV_WR_RDMA_READ, &sink, &source, source, sink));
  source.Drop();
  source.Fill(3);
  EXPECT_EQ(active_.Await(), IBV_WC_SUCCESS) << Mended("finishes_what_has_begun");
  EXPECT_EQ(sink.last(), 3) << Mended("finishes_what_has_begun");
}

TEST_F(SiwQuirksTest, AWriteThatHasBegunGoesOnOutOfARegionThatWasDropped) {
  Region source(active_, 1, kAll, kLongWrite), sink(passive_, 2, kAll, kLongWrite);
  ASSERT_NO_FATAL_FAILURE(Begin(IBV_WR_RDMA_WRITE, &source, &sink, source, sink));
  source.Drop();
  source.Fill(3);
  EXPECT_EQ(active_.Await(), IBV_WC_SUCCESS) << Mended("finishes_what_has_begun");
  EXPECT_TRUE(Spin([&] { return sink.last() == 3; })) << Mended("finishes_what_has_begun");
}

TEST_F(SiwQuirksTest, ASendThatHasBegunGoesOnOutOfARegionThatWasDropped) {
  Region source(active_, 1, kAll, kLongWrite), sink(passive_, 2, kAll, kLongWrite);
  PostReceive(&sink);
  ASSERT_NO_FATAL_FAILURE(Begin(IBV_WR_SEND, &source, nullptr, source, sink));
  source.Drop();
  source.Fill(3);
  EXPECT_EQ(passive_.Await(), IBV_WC_SUCCESS) << Mended("finishes_what_has_begun");
  EXPECT_EQ(sink.last(), 3) << Mended("finishes_what_has_begun");
}

// No quirk, but what siw keeps of that promise, and the transport counts on. (Once the connection
// has ended the last piece is placed.)
TEST_F(SiwQuirksTest, APeersWriteStopsWhenItsRegionIsDropped) {
  Region source(active_, 1, kAll, kLongWrite), sink(passive_, 2, kAll, kLongWrite);
  ASSERT_NO_FATAL_FAILURE(Begin(IBV_WR_RDMA_WRITE, &source, &sink, source, sink));
  sink.Drop();
  Expect(channel_.get(), RDMA_CM_EVENT_DISCONNECTED);
  sink.Fill(3);
  poll(nullptr, 0, kLookOn);
  EXPECT_TRUE(sink.IsAll(3));
}

}  // namespace
}  // namespace tokamak::verbs::ibv
