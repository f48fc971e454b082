#include "tests/transport/raw_peer.h"

#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/check.h"

namespace tokamak::transport::testing {
namespace {

constexpr uint64_t kReceiveBit = 1u << 16;
constexpr uint64_t kBulkBit = 1u << 17;

}  // namespace

Header Transfer(uint64_t number, const base::ObjectId& id, uint64_t size, Protocol protocol) {
  Header header;
  header.kind = MessageKind::kTransfer;
  header.transfer = number;
  header.object = id;
  header.size = {size, 0};
  header.protocol = protocol;
  header.deadline_ms = 5000;
  return header;
}

Header Plain(MessageKind kind, uint64_t number, Protocol protocol) {
  Header header;
  header.kind = kind;
  header.transfer = number;
  header.protocol = protocol;
  return header;
}

RawPeer::RawPeer(World& world, uint8_t last_byte_of_ip)
    : world_(world),
      loop_(world.time.MakeLoop()),
      nic_loop_(world.time.MakeLoop()),
      memory_(1 << 20),
      slots_(uint64_t{kSlot} * kReceives) {
  hello.bulk_queue_pairs = 1;
  hello.reads_served = 16;
  hello.immediate = true;
  hello.slot_size = kSlot;
  hello.first_slots = hello.receive_slots = kReceives;
  hello.max_transfers = 1024;
  hello.max_calls = 256;
  hello.token = 42;

  verbs::soft::DeviceOptions options;
  options.address = *verbs::Address::Parse(absl::StrCat("10.0.0.", last_byte_of_ip));
  options.seed = last_byte_of_ip;
  device_ = *verbs::soft::OpenSoftDevice(*nic_loop_, *world.fabric, world.trace, options);
  domain_ = *device_->CreateProtectionDomain();
  memory_region_ =
      *domain_->RegisterMemory(absl::MakeSpan(memory_), verbs::kLocalWrite | verbs::kRemoteRead | verbs::kRemoteWrite);
  slots_region_ = *domain_->RegisterMemory(absl::MakeSpan(slots_), verbs::kLocalWrite);
  completions_ = *device_->CreateCompletionQueue(*loop_, 4096, [this] { Drain(); });
  completions_->RequestNotify();
  for (uint8_t queue = 0; queue < kQueues; ++queue) MakeQueuePair(queue);
}

RawPeer::~RawPeer() {
  for (auto& connection : connections_) connection.reset();
  for (auto& queue_pair : queue_pairs_) queue_pair.reset();
}

void RawPeer::MakeQueuePair(uint8_t queue) {
  verbs::QueuePairOptions options;
  options.send_queue = completions_.get();
  options.receive_queue = completions_.get();
  options.max_send_requests = 1024;
  options.max_receive_requests = kReceives;
  options.remote_access = verbs::kRemoteRead | verbs::kRemoteWrite;
  queue_pairs_[queue] = *domain_->CreateQueuePair(options);
  if (queue == 0) {
    for (uint32_t slot = 0; slot < kReceives; ++slot) PostReceive(slot);
    return;
  }
  for (uint32_t i = 0; i < 64; ++i) {
    const verbs::Sge piece{memory_.data() + memory_.size() - 8, 8, memory_region_->lkey()};
    const verbs::ReceiveRequest request{kReceiveBit | kBulkBit, absl::MakeConstSpan(&piece, 1)};
    CHECK(queue_pairs_[queue]->PostReceive(absl::MakeConstSpan(&request, 1)).ok());
  }
}

void RawPeer::DropRail() {
  connections_[kRailQueue].reset();
  queue_pairs_[kRailQueue].reset();
  MakeQueuePair(kRailQueue);
}

std::vector<uint8_t> RawPeer::HelloFor(uint8_t queue) const {
  Hello mine = hello;
  mine.queue = queue;
  std::vector<uint8_t> bytes(kHelloSize);
  EncodeHello(mine, absl::MakeSpan(bytes));
  return bytes;
}

void RawPeer::Connect(const verbs::Address& to, std::vector<uint8_t> queues) {
  for (uint8_t queue : queues) {
    if (queue == kRailQueue) DropRail();
    const std::vector<uint8_t> private_data = HelloFor(queue);
    verbs::ConnectOptions options;
    options.private_data = private_data;
    connections_[queue] = *device_->connection_manager().Connect(
        *queue_pairs_[queue], to, options, [this, queue](const verbs::ConnectionEvent& e) { OnEvent(queue, e); });
  }
}

verbs::Address RawPeer::service() const {
  verbs::Address address = device_->address();
  address.port = 7000;
  return address;
}

void RawPeer::Listen() {
  listener_ = *device_->connection_manager().Listen(
      *loop_, service(), [this](std::unique_ptr<verbs::ConnectionRequest> request) {
        const auto theirs = DecodeHello(request->private_data());
        ASSERT_TRUE(theirs.ok() && theirs->queue < kQueues) << theirs.status();
        hello.token = theirs->token;
        const uint8_t queue = theirs->queue;
        const std::vector<uint8_t> private_data = HelloFor(queue);
        if (hello.version != kProtocolVersion) return request->Reject(private_data);
        if (refuses_bulk && queue > 0) {
          ++bulk_refused;
          return request->Reject({});
        }
        if (queue == kRailQueue) DropRail();
        verbs::ConnectOptions options;
        options.private_data = private_data;
        auto made = request->Accept(*queue_pairs_[queue], options,
                                    [this, queue](const verbs::ConnectionEvent& e) { OnEvent(queue, e); });
        if (made.ok()) connections_[queue] = *std::move(made);  // it has no second set of queue pairs
      });
}

void RawPeer::OnEvent(uint8_t queue, const verbs::ConnectionEvent& event) {
  using Kind = verbs::ConnectionEvent::Kind;
  established_[queue] |= event.kind == Kind::kEstablished;
  disconnected_ |= event.kind == Kind::kDisconnected && queue == 0;
  if (event.kind == Kind::kRejected) {
    rejected_ = true;
    rejection_.assign(event.private_data.begin(), event.private_data.end());
  }
}

bool RawPeer::up() const { return established_[0] && established_[1]; }

void RawPeer::Send(const Header& header, const std::vector<uint8_t>& body) {
  std::vector<uint8_t> bytes(MessageSize(header, body.size()));
  EncodeMessage(header, body, absl::MakeSpan(bytes));
  SendBytes(bytes);
}

void RawPeer::SendBytes(const std::vector<uint8_t>& bytes) {
  verbs::SendRequest request;
  verbs::Sge piece;
  if (!bytes.empty()) {
    sent_.push_back(bytes);
    sent_regions_.push_back(*domain_->RegisterMemory(absl::MakeSpan(sent_.back()), verbs::kLocalRead));
    piece = {sent_.back().data(), static_cast<uint32_t>(bytes.size()), sent_regions_.back()->lkey()};
    request.sges = absl::MakeConstSpan(&piece, 1);
  }
  request.flags = verbs::kSignaled;
  queue_pairs_[0]->PostSend(absl::MakeConstSpan(&request, 1));
}

void RawPeer::Bulk(verbs::Opcode opcode, const RemoteRange& remote, uint32_t size, uint32_t immediate, uint8_t queue) {
  verbs::SendRequest request;
  const verbs::Sge piece{memory_.data(), size, memory_region_->lkey()};
  if (size > 0) request.sges = absl::MakeConstSpan(&piece, 1);
  request.id = kBulkBit;
  request.opcode = opcode;
  request.flags = verbs::kSignaled;
  request.remote_address = remote.address;
  request.rkey = remote.rkey;
  request.immediate = immediate;
  queue_pairs_[queue]->PostSend(absl::MakeConstSpan(&request, 1));
}

RemoteRange RawPeer::range() const { return {reinterpret_cast<uintptr_t>(memory_.data()), memory_region_->rkey()}; }

void RawPeer::PostReceive(uint32_t slot) {
  const verbs::Sge piece{slots_.data() + uint64_t{slot} * kSlot, kSlot, slots_region_->lkey()};
  const verbs::ReceiveRequest request{kReceiveBit | slot, absl::MakeConstSpan(&piece, 1)};
  queue_pairs_[0]->PostReceive(absl::MakeConstSpan(&request, 1));
}

void RawPeer::Drain() {
  completions_->RequestNotify();
  std::array<verbs::Completion, 16> polled;
  while (size_t count = completions_->Poll(absl::MakeSpan(polled))) {
    for (size_t i = 0; i < count; ++i) {
      const verbs::Completion& completion = polled[i];
      if ((completion.id & kReceiveBit) == 0) {
        if ((completion.id & kBulkBit) != 0) bulk_statuses.push_back(completion.status);
        continue;
      }
      if (completion.status != verbs::CompletionStatus::kSuccess || (completion.id & kBulkBit) != 0) continue;
      const auto slot = static_cast<uint32_t>(completion.id & 0xffff);
      if (on_bytes) {
        const uint8_t* bytes = slots_.data() + uint64_t{slot} * kSlot;
        on_bytes({bytes, bytes + completion.byte_count});
        PostReceive(slot);
        continue;
      }
      const auto message = DecodeMessage({slots_.data() + uint64_t{slot} * kSlot, completion.byte_count});
      ASSERT_TRUE(message.ok()) << "the endpoint sent a malformed message: " << message.status();
      received.push_back({message->header, {message->body.begin(), message->body.end()}});
      PostReceive(slot);
      if (on_message) on_message(Received(received.back()));
    }
  }
}

size_t RawPeer::Count(MessageKind kind) const {
  size_t count = 0;
  for (const Received& one : received) count += one.header.kind == kind;
  return count;
}

const RawPeer::Received* RawPeer::Await(MessageKind kind) {
  world_.RunUntil([&] { return Count(kind) > 0; }, base::Seconds(5));
  for (const Received& one : received) {
    if (one.header.kind == kind) return &one;
  }
  ADD_FAILURE() << "no " << ToString(kind) << " came";
  return nullptr;
}

}  // namespace tokamak::transport::testing
