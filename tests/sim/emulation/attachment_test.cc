// Outside hosts on sockets of the test's own, a fabric in virtual time, and an I/O loop that the
// test runs.
#include "sim/emulation/attachment.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "lib/base/check.h"
#include "lib/os/epoll_loop.h"
#include "sim/fabric/switched_fabric.h"
#include "sim/fabric/topology/generators.h"
#include "sim/time/sim_loop.h"
#include "tests/sim/emulation/frame_bytes.h"

namespace tokamak::sim {
namespace {

// Runs its tasks when the test asks for it.
class FakeTime final : public RealTime {
 public:
  explicit FakeTime(base::EventLoop& loop) : loop_(loop) {}
  base::EventLoop& loop() override { return loop_; }
  void Hand(base::Task task) override { handed.push_back(std::move(task)); }
  base::Duration lag() const override { return base::Microseconds(7); }

  std::vector<base::Task> handed;

 private:
  base::EventLoop& loop_;
};

class AttachmentTest : public testing::Test {
 protected:
  void Build(const GeneratorOptions& options = {}, const LossOptions& loss = {}, uint64_t queue = 1 << 20) {
    Topology topology = Pair(options);
    topology.cables[0].loss[0] = loss;
    fabric_ = *SwitchedFabric::Build(loop_, topology, {}, nullptr);
    for (uint32_t i = 0; i < 2; ++i) {
      int ends[2];
      PCHECK(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
      hosts_[i] = os::FileDescriptor(ends[0]);
      const os::FileDescriptor theirs(ends[1]);
      AttachPoint point;
      point.descriptor = theirs.get();
      attachments_[i] = std::make_unique<Attachment>("host", *OutsideDevice::Open(point), time_, lag_);
      ASSERT_TRUE(attachments_[i]->PlugIn(fabric_->interface_at(i), queue).ok());
      attachments_[i]->Watch(io_);
    }
  }

  void TearDown() override {
    for (auto& attachment : attachments_) attachment->Unwatch();
  }

  void HostSends(uint32_t host, const std::vector<uint8_t>& frame) {
    ASSERT_EQ(write(hosts_[host].get(), frame.data(), frame.size()), static_cast<ssize_t>(frame.size()));
  }

  // As fast as its socket and the I/O take them.
  void HostSendsMany(uint32_t host, const std::vector<uint8_t>& frame, size_t count) {
    while (count > 0) {
      if (write(hosts_[host].get(), frame.data(), frame.size()) > 0) {
        --count;
      } else {
        RunIo();
      }
    }
    RunIo();
  }

  void RunIo() {
    io_.RunUntil([] { return false; }, io_.Now() + base::Milliseconds(1));
  }
  void RunFabric() {
    for (base::Task& task : std::exchange(time_.handed, {})) task();
    scheduler_.RunFor(base::Milliseconds(10));
  }
  void RunAll() {
    RunIo();
    RunFabric();
    RunIo();
  }

  // Empty: nothing has come.
  std::vector<uint8_t> HostGets(uint32_t host) {
    std::vector<uint8_t> frame(10000);
    const ssize_t length = read(hosts_[host].get(), frame.data(), frame.size());
    frame.resize(static_cast<size_t>(std::max<ssize_t>(length, 0)));
    return frame;
  }

  const AttachmentCounters& counters(uint32_t host) const { return attachments_[host]->counters(); }
  uint64_t entered(uint32_t host, FrameKind kind) const { return counters(host).entered[static_cast<size_t>(kind)]; }

  Scheduler scheduler_;
  SimLoop loop_{scheduler_};
  FakeTime time_{loop_};
  LagMeter lag_;
  std::unique_ptr<SwitchedFabric> fabric_;
  os::EpollLoop io_;
  os::FileDescriptor hosts_[2];
  std::unique_ptr<Attachment> attachments_[2];
};

TEST_F(AttachmentTest, FramesPassUnchanged) {
  Build();
  const auto arp = ArpFrame();
  const auto tcp = Ipv4Frame(kProtocolTcp, 80, 1000);
  const auto roce = Ipv4Frame(kProtocolUdp, 4791, 4000, 2);
  for (const auto& frame : {arp, tcp, roce}) HostSends(0, frame);
  RunAll();
  for (const auto& frame : {arp, tcp, roce}) EXPECT_EQ(HostGets(1), frame);
  EXPECT_EQ(entered(0, FrameKind::kArp), 1u);
  EXPECT_EQ(entered(0, FrameKind::kIpv4), 1u);
  EXPECT_EQ(entered(0, FrameKind::kRoce), 1u);
  EXPECT_EQ(counters(1).delivered, 3u);
  EXPECT_EQ(counters(1).delivered_bytes, arp.size() + tcp.size() + roce.size());
  EXPECT_GT(lag_.Total().samples, 0u);
  EXPECT_EQ(lag_.Total().most, base::Microseconds(7));
}

TEST_F(AttachmentTest, OneTaskIsHandedForAllFramesThatCameTogether) {
  Build();
  for (int i = 0; i < 5; ++i) HostSends(0, Ipv4Frame(kProtocolUdp, 53, 10));
  RunIo();
  EXPECT_EQ(time_.handed.size(), 1u);
  RunAll();
  EXPECT_EQ(counters(1).delivered, 5u);
  HostSends(0, Ipv4Frame(kProtocolUdp, 53, 10));
  RunIo();
  EXPECT_EQ(time_.handed.size(), 1u) << "the next ones are handed anew";
}

TEST_F(AttachmentTest, ForeignFramesAreCounted) {
  Build();
  auto elsewhere = Ipv4Frame(kProtocolUdp, 53, 10);
  elsewhere[kEthernetHeader + 19] = 77;
  auto ipv6 = elsewhere;
  base::StoreBig16(&ipv6[12], 0x86dd);
  HostSends(0, elsewhere);
  HostSends(0, ipv6);
  HostSends(0, std::vector<uint8_t>(kEthernetHeader + kOutsideMtu + 1));
  RunAll();
  EXPECT_EQ(counters(0).nobody, 1u);
  EXPECT_EQ(counters(0).not_carried, 1u);
  EXPECT_EQ(counters(0).too_long, 1u);
  EXPECT_EQ(HostGets(1).size(), 0u);
}

TEST_F(AttachmentTest, AHostThatSendsFasterThanItsLinkIsHeldUpAndLosesNothing) {
  GeneratorOptions slow;
  slow.host.rate = Rate::Gigabits(1);
  Build(slow, {}, Attachment::kLeastQueue);
  const auto frame = Ipv4Frame(kProtocolUdp, 53, 1000);
  for (int i = 0; i < 40; ++i) HostSends(0, frame);
  RunIo();
  for (base::Task& task : std::exchange(time_.handed, {})) task();
  EXPECT_EQ(counters(0).held_up, 1u);
  EXPECT_LE(fabric_->interface_at(0).egress().queue(0).bytes(), Attachment::kLeastQueue);
  RunAll();
  EXPECT_EQ(entered(0, FrameKind::kIpv4), 40u);
  EXPECT_EQ(counters(1).delivered, 40u);
}

TEST_F(AttachmentTest, AHostIsNotReadWhileTheSimulationStandsStill) {
  Build();
  const auto frame = Ipv4Frame(kProtocolUdp, 53, 10);
  size_t sent = 0;
  // The ring, one more, and what its socket holds.
  for (int idle = 0; idle < 10; ++idle) {
    while (write(hosts_[0].get(), frame.data(), frame.size()) > 0) {
      ++sent;
      idle = 0;
      ASSERT_LT(sent, 100000u);
    }
    RunIo();
  }
  EXPECT_GT(sent, Attachment::kEntering);
  EXPECT_EQ(time_.handed.size(), 1u);
  for (int i = 0; i < 1000 && counters(1).delivered < sent; ++i) RunAll();
  EXPECT_EQ(counters(1).delivered, sent) << "and nothing is lost";
}

TEST_F(AttachmentTest, UnreadFramesAreKeptThenDroppedAndCounted) {
  Build();
  size_t sent = 0;
  const auto frame = Ipv4Frame(kProtocolUdp, 53, 10);
  while (counters(1).leaving_full == 0 && sent < 100000) {
    HostSendsMany(0, frame, 64);
    sent += 64;
    RunAll();
  }
  EXPECT_GT(counters(1).leaving_full, 0u);
  size_t got = 0;
  for (size_t before = SIZE_MAX; got != before;) {
    before = got;
    while (HostGets(1).size() == frame.size()) ++got;
    RunIo();
  }
  EXPECT_EQ(got, sent - counters(1).leaving_full) << "all others are there once the host reads";
}

TEST_F(AttachmentTest, DamagedRoceGoesOnWithAWrongIcrcAndOtherFramesDoNot) {
  LossOptions loss;
  loss.corrupt = 1;
  Build({}, loss);
  const auto roce = Ipv4Frame(kProtocolUdp, 4791, 100);
  HostSends(0, Ipv4Frame(kProtocolTcp, 80, 100));
  HostSends(0, roce);
  RunAll();
  auto damaged = roce;
  DamageRoce(absl::MakeSpan(damaged));
  EXPECT_EQ(HostGets(1), damaged);
  EXPECT_NE(damaged, roce);
  EXPECT_EQ(HostGets(1).size(), 0u);
  EXPECT_EQ(counters(1).damaged, 2u);
  EXPECT_EQ(counters(1).delivered, 1u);
}

TEST_F(AttachmentTest, AFrameThatItsSenderMarkedStaysMarked) {
  Build();
  const auto marked = Ipv4Frame(kProtocolUdp, 4791, 100, 3);
  HostSends(0, marked);
  RunAll();
  EXPECT_EQ(HostGets(1), marked);
  EXPECT_EQ(counters(1).delivered_marked, 1u);
}

}  // namespace
}  // namespace tokamak::sim
