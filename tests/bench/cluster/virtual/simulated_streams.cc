#include "tests/bench/cluster/virtual/simulated_streams.h"

#include <algorithm>
#include <deque>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/base/check.h"
#include "lib/base/log.h"

namespace tokamak::bench {

namespace {

using verbs::soft::Packet;

// The kind of a packet, in the field that RoCE has for immediate data. Others: destination and
// source_queue_pair are the ends' numbers (qkey, of a kOpen: the port), remote_address is the
// number of its first byte, swap_or_add that of the byte that is expected next, compare the first
// byte that there is no room for.
enum Kind : uint32_t { kOpen = 1, kOpened = 2, kData = 3, kReset = 4 };

// A call copies this much before what it copied may leave, as a kernel does.
constexpr size_t kCopyAtOnce = 64 << 10;

using Bytes = std::vector<uint8_t>;

}  // namespace

// ---- one end

class StreamStack::End final : public ByteStream {
 public:
  // One that connects, or one of `open`, which a peer sent.
  End(StreamStack& stack, const verbs::Address& peer, const StreamOptions& options)
      : stack_(stack), peer_(peer), options_(options), number_(stack.NewNumber()), buffer_(BufferOf(stack, options)) {
    stack_.ends_[number_] = this;
  }
  End(StreamStack& stack, const Packet& open, const StreamOptions& options) : End(stack, open.peer, options) {
    peer_number_ = open.source_queue_pair;
    limit_ = open.compare;
    connected_ = true;
    owes_ = Kind::kOpened;
    stack_.Pump();
  }
  ~End() override {
    stack_.ends_.erase(number_);
    if (broken_ || !connected_) return;
    stack_.Later([&stack = stack_, packet = Make(Kind::kReset)] { stack.SendReset(packet); });
  }

  // ---- for the program, on its loop

  void Start(ReadyCallback on_ready) override {
    on_ready_ = std::move(on_ready);
    if (!connected_) {
      owes_ = Kind::kOpen;
      stack_.Later([&stack = stack_] { stack.Pump(); });
    }
    stack_.Tell();
  }

  void Want(Readiness wanted) override {
    wanted_ = wanted;
    if (IsReady()) stack_.Tell();
  }

  absl::StatusOr<size_t> Send(absl::Span<const absl::Span<const uint8_t>> parts) override {
    stack_.host_.Spend(stack_.costs_.system_call);
    if (broken_) return Broken();
    if (!connected_) return 0;
    size_t taken = 0;
    for (const absl::Span<const uint8_t> part : parts) {
      for (size_t at = 0; at < part.size();) {
        const size_t size = std::min({part.size() - at, kCopyAtOnce, static_cast<size_t>(RoomToSend())});
        if (size == 0) return taken;
        stack_.host_.SpendOnCopy(size);
        stack_.host_.Spend(PacketsOf(size));
        held_ += size;
        stack_.Later([&stack = stack_, number = number_, bytes = Bytes(part.data() + at, part.data() + at + size)] {
          if (End* const end = stack.Find(number)) end->Enqueue(bytes);
        });
        at += size;
        taken += size;
      }
    }
    return taken;
  }

  absl::StatusOr<size_t> Receive(absl::Span<uint8_t> into) override {
    stack_.host_.Spend(stack_.costs_.system_call);
    size_t got = 0;
    while (got < into.size() && !received_.empty()) {
      const Bytes& first = received_.front();
      const size_t size = std::min(into.size() - got, first.size() - read_);
      std::copy_n(first.data() + read_, size, into.data() + got);
      if (read_ == 0) stack_.host_.Spend(stack_.costs_.packet);
      stack_.host_.SpendOnCopy(size);
      got += size;
      read_ += size;
      if (read_ == first.size()) {
        received_.pop_front();
        read_ = 0;
      }
    }
    if (got == 0 && broken_) return Broken();
    if (got == 0) return 0;
    stack_.Later([&stack = stack_, number = number_, got] {
      if (End* const end = stack.Find(number)) end->Took(got);
    });
    return got;
  }

  bool IsReady() const { return on_ready_ != nullptr && (Ready().receive || Ready().send); }

  void RunReady() {
    if (!IsReady()) return;
    const ReadyCallback call = on_ready_;  // which may drop this
    call(Ready());
  }

  // ---- for the stack, on its loop

  void OnPacket(const Packet& packet) {
    if (packet.immediate == Kind::kReset) return Break();
    if (packet.immediate == Kind::kOpened) {
      peer_number_ = packet.source_queue_pair;
      connected_ = true;
      stack_.Tell();
    }
    acknowledged_ = std::max(acknowledged_, packet.swap_or_add);
    limit_ = std::max(limit_, packet.compare);
    const bool had_room = RoomToSend() >= LowRoom();
    while (!flying_.empty() && flying_.front() <= acknowledged_) {
      held_ -= flying_.front() - freed_;
      freed_ = flying_.front();
      flying_.pop_front();
    }
    if (!had_room && RoomToSend() >= LowRoom()) stack_.Tell();
    if (const uint32_t size = packet.payload_length(); size > 0) Take(packet, size);
    stack_.Pump();
  }

  // The next packet that it has, where there is one; Sent says that it went.
  bool Next(Packet* packet) {
    if (broken_) return false;
    if (owes_ == Kind::kOpen || owes_ == Kind::kOpened) {
      *packet = Make(owes_);
      packet->qkey = peer_.port;
      return true;
    }
    if (!connected_) return false;
    if (!queue_.empty() && MaySend(queue_.front().size())) {
      *packet = Make(Kind::kData);
      packet->slices = 1;
      packet->payload[0] = {queue_.front().data(), static_cast<uint32_t>(queue_.front().size())};
      return true;
    }
    if (owes_ != Kind::kData) return false;
    *packet = Make(Kind::kData);
    return true;
  }

  void Sent(const Packet& packet) {
    owes_ = 0;
    unacknowledged_ = 0;
    told_limit_ = packet.compare;
    delayed_.Cancel();
    if (packet.payload_length() == 0) return;
    ++stack_.segments_sent_;
    sent_ += packet.payload_length();
    flying_.push_back(sent_);
    if (packet.payload_length() < kSegment) small_ = sent_;
    queue_.pop_front();
  }

 private:
  static uint64_t BufferOf(const StreamStack& stack, const StreamOptions& options) {
    return options.buffer != 0 ? options.buffer : stack.costs_.buffer;
  }

  absl::Status Broken() const {
    return absl::UnavailableError(absl::StrCat("the stream to ", peer_.ToString(), " was closed by the peer"));
  }

  Readiness Ready() const {
    return {wanted_.receive && (broken_ || !received_.empty()),
            wanted_.send && (broken_ || (connected_ && RoomToSend() >= LowRoom()))};
  }

  uint64_t RoomToSend() const { return buffer_ - std::min(buffer_, held_); }
  uint64_t LowRoom() const { return buffer_ / 3; }  // as Linux: not for every acknowledgement

  base::Duration PacketsOf(size_t bytes) const {
    return stack_.costs_.packet * static_cast<int64_t>((bytes + kSegment - 1) / kSegment);
  }

  bool MaySend(size_t size) const {
    if (sent_ + size > limit_) return false;
    return options_.no_delay || size == kSegment || small_ <= acknowledged_;
  }

  Packet Make(uint32_t kind) const {
    Packet packet;
    packet.opcode = verbs::soft::PacketOpcode::kDatagramSendOnly;
    packet.immediate = kind;
    packet.peer = peer_;
    packet.peer.port = 0;
    packet.destination = peer_number_;
    packet.source_queue_pair = number_;
    packet.remote_address = sent_;
    packet.swap_or_add = expected_;
    packet.compare = expected_ + buffer_ - std::min(buffer_, waiting_);
    return packet;
  }

  void Enqueue(const Bytes& bytes) {
    for (size_t at = 0; at < bytes.size();) {
      if (queue_.empty() || queue_.back().size() == kSegment) queue_.emplace_back();
      Bytes& last = queue_.back();
      const size_t size = std::min(bytes.size() - at, kSegment - last.size());
      last.insert(last.end(), bytes.begin() + static_cast<ptrdiff_t>(at),
                  bytes.begin() + static_cast<ptrdiff_t>(at + size));
      at += size;
    }
    stack_.Pump();
  }

  void Take(const Packet& packet, uint32_t size) {
    if (packet.remote_address != expected_) {
      LOG(WARNING) << "a simulated stream needs a network that loses and reorders nothing";
      return Break();
    }
    Bytes bytes;
    bytes.reserve(size);
    for (const verbs::soft::PayloadSlice& slice : packet.pieces()) {
      bytes.insert(bytes.end(), slice.data, slice.data + slice.length);
    }
    received_.push_back(std::move(bytes));
    expected_ += size;
    waiting_ += size;
    unacknowledged_ += size;
    if (unacknowledged_ > kSegment) {
      owes_ = Kind::kData;
    } else if (!delayed_.armed()) {
      delayed_ = stack_.own_.RunAfter(stack_.costs_.delayed_acknowledgement, [this] {
        owes_ = Kind::kData;
        stack_.Pump();
      });
    }
    stack_.Tell();
  }

  // The program has taken bytes out. The peer hears of it where it was short of room.
  void Took(uint64_t bytes) {
    waiting_ -= bytes;
    if (told_limit_ < expected_ + buffer_ / 2) {
      owes_ = Kind::kData;
      stack_.Pump();
    }
  }

  void Break() {
    broken_ = true;
    delayed_.Cancel();
    stack_.Tell();
  }

  StreamStack& stack_;
  const verbs::Address peer_;
  const StreamOptions options_;
  const uint32_t number_;
  const uint64_t buffer_;
  ReadyCallback on_ready_;
  Readiness wanted_{true, true};
  uint32_t peer_number_ = 0;
  bool connected_ = false;
  bool broken_ = false;
  uint32_t owes_ = 0;  // a packet of this Kind, whatever there is to send; 0: none

  // Sending. Bytes are numbered from 0.
  uint64_t held_ = 0;        // in the buffer: queued, or sent and not acknowledged
  std::deque<Bytes> queue_;  // each a segment
  uint64_t sent_ = 0;
  uint64_t acknowledged_ = 0;
  uint64_t freed_ = 0;           // of the buffer
  uint64_t limit_ = 0;           // the peer has room below this
  uint64_t small_ = 0;           // the end of the last small segment that was sent
  std::deque<uint64_t> flying_;  // ends of segments

  // Receiving.
  std::deque<Bytes> received_;
  size_t read_ = 0;  // of the first
  uint64_t expected_ = 0;
  uint64_t waiting_ = 0;         // bytes for the program
  uint64_t unacknowledged_ = 0;  // since the last packet that told the peer
  uint64_t told_limit_ = 0;
  base::Timer delayed_;

  friend class StreamStack;
};

class StreamStack::Listener final : public StreamListener {
 public:
  Listener(StreamStack& stack, const verbs::Address& address, const StreamOptions& options,
           ByteStreams::AcceptCallback on_accept)
      : stack_(stack),
        address_(address),
        options_(options),
        on_accept_(std::move(on_accept)),
        arrived_(stack.host_.MakeSignal([this] { Accept(); })) {
    stack_.listeners_[address_.port] = this;
  }
  ~Listener() override { stack_.listeners_.erase(address_.port); }

  const verbs::Address& address() const override { return address_; }

  // For the stack.
  void Open(const Packet& packet) {
    opened_.push_back(std::make_unique<End>(stack_, packet, options_));
    arrived_->Raise();
  }

 private:
  void Accept() {
    while (!opened_.empty()) {
      stack_.host_.Spend(stack_.costs_.system_call);
      std::unique_ptr<End> end = std::move(opened_.front());
      opened_.pop_front();
      on_accept_(std::move(end));
    }
  }

  StreamStack& stack_;
  const verbs::Address address_;
  const StreamOptions options_;
  const ByteStreams::AcceptCallback on_accept_;
  std::deque<std::unique_ptr<End>> opened_;
  const std::unique_ptr<base::Signal> arrived_;
};

// ---- all of a host

StreamStack::StreamStack(base::EventLoop& host, base::EventLoop& own, verbs::soft::Fabric& fabric,
                         const verbs::Address& address, const StreamCosts& costs)
    : host_(host), own_(own), costs_(costs), ready_(host.MakeSignal([this] { RunReady(); })) {
  auto port = fabric.Open(own_, address,
                          {[this](absl::Span<const Packet> packets) { OnPackets(packets); }, [this] { Pump(); }});
  CHECK(port.ok()) << port.status();
  port_ = *std::move(port);
}

StreamStack::~StreamStack() { CHECK(ends_.empty()) << "a stream outlives its stack"; }

std::unique_ptr<StreamListener> StreamStack::Listen(const StreamOptions& options,
                                                    ByteStreams::AcceptCallback on_accept) {
  verbs::Address address = port_->address();
  address.port = next_port_++;
  return std::make_unique<Listener>(*this, address, options, std::move(on_accept));
}

std::unique_ptr<ByteStream> StreamStack::Connect(const verbs::Address& to, const StreamOptions& options) {
  return std::make_unique<End>(*this, to, options);
}

StreamStack::End* StreamStack::Find(uint32_t number) const {
  const auto found = ends_.find(number);
  return found == ends_.end() ? nullptr : found->second;
}

void StreamStack::Later(base::Task task) {
  const uint64_t number = next_later_++;
  later_[number] = own_.RunAt(host_.Now(), [this, number, task = std::move(task)] {
    later_.erase(number);
    task();
  });
}

void StreamStack::OnPackets(absl::Span<const Packet> packets) {
  for (const Packet& packet : packets) {
    if (packet.immediate == Kind::kOpen) {
      const auto listener = listeners_.find(static_cast<uint16_t>(packet.qkey));
      listener != listeners_.end() ? listener->second->Open(packet) : Refuse(packet);
    } else if (End* const end = Find(packet.destination)) {
      end->OnPacket(packet);
    }
  }
}

void StreamStack::Refuse(const Packet& open) {
  Packet packet;
  packet.opcode = verbs::soft::PacketOpcode::kDatagramSendOnly;
  packet.immediate = Kind::kReset;
  packet.peer = open.peer;
  packet.destination = open.source_queue_pair;
  SendReset(packet);
}

void StreamStack::SendReset(const Packet& packet) {
  resets_.push_back(packet);
  Pump();
}

bool StreamStack::SendPacket(const Packet& packet) { return port_->Send({&packet, 1}) == 1; }

void StreamStack::Pump() {
  for (; !resets_.empty(); resets_.pop_front()) {
    if (!SendPacket(resets_.front())) return;
  }
  // One packet of each end in turn, from where it was left.
  auto at = ends_.lower_bound(next_pump_);
  for (size_t idle = 0; idle <= ends_.size() && !ends_.empty();) {
    if (at == ends_.end()) at = ends_.begin();
    Packet packet;
    if (!at->second->Next(&packet)) {
      ++idle;
      ++at;
      continue;
    }
    next_pump_ = at->first;
    if (!SendPacket(packet)) return;  // on_ready goes on
    at->second->Sent(packet);
    idle = 0;
    next_pump_ = at->first + 1;
    ++at;
  }
}

void StreamStack::RunReady() {
  std::vector<uint32_t> ready;
  for (const auto& [number, end] : ends_) {
    if (end->IsReady()) ready.push_back(number);
  }
  if (ready.empty()) return;
  host_.Spend(costs_.system_call);
  for (const uint32_t number : ready) {
    if (End* const end = Find(number)) end->RunReady();
  }
  const bool again = std::any_of(ends_.begin(), ends_.end(), [](const auto& one) { return one.second->IsReady(); });
  if (again) Tell();
}

}  // namespace tokamak::bench
