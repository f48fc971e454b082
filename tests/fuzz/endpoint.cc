// A transport endpoint whose peer speaks by hand: a puller that keeps no promise, or an owner that answers whatever it likes.
//
// Law: what the endpoint says is always well-formed; a pull ends once, by its deadline; memory of a failed pull is not touched
// after it was given back; when the peer is gone no pin is left and the counters add up (tests/transport/world.h checks them).
#include <algorithm>
#include <memory>
#include <vector>

#include "glog/logging.h"
#include "lib/transport/message.h"
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

NodeOptions SmallNode() {
  NodeOptions options;
  options.arena_size = 2 << 20;
  options.endpoint.serve_deadline = Seconds(10);
  options.endpoint.max_transfers = 8;
  options.endpoint.receive_slots = 16;
  options.endpoint.slot_size = 4096;
  return options;
}

class Player final {
 public:
  explicit Player(Input input) : in_(input), node_(world_.Add(SmallNode())) {
    for (const uint64_t size : kSizes) objects_.push_back(node_.AddObject(size, size / 10));
    objects_.push_back(base::ObjectId::FromName("nobody has this"));
    const bool owner = in_.Flag();
    if (in_.Below(8) == 7) SpoilHello();
    if (owner) {
      peer_->Listen();
      Pull();
    } else {
      peer_->Connect(node_.service);
    }
    is_owner_ = owner;
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
  void Step() {
    switch (in_.Below(10)) {
      case 0:
      case 1:
        return is_owner_ ? Reply() : Ask();
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
      default: {
        static constexpr base::Duration kTimes[] = {base::Microseconds(5), base::Microseconds(50), Milliseconds(1),
                                                    Milliseconds(100), Seconds(4)};
        world_.RunFor(kTimes[in_.Below(std::size(kTimes))]);
      }
    }
  }

  void SpoilHello() {
    peer_->hello.bulk_queue_pairs = static_cast<uint8_t>(in_.Below(4));
    peer_->hello.reads_served = static_cast<uint8_t>(in_.Below(4));
    peer_->hello.immediate = in_.Flag();
    peer_->hello.slot_size = in_.Take<uint16_t>();
    peer_->hello.receive_slots = in_.Below(16);
    peer_->hello.max_transfers = in_.Below(3);
    peer_->hello.version = static_cast<uint16_t>(kProtocolVersion + in_.Below(2));
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
    if (in_.Below(8) == 7) range.address += in_.Take<uint32_t>();
    if (in_.Below(8) == 7) range.rkey ^= in_.Take<uint16_t>();
    return range;
  }

  void Say(const Header& header, size_t body_size = 0) {
    std::vector<uint8_t> bytes(MessageSize(header, body_size));
    EncodeMessage(header, std::vector<uint8_t>(body_size, 0x55), absl::MakeSpan(bytes));
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
    Header header = Plain(kKinds[in_.Below(std::size(kKinds))], Number());
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
    Header header = Transfer(Number(), objects_[in_.Below(static_cast<uint32_t>(objects_.size()))], AnyProtocol());
    header.deadline_ms = in_.Take<uint16_t>();
    header.flags = static_cast<uint8_t>(in_.Below(4));
    if ((header.flags & kSizeKnown) != 0) {
      header.size = AnySize();
      header.remote = CarriesRange(header) ? AnyRange() : RemoteRange();
    } else if (header.protocol == Protocol::kWrite) {
      header.protocol = Protocol::kRead;
    }
    Say(header);
  }

  // ---- As an owner.

  void Pull() {
    if (pulls_.size() >= kMostPulls) return;
    PullRequest request;
    request.id = objects_[in_.Below(static_cast<uint32_t>(objects_.size()))];
    request.owner = peer_->service();
    request.size_known = true;
    const uint64_t size = kSizes[in_.Below(std::size(kSizes))];
    request.size = {size, size / 10};
    request.protocol = AnyProtocol();
    request.deadline = Seconds(1 + in_.Below(5));
    SinkOptions sink;
    sink.delay = Milliseconds(in_.Below(3));
    if (in_.Below(8) == 7) sink.refusal = absl::ResourceExhaustedError("full");
    pulls_.push_back(node_.Pull(request, sink));
  }

  // To the last TRANSFER, most times.
  void Reply() {
    Header asked = Transfer(Number(), objects_[0]);
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
  void Bulk() {
    RemoteRange range = target_;
    for (const RawPeer::Received& one : peer_->received) {
      if (one.header.kind == MessageKind::kData) range = one.header.remote;
    }
    if (in_.Below(8) == 7) range.address += in_.Take<uint32_t>();
    static constexpr verbs::Opcode kOpcodes[] = {verbs::Opcode::kRead, verbs::Opcode::kWriteWithImm,
                                                 verbs::Opcode::kSendWithImm, verbs::Opcode::kSend};
    const verbs::Opcode opcode = kOpcodes[in_.Below(std::size(kOpcodes))];
    if (opcode == verbs::Opcode::kWriteWithImm && !is_owner_) return;  // the arena is open: that is known
    const uint32_t size = in_.Below(4) == 3 ? 0 : in_.Take<uint16_t>();
    peer_->Bulk(opcode, range, size, Note{in_.Below(8), in_.Below(3), 1 + in_.Below(3)}.Pack());
  }

  Input in_;
  World world_;
  Node& node_;
  std::unique_ptr<RawPeer> peer_ = std::make_unique<RawPeer>(world_, 99);
  bool is_owner_ = false;
  std::vector<base::ObjectId> objects_;
  std::vector<std::shared_ptr<Outcome>> pulls_;
  std::vector<uint8_t> last_;
  uint8_t flip_at_ = 0, flip_to_ = 0;
  uint64_t sent_of_chunks_ = 0;
  RemoteRange target_;
};

}  // namespace
}  // namespace tokamak::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tokamak::fuzz::Player(tokamak::fuzz::Input(data, size)).Play();
  return 0;
}
