// A software NIC between a hostile peer and a careless owner: the input is a program of packets,
// requests and mishaps.
//
// Packets are near to right ones (the next PSN, a key that exists) or far from it, so that programs
// get deep into the protocol and then leave it. nic_world.h has the laws.
#include <algorithm>
#include <vector>

#include "lib/verbs/soft/cm/mad.h"
#include "lib/verbs/soft/packets/wire.h"
#include "lib/verbs/soft/rc/psn.h"
#include "lib/verbs/soft/rc/syndrome.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/nic_world.h"
#include "tests/fuzz/target.h"

namespace tokamak::fuzz {
namespace {

using namespace verbs;        // NOLINT: this is a NIC's whole surroundings
using namespace verbs::soft;  // NOLINT
using Op = PacketOpcode;

constexpr int kMostSteps = 400;

class Player final {
 public:
  explicit Player(Input input) : in_(input), pool_(2 * kMaxMtu, 0x77) {}

  void Play() {
    for (int step = 0; step < kMostSteps && !in_.empty(); ++step) Step();
  }

 private:
  void Step() {
    switch (in_.Below(20)) {
      case 0:
      case 1:
      case 2:
      case 3:
        return Request();
      case 4:
        return Answer();
      case 5:
      case 6:
        return HonestAnswer();
      case 7:
        return Again();
      case 8:
        return Bytes();
      case 9:
        return Time();
      case 10:
        return world_.PostReceive(AnyLine(), AnyPiece());
      case 11:
      case 12:
        return Post();
      case 13:
        return Keys();
      case 14:
        return world_.SetRoom(in_.Flag() ? SIZE_MAX : in_.Below(8));
      case 15:
        return Walk();
      case 16:
        return Datagram();
      case 17:
      case 18:
        return Bind();
      case 19:
        world_.Poll();
        return world_.CheckMemory();
    }
  }

  Line& AnyLine() { return world_.line(in_.Below(4) == 3 ? 1 : 0); }

  // An address near the edges of a block, and a key of the same or of another.
  void Aim(Packet* packet) {
    Block& block = world_.block(in_.Below(3) == 2 ? in_.Below(kBlocks) : uint32_t{kOpen});
    const auto begin = reinterpret_cast<uint64_t>(block.memory.data());
    switch (in_.Below(5)) {
      case 0:
        packet->remote_address = begin;
        break;
      case 1:
        packet->remote_address = begin + in_.Take<uint16_t>() % block.memory.size();
        break;
      case 2:
        packet->remote_address = begin + block.memory.size() - in_.Below(20);
        break;
      case 3:
        packet->remote_address = begin - in_.Below(20);
        break;
      case 4:
        packet->remote_address = in_.Take<uint64_t>();
        break;
    }
    if (IsAtomic(packet->opcode) && in_.Below(4) != 3) packet->remote_address = (packet->remote_address + 7) & ~7ull;
    switch (in_.Below(8)) {
      case 6:
      case 7:
        packet->rkey = world_.window_key(in_.Below(NicWorld::kWindows));
        break;
      case 4:
        packet->rkey = world_.block(in_.Below(kBlocks)).revoked_key;
        break;
      case 5:
        packet->rkey = in_.Take<uint32_t>();
        break;
      default:
        packet->rkey = block.region != nullptr ? block.region->rkey() : block.revoked_key;
    }
  }

  static bool IsWhole(Op opcode) { return HasReth(opcode) && opcode != Op::kWriteFirst && opcode != Op::kReadRequest; }

  uint32_t AnyLength() {
    switch (in_.Below(5)) {
      case 0:
        return 0;
      case 1:
        return NicWorld::kMtu;
      case 2:
        return in_.Below(NicWorld::kMtu);
      case 3:
        return in_.Take<uint16_t>() % (2 * kMaxMtu);
      default:
        return NicWorld::kMtu + in_.Below(3) - 1;
    }
  }

  uint32_t Psn(uint32_t next) {
    switch (in_.Below(8)) {
      case 5:
        return (next - 1 - in_.Below(40)) & kPsnMask;
      case 6:
        return (next + 1 + in_.Below(40)) & kPsnMask;
      case 7:
        return in_.Take<uint32_t>() & kPsnMask;
      default:
        return next;
    }
  }

  // A packet of `line`'s peer, most times.
  Packet Make(const Line& line, Op opcode) {
    Packet packet;
    packet.opcode = opcode;
    packet.destination = line.queue_pair->number();
    packet.peer = line.peer;
    const uint8_t oddities = in_.Take<uint8_t>();
    packet.ack_request = (oddities & 1) != 0;
    packet.solicited = (oddities & 2) != 0;
    switch (oddities >> 2) {
      case 63:
        packet.destination = in_.Take<uint32_t>() & kPsnMask;
        break;
      case 62:
        packet.peer = world_.line(in_.Below(2)).peer;
        break;
      case 61:
        packet.pkey = in_.Take<uint16_t>();
        break;
      case 60:
        packet.corrupt = true;
        break;
      case 59:
        packet.destination = in_.Below(3);
        break;
    }
    return packet;
  }

  void Send(const Packet& packet, absl::Span<const uint8_t> payload) {
    last_ = packet;
    last_payload_.assign(payload.begin(), payload.end());
    world_.Add(packet, payload);
    if (in_.Below(4) != 3) world_.Deliver();
    world_.Run({});
  }

  void Request() {
    Line& line = AnyLine();
    static constexpr Op kRequests[] = {
        Op::kSendFirst,   Op::kSendMiddle,       Op::kSendLast,
        Op::kSendOnly,    Op::kSendOnlyWithImm,  Op::kSendLastWithImm,
        Op::kWriteFirst,  Op::kWriteMiddle,      Op::kWriteLast,
        Op::kWriteOnly,   Op::kWriteLastWithImm, Op::kWriteOnlyWithImm,
        Op::kReadRequest, Op::kReadRequest,      Op::kCompareSwap,
        Op::kFetchAdd,    Op::kWriteOnly,        Op::kSendLastWithInvalidate,
        Op::kWriteOnly,   Op::kSendOnly,         Op::kSendOnlyWithInvalidate,
        Op::kReadRequest,
    };
    const uint32_t choice = in_.Below(std::size(kRequests) + 1);
    const Op opcode = choice < std::size(kRequests) ? kRequests[choice] : static_cast<Op>(in_.Take<uint8_t>());
    Packet packet = Make(line, opcode);
    packet.psn = Psn(line.peer_psn);
    uint32_t length = AnyLength();
    if (HasReth(opcode) || IsAtomic(opcode) || HasIeth(opcode)) Aim(&packet);
    packet.dma_length = in_.Below(4) == 3 ? in_.Take<uint32_t>() : IsWhole(opcode) ? length : AnyLength();
    packet.compare = in_.Flag() ? 0xf0f0f0f0f0f0f0f0 : in_.Take<uint8_t>();
    packet.swap_or_add = in_.Take<uint8_t>();
    packet.immediate = packet.dma_length;
    if (opcode == Op::kReadRequest || IsAtomic(opcode)) length = in_.Below(16) == 15 ? length : 0;
    if (opcode == Op::kReadRequest || IsAtomic(opcode)) asked_ = packet;
    if (packet.psn == line.peer_psn) {
      const uint64_t packets = opcode == Op::kReadRequest ? PacketsFor(packet.dma_length, NicWorld::kMtu) : 1;
      line.peer_psn = static_cast<uint32_t>(line.peer_psn + packets) & kPsnMask;
    }
    Send(packet, absl::MakeConstSpan(pool_).first(length));
  }

  void Answer() {
    Line& line = AnyLine();
    static constexpr Op kAnswers[] = {Op::kAcknowledge,      Op::kReadResponseFirst, Op::kReadResponseMiddle,
                                      Op::kReadResponseLast, Op::kReadResponseOnly,  Op::kAtomicAcknowledge};
    Packet packet = Make(line, kAnswers[in_.Below(std::size(kAnswers))]);
    packet.psn = Psn((line.own_psn - 1) & kPsnMask);
    packet.syndrome = in_.Flag() ? uint8_t{kAck} : in_.Take<uint8_t>();
    packet.msn = in_.Take<uint16_t>();
    packet.original = in_.Take<uint8_t>();
    Send(packet, absl::MakeConstSpan(pool_).first(packet.opcode == Op::kAcknowledge ? 0 : AnyLength()));
  }

  // Sends the answer that the peer owes to the oldest request that waits.
  void HonestAnswer() {
    Line& line = AnyLine();
    if (line.asked.empty()) return;
    const Packet asked = line.asked.front();
    line.asked.pop_front();
    Packet packet = Make(line, Op::kAcknowledge);
    packet.psn = asked.psn;
    packet.syndrome = kAck;
    if (IsAtomic(asked.opcode)) packet.opcode = Op::kAtomicAcknowledge;
    if (asked.opcode != Op::kReadRequest) return Send(packet, {});
    const auto packets = static_cast<uint32_t>(PacketsFor(asked.dma_length, NicWorld::kMtu));
    for (uint32_t i = 0; i < packets && i < 64; ++i) {
      packet.opcode = packets == 1       ? Op::kReadResponseOnly
                      : i == 0           ? Op::kReadResponseFirst
                      : i + 1 == packets ? Op::kReadResponseLast
                                         : Op::kReadResponseMiddle;
      packet.psn = (asked.psn + i) & kPsnMask;
      const uint32_t length = std::min(NicWorld::kMtu, asked.dma_length - i * NicWorld::kMtu);
      if (in_.Below(8) != 7) Send(packet, absl::MakeConstSpan(pool_).first(length));
    }
  }

  // A part of the last READ, or the last atomic, once more; or nearly so.
  void AgainInPart() {
    Packet packet = asked_;
    const uint32_t skipped = in_.Below(8);
    const uint32_t offset = std::min(skipped * NicWorld::kMtu, packet.dma_length);
    packet.psn = (packet.psn + skipped) & kPsnMask;
    packet.remote_address += offset;
    packet.dma_length -= offset;
    switch (in_.Below(8)) {
      case 4:
        packet.dma_length = std::min(packet.dma_length, NicWorld::kMtu);
        break;
      case 5:
        packet.dma_length += in_.Take<uint16_t>();
        break;
      case 6:
        packet.remote_address += 8;
        break;
      case 7:
        Aim(&packet);
        break;
    }
    Send(packet, {});
  }

  // The last packet once more, perhaps with another PSN or length.
  void Again() {
    if (in_.Flag()) return AgainInPart();
    Packet packet = last_;
    switch (in_.Below(4)) {
      case 1:
        packet.psn = (packet.psn + in_.Below(8)) & kPsnMask;
        break;
      case 2:
        packet.dma_length = in_.Take<uint32_t>();
        break;
      case 3:
        if (!last_payload_.empty()) last_payload_.pop_back();
        break;
    }
    Send(packet, std::vector<uint8_t>(last_payload_));
  }

  // As they come from a network.
  void Bytes() {
    const absl::Span<const uint8_t> bytes = in_.Bytes(64);
    Packet packet;
    if (Decode(bytes, &packet) != DecodeResult::kOk) return;
    Line& line = AnyLine();
    packet.peer = line.peer;
    if (in_.Flag()) packet.destination = line.queue_pair->number();
    if (in_.Flag()) packet.pkey = kDefaultPkey;
    const PayloadSlice slice = packet.payload[0];
    Send(packet, packet.slices == 0 ? absl::Span<const uint8_t>() : absl::MakeConstSpan(slice.data, slice.length));
  }

  void Time() {
    static constexpr base::Duration kTimes[] = {base::Microseconds(1), base::Microseconds(100), base::Milliseconds(1),
                                                base::Milliseconds(20), base::Seconds(1)};
    world_.Run(kTimes[in_.Below(std::size(kTimes))]);
  }

  // Owner's memory: most times where it should be.
  Sge AnyPiece() {
    Block& block = world_.block(in_.Below(4) == 3 ? in_.Below(kSource) : uint32_t{kReceives});
    return Piece(block);
  }
  Sge Piece(Block& block) {
    const uint32_t size = static_cast<uint32_t>(block.memory.size());
    const uint32_t offset = in_.Take<uint16_t>() % size;
    const uint32_t length = std::min(size - offset, in_.Take<uint16_t>() % size);
    const bool right = &block == &world_.block(kReceives) || &block == &world_.block(kSource) || in_.Flag();
    uint32_t key = block.revoked_key;
    if (block.region != nullptr && right && (block.frozen.empty() || !IsWritable(block))) key = block.region->lkey();
    return {block.memory.data() + offset, length, key};
  }
  // Frozen blocks that the owner itself could have written are left alone by it.
  static bool IsWritable(const Block& block) { return (block.access & kLocalWrite) != 0; }

  void Post() {
    Line& line = AnyLine();
    static constexpr Opcode kOpcodes[] = {Opcode::kSend,           Opcode::kSendWithImm, Opcode::kWrite,
                                          Opcode::kWriteWithImm,   Opcode::kRead,        Opcode::kCompareSwap,
                                          Opcode::kFetchAdd,       Opcode::kRead,        Opcode::kSendWithInvalidate,
                                          Opcode::kLocalInvalidate};
    SendRequest request;
    request.opcode = kOpcodes[in_.Below(std::size(kOpcodes))];
    request.flags = static_cast<SendFlags>(in_.Below(16));
    const bool answered = request.opcode == Opcode::kRead || request.opcode == Opcode::kCompareSwap ||
                          request.opcode == Opcode::kFetchAdd;
    Sge piece = Piece(world_.block(answered ? (in_.Below(8) == 7 ? kReadable : kReceives) : kSource));
    if (answered && request.opcode != Opcode::kRead) piece.length = 8;
    if ((request.flags & kInline) != 0) piece.length %= 65;
    request.sges = absl::MakeConstSpan(&piece, 1);
    request.remote_address = 8 * in_.Below(100);
    request.rkey = in_.Flag() ? world_.window_key(in_.Below(NicWorld::kWindows)) : in_.Below(4);
    world_.PostSend(line, request);
    world_.Run({});
  }

  void Bind() {
    const size_t window = in_.Below(NicWorld::kWindows);
    const uint32_t length = in_.Take<uint16_t>() % 1000, offset = in_.Take<uint16_t>() % 1600;
    static constexpr Access kRights[] = {kRemoteRead, kRemoteWrite, kRemoteRead | kRemoteWrite, kRemoteAtomic,
                                         kLocalRead};
    const Access access = kRights[in_.Below(std::size(kRights))];
    world_.Bind(AnyLine(), window, offset, length, access,
                static_cast<SendFlags>(in_.Below(16) & (kSignaled | kFence)));
    world_.Run({});
  }

  void Keys() {
    static constexpr BlockName kChanging[] = {kOpen, kReadable, kReceives, kWindowed};
    const uint32_t choice = in_.Below(std::size(kChanging) + 1);
    if (choice == std::size(kChanging)) return world_.RenewWindow(in_.Below(NicWorld::kWindows));
    Block& block = world_.block(kChanging[choice]);
    if (block.region != nullptr) return world_.Revoke(block);
    world_.Register(block);
  }

  void Walk() {
    Line& line = AnyLine();
    switch (in_.Below(4)) {
      case 0:
        line.queue_pair->Modify(QueuePairState::kError, {}).IgnoreError();
        break;
      case 1:
        world_.Renew(line);
        world_.Walk(line, in_.Flag());
        break;
      case 2:
        world_.Walk(line, in_.Flag());
        break;
      case 3:
        world_.Renew(line);
        break;
    }
  }

  void Datagram() {
    Packet packet = Make(world_.line(0), Op::kDatagramSendOnly);
    if (packet.destination == world_.line(0).queue_pair->number()) packet.destination = kManagementQueuePair;
    packet.qkey = in_.Below(8) == 7 ? 1 : kManagementQkey;
    MadBytes mad{};
    const uint8_t header[] = {1, 7, 2, 3};
    std::copy(std::begin(header), std::end(header), mad.begin());
    mad[17] = static_cast<uint8_t>(0x10 + in_.Below(10));
    const absl::Span<const uint8_t> body = in_.Bytes(mad.size() - 24);
    std::copy(body.begin(), body.end(), mad.begin() + 24);
    Send(packet, absl::MakeConstSpan(mad).first(in_.Below(16) == 15 ? in_.Take<uint8_t>() : mad.size()));
  }

  Input in_;
  const std::vector<uint8_t> pool_;  // payloads are cut from it
  NicWorld world_;
  Packet last_;
  Packet asked_;  // the last READ or atomic
  std::vector<uint8_t> last_payload_;
};

}  // namespace
}  // namespace tokamak::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tokamak::fuzz::Player(tokamak::fuzz::Input(data, size)).Play();
  return 0;
}
