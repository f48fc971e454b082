#include "sim/network/loopback_fabric.h"

#include <array>
#include <cstring>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/base/mutex.h"

namespace tokamak::sim {
namespace {

using verbs::Address;
using verbs::soft::Packet;
using verbs::soft::Port;
using verbs::soft::PortCallbacks;

using Ip = std::array<uint8_t, 16>;

// Sent together to one port, with their payloads.
struct Batch {
  std::vector<Packet> packets;
  std::vector<uint8_t> bytes;
};

uint64_t PayloadBytes(absl::Span<const Packet> packets) {
  uint64_t sum = 0;
  for (const Packet& packet : packets) sum += packet.payload_length();
  return sum;
}

// As from `sender`; `group`: of a multicast, or zeros.
void Fill(absl::Span<const Packet> packets, uint64_t bytes, const Address& sender, const Ip& group, Batch* batch) {
  batch->packets.assign(packets.begin(), packets.end());
  batch->bytes.resize(bytes);
  uint8_t* to = batch->bytes.data();
  for (Packet& packet : batch->packets) {
    packet.peer = sender;
    packet.group = group;
    const uint8_t* begin = to;
    for (uint32_t i = 0; i < packet.slices; ++i) {
      if (packet.payload[i].length == 0) continue;
      if (packet.payload[i].data != nullptr) {
        std::memcpy(to, packet.payload[i].data, packet.payload[i].length);
      } else {
        std::memset(to, 0, packet.payload[i].length);  // of a phantom region
      }
      to += packet.payload[i].length;
    }
    packet.slices = to == begin ? 0 : 1;
    packet.payload[0] = {begin, static_cast<uint32_t>(to - begin)};
  }
}

}  // namespace

class LoopbackFabric::Inbox final {
 public:
  Inbox(base::EventLoop& loop, Port::Receiver receiver, uint64_t max_bytes)
      : receiver_(std::move(receiver)), max_bytes_(max_bytes), signal_(loop.MakeSignal([this] { Deliver(); })) {}

  // Runs on any thread.
  void Put(absl::Span<const Packet> packets, const Address& sender, const Ip& group) {
    const uint64_t bytes = PayloadBytes(packets);
    const base::MutexLock lock(mutex_);
    if (signal_ == nullptr || waiting_bytes_ + bytes > max_bytes_) return;
    Batch batch;
    if (!spare_.empty()) {
      batch = std::move(spare_.back());
      spare_.pop_back();
    }
    Fill(packets, bytes, sender, group, &batch);
    waiting_bytes_ += bytes;
    waiting_.push_back(std::move(batch));
    signal_->Raise();
  }

  // Runs on the port's loop; nothing is delivered after.
  void Close() {
    std::unique_ptr<base::Signal> signal;
    const base::MutexLock lock(mutex_);
    signal.swap(signal_);
  }

 private:
  static constexpr size_t kMaxSpare = 64;

  void Deliver() {
    {
      const base::MutexLock lock(mutex_);
      arrived_.swap(waiting_);
    }
    for (const Batch& batch : arrived_) receiver_(batch.packets);
    const base::MutexLock lock(mutex_);
    for (Batch& batch : arrived_) {
      waiting_bytes_ -= batch.bytes.size();
      if (spare_.size() < kMaxSpare) spare_.push_back(std::move(batch));
    }
    arrived_.clear();
  }

  const Port::Receiver receiver_;
  const uint64_t max_bytes_;
  base::Mutex mutex_;
  std::vector<Batch> waiting_ ABSL_GUARDED_BY(mutex_);
  uint64_t waiting_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<Batch> spare_ ABSL_GUARDED_BY(mutex_);
  std::vector<Batch> arrived_;  // the loop's own
  std::unique_ptr<base::Signal> signal_ ABSL_GUARDED_BY(mutex_);
};

class LoopbackFabric::Exchange final {
 public:
  bool Add(const Address& address, std::shared_ptr<Inbox> inbox) {
    const base::MutexLock lock(mutex_);
    return inboxes_.emplace(address.ip, std::move(inbox)).second;
  }
  void Remove(const Address& address) {
    const base::MutexLock lock(mutex_);
    inboxes_.erase(address.ip);
  }
  std::shared_ptr<Inbox> Find(const Address& address) {
    const base::MutexLock lock(mutex_);
    const auto found = inboxes_.find(address.ip);
    return found == inboxes_.end() ? nullptr : found->second;
  }

  void Join(const Ip& group, std::shared_ptr<Inbox> inbox) {
    const base::MutexLock lock(mutex_);
    groups_[group].insert(std::move(inbox));
  }
  void Leave(const Ip& group, const std::shared_ptr<Inbox>& inbox) {
    const base::MutexLock lock(mutex_);
    const auto members = groups_.find(group);
    members->second.erase(inbox);
    if (members->second.empty()) groups_.erase(members);
  }
  std::set<std::shared_ptr<Inbox>> Members(const Ip& group) {
    const base::MutexLock lock(mutex_);
    const auto found = groups_.find(group);
    return found == groups_.end() ? std::set<std::shared_ptr<Inbox>>() : found->second;
  }

 private:
  base::Mutex mutex_;
  std::map<Ip, std::shared_ptr<Inbox>> inboxes_ ABSL_GUARDED_BY(mutex_);
  std::map<Ip, std::set<std::shared_ptr<Inbox>>> groups_ ABSL_GUARDED_BY(mutex_);
};

class LoopbackFabric::LoopbackPort final : public Port {
 public:
  LoopbackPort(std::shared_ptr<Exchange> exchange, std::shared_ptr<Inbox> inbox, const Address& address,
               const LoopbackOptions& options)
      : exchange_(std::move(exchange)), inbox_(std::move(inbox)), address_(address), options_(options) {}
  ~LoopbackPort() override {
    exchange_->Remove(address_);
    for (const Ip& group : groups_) exchange_->Leave(group, inbox_);
    inbox_->Close();
  }

  size_t Send(absl::Span<const Packet> packets) override {
    for (size_t begin = 0; begin < packets.size();) {
      size_t end = begin + 1;
      while (end < packets.size() && packets[end].peer.ip == packets[begin].peer.ip) ++end;
      Pass(packets.subspan(begin, end - begin));
      begin = end;
    }
    return packets.size();
  }

  absl::Status Join(const Address& group) override {
    groups_.insert(group.ip);
    exchange_->Join(group.ip, inbox_);
    return absl::OkStatus();
  }
  void Leave(const Address& group) override {
    groups_.erase(group.ip);
    exchange_->Leave(group.ip, inbox_);
  }

  const Address& address() const override { return address_; }
  uint32_t max_mtu() const override { return options_.max_mtu; }
  uint64_t receive_window() const override { return options_.receive_window; }

 private:
  // All are for one peer, or one group.
  void Pass(absl::Span<const Packet> packets) {
    const Address& peer = packets[0].peer;
    if (peer.is_multicast()) {
      for (const std::shared_ptr<Inbox>& inbox : exchange_->Members(peer.ip)) inbox->Put(packets, address_, peer.ip);
    } else if (const std::shared_ptr<Inbox> inbox = exchange_->Find(peer)) {
      inbox->Put(packets, address_, Ip{});
    }
  }

  const std::shared_ptr<Exchange> exchange_;
  const std::shared_ptr<Inbox> inbox_;
  const Address address_;
  const LoopbackOptions options_;
  std::set<Ip> groups_;
};

LoopbackFabric::LoopbackFabric(const LoopbackOptions& options)
    : options_(options), exchange_(std::make_shared<Exchange>()) {}

LoopbackFabric::~LoopbackFabric() = default;

absl::StatusOr<std::unique_ptr<Port>> LoopbackFabric::Open(base::EventLoop& loop, const Address& address,
                                                           PortCallbacks callbacks) {
  auto inbox = std::make_shared<Inbox>(loop, std::move(callbacks.on_packets), options_.receive_buffer);
  if (!exchange_->Add(address, inbox)) {
    return absl::AlreadyExistsError(absl::StrCat(address.ToString(), " is taken"));
  }
  return std::make_unique<LoopbackPort>(exchange_, std::move(inbox), address, options_);
}

}  // namespace tokamak::sim
