// The fabrics of one machine: ports at their own addresses and several at one, in one loop, with
// and without a wire.
#include "lib/verbs/soft/shm/shm_fabric.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "lib/os/epoll_loop.h"
#include "lib/os/file_descriptor.h"
#include "lib/os/shared_memory.h"
#include "lib/os/sockets/passed_descriptors.h"
#include "lib/verbs/soft/cm/mad.h"
#include "lib/verbs/soft/shared/shared_address_fabric.h"
#include "lib/verbs/soft/shm/link.h"
#include "lib/verbs/soft/shm/names.h"
#include "lib/verbs/soft/shm/packet_record.h"
#include "lib/verbs/soft/shm/ring.h"

namespace tokamak::verbs::soft {
namespace {

using Bytes = std::vector<uint8_t>;

struct Received {
  Packet packet;
  Bytes payload;
};

// A port that keeps what arrives.
template <typename Kind>
class Station final {
 public:
  Station(os::EpollLoop& loop, const char* address) : fabric_(loop) {
    auto port = fabric_.Open(loop, Address::Parse(address).value(),
                             {[this](absl::Span<const Packet> packets) {
                                for (const Packet& packet : packets) Take(packet);
                              },
                              [this] { ++ready; }});
    EXPECT_TRUE(port.ok()) << port.status();
    port_ = *std::move(port);
  }

  Port& port() { return *port_; }
  // One of the numbers that are this one's.
  uint32_t Number(uint32_t drawn) const { return port_->numbers().Place(drawn, kQueuePairNumberBits); }
  const std::vector<Received>& received() const { return received_; }
  void Unplug() { port_.reset(); }

  int ready = 0;

 private:
  void Take(const Packet& packet) {
    received_.push_back({packet, {}});
    for (const PayloadSlice& slice : packet.pieces()) {
      received_.back().payload.insert(received_.back().payload.end(), slice.data, slice.data + slice.length);
    }
  }

  Kind fabric_;
  std::vector<Received> received_;
  std::unique_ptr<Port> port_;
};

template <typename Kind>
class OneMachineTest : public testing::Test {
 protected:
  using Nic = Station<Kind>;

  static Packet Make(const Nic& to, const char* address, const Bytes& payload) {
    Packet packet;
    packet.opcode = PacketOpcode::kSendOnly;
    packet.destination = to.Number(77);
    packet.peer.ip = Address::Parse(address)->ip;
    packet.slices = 1;
    packet.payload[0] = {payload.data(), static_cast<uint32_t>(payload.size())};
    return packet;
  }

  Packet MakeMad(const Mad& mad, const char* address) {
    bytes_.push_back(std::make_unique<MadBytes>(EncodeMad(mad)));
    Packet packet;
    packet.opcode = PacketOpcode::kDatagramSendOnly;
    packet.destination = kManagementQueuePair;
    packet.qkey = kManagementQkey;
    packet.source_queue_pair = kManagementQueuePair;
    packet.peer.ip = Address::Parse(address)->ip;
    packet.slices = 1;
    packet.payload[0] = {bytes_.back()->data(), kMadLength};
    return packet;
  }

  bool WaitFor(const std::function<bool()>& done) { return loop.RunUntil(done, loop.Now() + base::Seconds(20)); }

  os::EpollLoop loop;

 private:
  std::vector<std::unique_ptr<MadBytes>> bytes_;
};

using Kinds = testing::Types<ShmFabric, SharedAddressFabric>;
TYPED_TEST_SUITE(OneMachineTest, Kinds);

constexpr char kHere[] = "127.0.0.1";
constexpr char kThere[] = "127.0.0.2";

TYPED_TEST(OneMachineTest, PacketsReachTheNicWhoseNumberTheyHave) {
  typename TestFixture::Nic first(this->loop, kHere), second(this->loop, kHere), third(this->loop, kHere);
  typename TestFixture::Nic far(this->loop, kThere);
  const Bytes payload(3000, 9);
  for (auto* from : {&first, &second, &third, &far}) {
    for (auto* to : {&first, &second, &third}) {
      const size_t before = to->received().size();
      const Packet packet = this->Make(*to, kHere, payload);
      ASSERT_EQ(from->port().Send({&packet, 1}), 1u);
      ASSERT_TRUE(this->WaitFor([&] { return to->received().size() > before; }));
      EXPECT_EQ(to->received().back().payload, payload);
      EXPECT_EQ(to->received().back().packet.peer.ip, from->port().address().ip);
      EXPECT_EQ(to->received().back().packet.peer.port, kRoceUdpPort);
    }
  }
  EXPECT_EQ(first.received().size() + second.received().size() + third.received().size(), 12u);
}

TYPED_TEST(OneMachineTest, AQuestionReachesTheNicThatServesAndItsAnswerTheOneThatAsked) {
  typename TestFixture::Nic first(this->loop, kHere), second(this->loop, kHere);
  typename TestFixture::Nic far(this->loop, kThere), asker(this->loop, kThere);
  ASSERT_TRUE(second.port().Serve(ServiceId(PortSpace::kTcp, 7000)).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(first.port().Serve(ServiceId(PortSpace::kTcp, 7000))));

  ReqMad req;
  req.local_id = asker.port().numbers().Place(5, kCommunicationIdBits);
  req.service_id = ServiceId(PortSpace::kTcp, 7000);
  const Packet question = this->MakeMad({1, req}, kHere);
  ASSERT_EQ(asker.port().Send({&question, 1}), 1u);
  ASSERT_TRUE(this->WaitFor([&] { return !second.received().empty(); }));

  RejMad rej;
  rej.remote_id = req.local_id;
  const Packet answer = this->MakeMad({1, rej}, kThere);
  ASSERT_EQ(second.port().Send({&answer, 1}), 1u);
  ASSERT_TRUE(this->WaitFor([&] { return !asker.received().empty(); }));
  EXPECT_TRUE(first.received().empty());
  EXPECT_TRUE(far.received().empty());

  // The one that nobody serves is somebody's, who will refuse it.
  second.port().Withdraw(ServiceId(PortSpace::kTcp, 7000));
  ASSERT_EQ(asker.port().Send({&question, 1}), 1u);
  ASSERT_TRUE(this->WaitFor([&] { return first.received().size() + second.received().size() == 2; }));
  EXPECT_TRUE(first.port().Serve(ServiceId(PortSpace::kTcp, 7000)).ok());
}

TYPED_TEST(OneMachineTest, AnotherNicTakesOverWhenOneGoes) {
  auto first = std::make_unique<typename TestFixture::Nic>(this->loop, kHere);
  typename TestFixture::Nic second(this->loop, kHere), third(this->loop, kHere), far(this->loop, kThere);
  const Bytes payload(100, 1);
  const Packet to_second = this->Make(second, kHere, payload);
  const Packet to_third = this->Make(third, kHere, payload);
  const uint32_t index = first->port().numbers().index();
  first->Unplug();
  // Packets are lost, as in a network, until another NIC has taken over.
  ASSERT_TRUE(this->WaitFor([&] {
    far.port().Send({&to_second, 1});
    far.port().Send({&to_third, 1});
    return !second.received().empty() && !third.received().empty();
  }));
  typename TestFixture::Nic next(this->loop, kHere);
  EXPECT_EQ(next.port().numbers().index(), index) << "the place that was free";
  const Packet to_next = this->Make(next, kHere, payload);
  ASSERT_EQ(far.port().Send({&to_next, 1}), 1u);
  EXPECT_TRUE(this->WaitFor([&] { return !next.received().empty(); }));
}

TYPED_TEST(OneMachineTest, APacketForNobodyIsLost) {
  typename TestFixture::Nic only(this->loop, kHere);
  const Bytes payload(10);
  Packet packet = this->Make(only, kHere, payload);
  packet.destination = NumberShare(200).Place(5, kQueuePairNumberBits);
  EXPECT_EQ(only.port().Send({&packet, 1}), 1u);
  packet.peer.ip = Address::Parse(kThere)->ip;
  EXPECT_EQ(only.port().Send({&packet, 1}), 1u);
}

class ShmFabricTest : public OneMachineTest<ShmFabric> {};

TEST_F(ShmFabricTest, ThereAreAsManyNicsAtAnAddressAsShares) {
  std::vector<std::unique_ptr<Nic>> nics;
  for (uint32_t i = 0; i < NumberShare::kShares; ++i) nics.push_back(std::make_unique<Nic>(loop, kHere));
  ShmFabric fabric(loop);
  EXPECT_TRUE(absl::IsResourceExhausted(fabric.Open(loop, Address::Parse(kHere).value(), {}).status()));
}

// A reader that takes nothing does not hold up what is for others.
TEST_F(ShmFabricTest, AReaderThatHangsLosesItsPackets) {
  os::EpollLoop stopped;
  Nic hanging(stopped, kHere), other(loop, kThere), sender(loop, "127.0.0.3");
  const Bytes payload(4096);
  const Packet to_hanging = Make(hanging, kHere, payload);
  const Packet to_other = Make(other, kThere, payload);
  size_t sent = 0;
  while (sender.port().Send({&to_hanging, 1}) == 1) ASSERT_LT(++sent, kRingBytes / payload.size());
  ASSERT_TRUE(WaitFor([&] { return sender.ready > 0; }));
  EXPECT_EQ(sender.port().Send({&to_hanging, 1}), 1u);  // lost
  EXPECT_EQ(sender.port().Send({&to_other, 1}), 1u);
  EXPECT_TRUE(WaitFor([&] { return !other.received().empty(); }));
  // Once it goes on it gets what it had room for, and then more.
  stopped.RunUntil([&] { return hanging.received().size() == sent; }, stopped.Now() + base::Seconds(20));
  EXPECT_EQ(hanging.received().size(), sent);
  ASSERT_EQ(sender.port().Send({&to_hanging, 1}), 1u);
  stopped.RunUntil([&] { return hanging.received().size() > sent; }, stopped.Now() + base::Seconds(20));
  EXPECT_EQ(hanging.received().size(), sent + 1);
}

TEST_F(ShmFabricTest, ASenderThatFillsTheRingIsToldWhenThereIsRoom) {
  Nic from(loop, kThere), to(loop, kHere);
  const Bytes payload(4096);
  const Packet packet = Make(to, kHere, payload);
  size_t sent = 0;
  while (from.port().Send({&packet, 1}) == 1) ++sent;
  ASSERT_TRUE(WaitFor([&] { return to.received().size() == sent && from.ready > 0; }));
  EXPECT_EQ(from.port().Send({&packet, 1}), 1u);
}

// A program that connects and breaks the protocol is dropped, and others are served.
TEST_F(ShmFabricTest, AStrangerIsDropped) {
  Nic nic(loop, kHere), sender(loop, kThere);
  const std::string name = NicName(nic.port().address(), nic.port().numbers().index());
  const os::FileDescriptor silent = ConnectName(SOCK_SEQPACKET, name);
  const os::FileDescriptor loud = ConnectName(SOCK_SEQPACKET, name);
  ASSERT_TRUE(silent.valid() && loud.valid());
  ASSERT_EQ(send(loud.get(), "hello", 5, 0), 5);
  char byte = 0;
  EXPECT_TRUE(WaitFor([&] { return recv(loud.get(), &byte, 1, MSG_DONTWAIT) == 0; }));
  const Bytes payload(10);
  const Packet packet = Make(nic, kHere, payload);
  ASSERT_EQ(sender.port().Send({&packet, 1}), 1u);
  EXPECT_TRUE(WaitFor([&] { return !nic.received().empty(); }));
}

TEST_F(ShmFabricTest, DescriptorsOfAStrangerAreClosed) {
  Nic nic(loop, kHere);
  const os::FileDescriptor stranger =
      ConnectName(SOCK_SEQPACKET, NicName(nic.port().address(), nic.port().numbers().index()));
  ASSERT_TRUE(stranger.valid());
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
  const os::FileDescriptor reading(ends[0]);
  os::FileDescriptor writing(ends[1]);
  char word[] = "hello";
  iovec piece{word, sizeof(word)};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  os::PassedDescriptors passed;
  passed.Attach({writing.get(), writing.get()}, &message);
  ASSERT_EQ(sendmsg(stranger.get(), &message, 0), static_cast<ssize_t>(sizeof(word)));
  writing.Close();
  char byte = 0;
  EXPECT_TRUE(WaitFor([&] { return read(reading.get(), &byte, 1) == 0; }));
}

// Another user's program connects to the NIC's name: 0 where it is sent away.
int ConnectAsSomebodyElse(const std::string& name) {
  constexpr uid_t kNobody = 65534;
  if (setresuid(kNobody, kNobody, kNobody) != 0) return 77;
  const os::FileDescriptor socket = ConnectName(SOCK_SEQPACKET, name);
  if (!socket.valid()) return errno == EACCES ? 78 : 79;  // the NIC's user is none that it would trust itself
  pollfd ended{socket.get(), POLLRDHUP, 0};
  return poll(&ended, 1, 20'000) == 1 && (ended.revents & (POLLRDHUP | POLLHUP)) != 0 ? 0 : 1;
}

TEST_F(ShmFabricTest, AProgramOfAnotherUserIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can be somebody else";
  Nic nic(loop, kHere);
  const std::string name = NicName(nic.port().address(), nic.port().numbers().index());
  const pid_t pid = fork();
  ASSERT_GE(pid, 0);
  if (pid == 0) _exit(ConnectAsSomebodyElse(name));
  int status = -1;
  while (waitpid(pid, &status, WNOHANG) == 0) loop.RunUntil([] { return false; }, loop.Now() + base::Milliseconds(1));
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "this namespace has no other user";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(ShmFabricTest, ASocketOfAnotherUserIsNotUsed) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can be somebody else";
  int held[2];
  ASSERT_EQ(pipe2(held, O_CLOEXEC), 0);
  const pid_t pid = fork();
  ASSERT_GE(pid, 0);
  const Address address = Address::Parse("127.0.0.9:4791").value();
  if (pid == 0) {
    if (setresuid(65534, 65534, 65534) != 0) _exit(77);
    const os::FileDescriptor squatted = BindName(SOCK_SEQPACKET, WireName(address));
    const bool listens = squatted.valid() && listen(squatted.get(), 1) == 0;
    const char word = listens ? 'y' : 'n';
    if (write(held[1], &word, 1) != 1) _exit(1);
    pause();
  }
  const os::FileDescriptor reading(held[0]);
  { const os::FileDescriptor writing(held[1]); }
  char word = 0;
  const bool is_held = read(reading.get(), &word, 1) == 1 && word == 'y';
  if (is_held) {
    SharedAddressFabric fabric(loop);
    const auto port = fabric.Open(loop, address, {[](absl::Span<const Packet>) {}, [] {}});
    EXPECT_TRUE(absl::IsPermissionDenied(port.status())) << port.status();
  }
  kill(pid, SIGKILL);
  EXPECT_EQ(waitpid(pid, nullptr, 0), pid);
  if (!is_held) GTEST_SKIP() << "this namespace has no other user";
}

// A program closes its link, keeps the memory, and goes on writing whenever some was read.
TEST_F(ShmFabricTest, AClosedLinkIsReadUpToWhereItWasClosed) {
  constexpr uint64_t kRecords = 1000;
  int taken = 0;
  std::function<void()> write_more;
  ShmFabric fabric(loop);
  const auto port = fabric.Open(loop, Address::Parse(kHere).value(),
                                {[&](absl::Span<const Packet> packets) {
                                   taken += static_cast<int>(packets.size());
                                   if (taken < 20'000) write_more();
                                 },
                                 [] {}});
  ASSERT_TRUE(port.ok()) << port.status();
  os::SharedMemory memory = os::SharedMemory::Create("stranger", kRingMemory).value();
  RingWriter writer(os::SharedMemory::Attach(memory.descriptor(), kRingMemory, true).value());
  const Bytes payload(10);
  Packet packet;
  packet.opcode = PacketOpcode::kSendOnly;
  packet.slices = 1;
  packet.payload[0] = {payload.data(), static_cast<uint32_t>(payload.size())};
  write_more = [&] {
    for (uint64_t i = 0; i < kRecords; ++i) {
      uint8_t* const record = writer.Reserve(RecordLength(packet));
      if (record == nullptr) break;
      WriteRecord(packet, Address::Parse(kThere).value(), record);
      writer.Add(RecordLength(packet));
    }
    writer.Publish();
  };
  write_more();
  os::FileDescriptor socket = ConnectName(SOCK_SEQPACKET, NicName((*port)->address(), (*port)->numbers().index()));
  ASSERT_TRUE(socket.valid());
  uint32_t hello = 0x746b6e31;
  iovec piece{&hello, sizeof(hello)};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  os::PassedDescriptors passed;
  passed.Attach({memory.descriptor()}, &message);
  ASSERT_EQ(sendmsg(socket.get(), &message, 0), static_cast<ssize_t>(sizeof(hello)));
  socket.Close();
  ASSERT_TRUE(WaitFor([&] { return taken >= static_cast<int>(kRecords); }));
  while (loop.RunDue()) {
  }
  EXPECT_LT(taken, 20'000);
}

// The kernel is not called while both sides poll; a waiting side is woken once.
TEST_F(ShmFabricTest, OnlyWaitingEndsAreWoken) {
  os::EpollLoop reading;
  Nic from(loop, kThere), to(reading, kHere);
  const Bytes payload(64);
  const Packet packet = Make(to, kHere, payload);
  from.port().Send({&packet, 1});
  while (to.received().empty()) reading.RunDue();
  pollfd wait[] = {{reading.descriptor(), POLLIN, 0}};
  while (reading.RunDue()) {
  }
  from.port().Send({&packet, 1});
  EXPECT_EQ(poll(wait, 1, 0), 0) << "nobody waited";
  while (reading.RunDue()) {
  }
  while (reading.ArmPollers()) {
  }
  from.port().Send({&packet, 1});
  EXPECT_EQ(poll(wait, 1, 10'000), 1);
  while (reading.RunDue()) {
  }
  EXPECT_EQ(to.received().size(), 3u);
}

}  // namespace
}  // namespace tokamak::verbs::soft
