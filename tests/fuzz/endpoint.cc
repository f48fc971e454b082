// A transport endpoint whose peer speaks by hand: a puller that keeps no promise, or an owner that
// answers whatever it likes.
//
// Half of the worlds have a second rail: it joins, carries, drops out, is cut, and the peer says of
// it what it likes.
//
// Law: what the endpoint says is always well-formed; a pull ends once, by its deadline; memory of a
// failed pull is not touched after it was given back; when the peer is gone no pin is left and the
// counters add up (tests/transport/world.h checks them).
#include <algorithm>
#include <memory>
#include <vector>

#include "lib/base/check.h"
#include "lib/transport/messages/message.h"
#include "lib/transport/messages/rail_messages.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/target.h"
#include "tests/transport/raw_peer.h"
#include "tests/transport/world.h"

namespace tokamak::fuzz {
namespace {

using namespace transport;           // NOLINT: its whole protocol is the subject
using namespace transport::testing;  // NOLINT
using base::Milliseconds;
using base::Seconds;

constexpr int kMostSteps = 100;
constexpr size_t kMostPulls = 16;
constexpr uint64_t kSizes[] = {0, 100, 5000, 60000};

NodeOptions SmallNode(bool two_rails) {
  NodeOptions options;
  options.arena_size = 2 << 20;
  options.endpoint.serve_deadline = Seconds(10);
  options.endpoint.max_transfers = 8;
  options.endpoint.receive_slots = 16;
  options.endpoint.slot_size = 4096;
  if (two_rails) {
    options.rails = 2;
    options.endpoint.chunk_size = 16384;  // so that objects have shares on both
    options.endpoint.reliability.ack_timeout = Milliseconds(1);
  }
  return options;
}

class Player final {
 public:
  explicit Player(Input input) : in_(input), shape_(in_.Take<uint8_t>()), node_(world_.Add(SmallNode(two_rails()))) {
    if (two_rails()) peer_->hello.rails = 2;
    peer_->on_message = [](const RawPeer::Received& said) { CheckRailMessage(said); };
    for (const uint64_t size : kSizes) objects_.push_back(node_.AddObject(size, size / 10));
    objects_.push_back(base::ObjectId::FromName("nobody has this"));
    if (in_.Below(8) == 7) SpoilHello();
    if (is_owner()) {
      peer_->Listen();
      Pull();
    } else {
      peer_->Connect(node_.service);
    }
    world_.RunUntil([this] { return peer_->up(); }, Milliseconds(10));
  }

  void Play() {
    for (int step = 0; step < kMostSteps && !in_.empty(); ++step) Step();
    if (in_.Flag()) peer_.reset();
    const auto all_done = [this] {
      return std::all_of(pulls_.begin(), pulls_.end(), [](const auto& pull) { return pull->done && pull->dropped; });
    };
    CHECK(world_.RunUntil(all_done, Seconds(120))) << "a pull never ended";
    peer_.reset();
    world_.ExpectClean();
  }

 private:
  bool is_owner() const { return (shape_ & 1) != 0; }
  bool two_rails() const { return (shape_ & 2) != 0; }

  void Step() {
    switch (in_.Below(10)) {
      case 0:
      case 1:
        return is_owner() ? Reply() : Ask();
      case 2:
        return Say(AnyHeader());
      case 3:
        return Bulk();
      case 4:
        return SendBytes(in_.Bytes(5000));
      case 5:
        flip_at_ = in_.Take<uint8_t>();
        flip_to_ = in_.Take<uint8_t>();
        return;
      case 6:
        return Pull();
      case 7:
        if (!last_.empty()) peer_->SendBytes(last_);
        return;
      case 9:
        if (two_rails()) return StepOfRail();
        [[fallthrough]];
      default: {
        static constexpr base::Duration kTimes[] = {base::Microseconds(5), base::Microseconds(50), Milliseconds(1),
                                                    Milliseconds(100), Seconds(4)};
        world_.RunFor(kTimes[in_.Below(std::size(kTimes))]);
      }
    }
  }

  void StepOfRail() {
    switch (in_.Below(6)) {
      case 0:
        return SayRails();
      case 1:
        return SayRailDown();
      case 2:
        peer_->hello.primary = in_.Below(8) == 7 ? 1 : 0;
        return peer_->Connect(ServiceOf(in_.Below(8) == 7 ? 0 : 1), {2});
      case 3:
        return peer_->DropRail();
      case 4:
        return Bulk(2);
      default:
        cut_ = !cut_;
        if (!cut_) return world_.network->Heal();
        if (in_.Below(3) != 1) world_.network->Cut(node_.AddressOf(1), peer_->service());
        if (in_.Below(3) != 1) world_.network->Cut(peer_->service(), node_.AddressOf(1));
    }
  }

  verbs::Address ServiceOf(uint32_t rail) const {
    verbs::Address service = node_.AddressOf(rail);
    service.port = node_.service.port;
    return service;
  }

  // Both are reached over the peer's one device; some are reached nowhere.
  void SayRails() {
    std::vector<verbs::Address> rails(in_.Below(8) == 7 ? 2 + in_.Below(kMaxRails - 1) : 2, peer_->service());
    if (in_.Below(8) == 7) rails.back().port = in_.Take<uint16_t>();
    if (in_.Below(8) == 7) rails.back().ip[15] = in_.Take<uint8_t>();
    Header header;
    header.kind = MessageKind::kRails;
    Say(header, EncodeRails(rails));
  }

  void SayRailDown() {
    Header header;
    header.kind = MessageKind::kRailDown;
    header.rail = in_.Below(8) == 7 ? in_.Below(kMaxRails + 1) : 1;
    std::vector<WantedWrite> wanted(is_owner() && in_.Below(8) != 7 ? 0 : in_.Below(4));
    uint64_t transfer = 0;
    for (WantedWrite& write : wanted) {
      transfer += Number();
      write = {transfer, in_.Take<uint16_t>()};
    }
    Say(header, EncodeWanted(wanted));
  }

  static void CheckRailMessage(const RawPeer::Received& said) {
    if (said.header.kind == MessageKind::kRails) CHECK(DecodeRails(said.body).ok());
    if (said.header.kind == MessageKind::kRailDown) CHECK(DecodeWanted(said.body).ok());
  }

  void SpoilHello() {
    peer_->hello.bulk_queue_pairs = static_cast<uint8_t>(in_.Below(4));
    peer_->hello.reads_served = static_cast<uint8_t>(in_.Below(4));
    peer_->hello.immediate = in_.Flag();
    peer_->hello.slot_size = in_.Take<uint16_t>();
    peer_->hello.receive_slots = in_.Below(16);
    peer_->hello.first_slots = in_.Below(16);
    peer_->hello.max_transfers = in_.Below(3);
    peer_->hello.version = static_cast<uint16_t>(kProtocolVersion + in_.Below(2));
    if (!two_rails()) return;
    peer_->hello.rails = static_cast<uint8_t>(in_.Below(4));
    peer_->hello.primary = static_cast<uint8_t>(in_.Below(3));
  }

  uint64_t Number() { return 1 + in_.Below(6); }
  Protocol AnyProtocol() { return static_cast<Protocol>(in_.Below(4)); }

  ObjectSize AnySize() {
    const uint64_t size = kSizes[in_.Below(std::size(kSizes))];
    if (in_.Below(8) != 7) return {size, size / 10};
    return {in_.Take<uint64_t>() >> 16, in_.Take<uint16_t>()};
  }

  RemoteRange AnyRange() {
    RemoteRange range = peer_->range();
    if (two_rails()) range.address += 4096;  // what is sent from the beginning stays zero: a greeting
    if (in_.Below(8) == 7) range.address += in_.Take<uint32_t>();
    if (in_.Below(8) == 7) range.rkey ^= in_.Take<uint16_t>();
    if (two_rails() && in_.Flag()) {
      range.further = {1, {{{in_.Below(8) == 7 ? in_.Below(kMaxRails + 1) : 1, range.rkey}}}};
    }
    return range;
  }

  void Say(const Header& header, size_t body_size = 0) { Say(header, std::vector<uint8_t>(body_size, 0x55)); }
  void Say(const Header& header, const std::vector<uint8_t>& body) {
    std::vector<uint8_t> bytes(MessageSize(header, body.size()));
    EncodeMessage(header, body, absl::MakeSpan(bytes));
    SendBytes(bytes);
  }

  void SendBytes(absl::Span<const uint8_t> bytes) {
    last_.assign(bytes.begin(), bytes.end());
    if (flip_at_ < last_.size()) last_[flip_at_] ^= flip_to_;
    flip_to_ = 0;
    peer_->SendBytes(last_);
  }

  Header AnyHeader() {
    static constexpr MessageKind kKinds[] = {MessageKind::kDone,    MessageKind::kCancel, MessageKind::kFail,
                                             MessageKind::kCredit,  MessageKind::kCall,   MessageKind::kReply,
                                             MessageKind::kProgress};
    const MessageKind kind = kKinds[in_.Below(std::size(kKinds))];
    Header header = Plain(kind, Number());
    if (header.kind == MessageKind::kDone) header.protocol = in_.Flag() ? Protocol::kRead : Protocol::kWrite;
    if (header.kind == MessageKind::kFail) header.status = absl::StatusCode::kAborted;
    if (header.kind == MessageKind::kCredit) header.transfer = 0;
    if (header.kind == MessageKind::kCall) header.deadline_ms = in_.Take<uint16_t>();
    if (header.kind == MessageKind::kProgress) header.offset = in_.Take<uint16_t>();
    header.credits = in_.Below(4) == 3 ? in_.Take<uint16_t>() : static_cast<uint16_t>(in_.Below(4));
    return header;
  }

  // ---- As a puller.

  void Ask() {
    const uint64_t number = Number();
    const uint32_t object = in_.Below(static_cast<uint32_t>(objects_.size()));
    Header header = Transfer(number, objects_[object], 0, AnyProtocol());
    header.deadline_ms = in_.Take<uint16_t>();
    header.flags = static_cast<uint8_t>(in_.Below(4));
    const uint64_t size = kSizes[object % std::size(kSizes)];
    header.size = in_.Below(4) == 3 ? AnySize() : ObjectSize{size, size / 10};
    if (CarriesRange(header)) header.remote = AnyRange();
    Say(header);
  }

  // ---- As an owner.

  void Pull() {
    if (pulls_.size() >= kMostPulls) return;
    PullRequest request;
    request.id = objects_[in_.Below(static_cast<uint32_t>(objects_.size()))];
    request.owner = peer_->service();
    const uint64_t size = kSizes[in_.Below(std::size(kSizes))];
    request.size = {size, size / 10};
    request.protocol = AnyProtocol();
    request.deadline = Seconds(1 + in_.Below(5));
    pulls_.push_back(node_.Pull(request));
  }

  // To the last TRANSFER, most times.
  void Reply() {
    Header asked = Transfer(Number(), objects_[0], 0);
    for (const RawPeer::Received& one : peer_->received) {
      if (one.header.kind == MessageKind::kTransfer) asked = one.header;
    }
    target_ = asked.remote;
    const uint64_t number = in_.Below(8) == 7 ? Number() : asked.transfer;
    const ObjectSize size = in_.Below(8) == 7 ? AnySize() : asked.size;
    switch (in_.Below(4)) {
      case 0: {
        Header header = Plain(MessageKind::kData, number, Protocol::kRead);
        header.deadline_ms = 5000;
        header.size = size;
        if (size.total() > 0) header.remote = AnyRange();
        return Say(header);
      }
      case 1: {
        Header header = Plain(MessageKind::kChunk, number, Protocol::kEager);
        header.size = size;
        header.offset = in_.Below(4) == 3 ? in_.Take<uint16_t>() : sent_of_chunks_;
        const size_t body = size.total() == 0 ? 0 : 1 + in_.Take<uint16_t>() % 4000;
        sent_of_chunks_ = header.offset + body;
        return Say(header, body);
      }
      case 2:
        sent_of_chunks_ = 0;
        return Say(Plain(MessageKind::kDone, number, in_.Flag() ? Protocol::kRead : Protocol::kWrite));
      default: {
        Header header = Plain(MessageKind::kFail, number);
        header.status = absl::StatusCode::kNotFound;
        return Say(header, in_.Below(200));
      }
    }
  }

  // One-sided, where the endpoint has opened its memory.
  void Bulk(uint8_t queue = 1) {
    RemoteRange range = target_;
    for (const RawPeer::Received& one : peer_->received) {
      if (one.header.kind == MessageKind::kData) range = one.header.remote;
    }
    if (queue == 2 && range.further.count > 0) range.rkey = range.further.keys[0].rkey;
    if (in_.Below(8) == 7) range.address += in_.Take<uint32_t>();
    static constexpr verbs::Opcode kOpcodes[] = {verbs::Opcode::kRead, verbs::Opcode::kWriteWithImm,
                                                 verbs::Opcode::kSendWithImm, verbs::Opcode::kSend};
    const verbs::Opcode opcode = kOpcodes[in_.Below(std::size(kOpcodes))];
    if (opcode == verbs::Opcode::kWriteWithImm && !is_owner()) return;  // the arena is open: that is known
    const uint32_t size = in_.Below(4) == 3 ? 0 : in_.Take<uint16_t>();
    peer_->Bulk(opcode, range, size, Note{in_.Below(8), in_.Below(3), 1 + in_.Below(3)}.Pack(), queue);
  }

  Input in_;
  const uint8_t shape_;
  World world_;
  Node& node_;
  std::unique_ptr<RawPeer> peer_ = std::make_unique<RawPeer>(world_, 99);
  std::vector<base::ObjectId> objects_;
  std::vector<std::shared_ptr<Outcome>> pulls_;
  std::vector<uint8_t> last_;
  uint8_t flip_at_ = 0, flip_to_ = 0;
  bool cut_ = false;  // the second rail's cable
  uint64_t sent_of_chunks_ = 0;
  RemoteRange target_;
};

}  // namespace
}  // namespace tokamak::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tokamak::fuzz::Player(tokamak::fuzz::Input(data, size)).Play();
  return 0;
}
