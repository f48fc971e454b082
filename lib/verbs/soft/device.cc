#include "lib/verbs/soft/device.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/verbs/soft/cm/connection_manager.h"
#include "lib/verbs/soft/datagram_queue_pair.h"
#include "lib/verbs/soft/memory_handles.h"
#include "lib/verbs/soft/nic.h"
#include "lib/verbs/soft/queue_pair.h"
#include "lib/verbs/soft/shared_receive_queue.h"
#include "lib/verbs/soft/state/completion_ring.h"

namespace tokamak::verbs::soft {
namespace {

absl::Status CheckDepth(uint32_t depth, const Limits& limits) {
  if (depth > 0 && depth <= limits.max_completions) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("a completion queue has 1 to ", limits.max_completions));
}

class SoftCompletionQueue final : public CompletionQueue {
 public:
  SoftCompletionQueue(std::shared_ptr<Nic> nic, std::shared_ptr<CompletionRing> ring)
      : nic_(std::move(nic)), ring_(std::move(ring)) {}
  ~SoftCompletionQueue() override {
    std::unique_ptr<base::Signal> signal;
    Nic::Control control(*nic_);
    signal = ring_->Close();
  }
  size_t Poll(absl::Span<Completion> completions) override { return ring_->Poll(completions); }
  void RequestNotify(bool solicited_only) override { ring_->Arm(solicited_only); }
  uint32_t depth() const override { return ring_->depth(); }
  absl::Status Resize(uint32_t depth) override {
    if (absl::Status s = CheckDepth(depth, nic_->limits()); !s.ok()) return s;
    CompletionRing::Space space = CompletionRing::SpaceFor(depth);  // allocated without the mutex
    Nic::Control control(*nic_);
    return ring_->Resize(depth, &space);
  }

  const Nic* nic() const { return nic_.get(); }
  const std::shared_ptr<CompletionRing>& ring() const { return ring_; }

 private:
  const std::shared_ptr<Nic> nic_;
  const std::shared_ptr<CompletionRing> ring_;
};

// All but the NIC's choices.
template <typename Options>
absl::StatusOr<QueuePairParts> PartsFor(const Nic& nic, DomainId domain, const Options& options) REQUIRES_NIC_MUTEX {
  const auto* send_queue = dynamic_cast<SoftCompletionQueue*>(options.send_queue);
  const auto* receive_queue = dynamic_cast<SoftCompletionQueue*>(options.receive_queue);
  if (send_queue == nullptr || receive_queue == nullptr || send_queue->nic() != &nic || receive_queue->nic() != &nic) {
    return absl::InvalidArgumentError("a queue pair needs completion queues of its own device");
  }
  if (&send_queue->ring()->loop() != &receive_queue->ring()->loop()) {
    return absl::InvalidArgumentError("both completion queues of a queue pair live on one loop");
  }
  const Limits& limits = nic.limits();
  if (options.max_send_requests > limits.max_send_requests ||
      options.max_receive_requests > limits.max_receive_requests || options.max_sges > limits.max_sges ||
      options.max_inline > limits.max_inline) {
    return absl::InvalidArgumentError("a queue pair beyond the limits of its device");
  }
  QueuePairParts parts;
  parts.domain = domain;
  parts.send_ring = send_queue->ring();
  parts.receive_ring = receive_queue->ring();
  parts.max_receive_requests = options.max_receive_requests;
  parts.max_sges = options.max_sges;
  if (options.shared_receives == nullptr) return parts;
  const auto* shared = dynamic_cast<SoftSharedReceiveQueue*>(options.shared_receives);
  if (shared == nullptr || shared->nic() != &nic || shared->receives()->domain() != domain ||
      !shared->receives()->BelongsTo(receive_queue->ring()->loop())) {
    return absl::InvalidArgumentError("queue pairs share receives within one domain and one loop");
  }
  parts.shared_receives = shared->receives();
  return parts;
}

absl::Status CheckBase(uint64_t base, absl::Span<uint8_t> memory) {
  if (memory.size() <= UINT64_MAX - base) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(memory.size(), " bytes named from ", base, " on: beyond 64 bits"));
}

class SoftProtectionDomain final : public ProtectionDomain {
 public:
  SoftProtectionDomain(std::shared_ptr<Nic> nic, DomainId id) : nic_(std::move(nic)), id_(id) {}

  absl::StatusOr<std::unique_ptr<MemoryRegion>> RegisterMemory(absl::Span<uint8_t> memory, Access access) override {
    return Register(RegionMemory(memory), access);
  }
  absl::StatusOr<std::unique_ptr<MemoryRegion>> Register(const RegionMemory& memory, Access access) {
    Nic::Control control(*nic_);
    const absl::StatusOr<uint32_t> key = nic_->Register(id_, memory, access);
    if (!key.ok()) return key.status();
    return std::make_unique<SoftMemoryRegion>(nic_, *key, memory.bytes);
  }

  absl::StatusOr<std::unique_ptr<MemoryWindow>> CreateMemoryWindow() override {
    Nic::Control control(*nic_);
    const absl::StatusOr<WindowId> window = nic_->CreateWindow(id_);
    if (!window.ok()) return window.status();
    return std::make_unique<SoftMemoryWindow>(nic_, *window);
  }

  absl::StatusOr<std::unique_ptr<QueuePair>> CreateQueuePair(const QueuePairOptions& options) override {
    Nic::Control control(*nic_);
    absl::StatusOr<QueuePairParts> parts = PartsFor(*nic_, id_, options);
    if (!parts.ok()) return parts.status();
    const absl::StatusOr<ConnectedCore*> core = nic_->CreateQueuePair(*std::move(parts), options);
    if (!core.ok()) return core.status();
    return std::make_unique<SoftQueuePair>(nic_, *core, options);
  }

  absl::StatusOr<std::unique_ptr<SharedReceiveQueue>> CreateSharedReceiveQueue(uint32_t depth,
                                                                               uint32_t max_sges) override {
    const Limits& limits = nic_->limits();
    if (depth == 0 || depth > limits.max_receive_requests || max_sges > limits.max_sges) {
      return absl::InvalidArgumentError(absl::StrCat("a shared receive queue has 1 to ", limits.max_receive_requests,
                                                     " receives of at most ", limits.max_sges, " sges"));
    }
    return std::make_unique<SoftSharedReceiveQueue>(nic_, id_, depth, max_sges);
  }

  const Nic* nic() const { return nic_.get(); }
  DomainId id() const { return id_; }

 private:
  const std::shared_ptr<Nic> nic_;
  const DomainId id_;
};

class SoftDatagrams final : public Datagrams {
 public:
  explicit SoftDatagrams(std::shared_ptr<Nic> nic) : nic_(std::move(nic)) {}

  absl::StatusOr<std::unique_ptr<AddressHandle>> CreateAddressHandle(ProtectionDomain& domain,
                                                                     const DatagramAddress& address) override {
    const absl::StatusOr<DomainId> id = IdOf(domain);
    if (!id.ok()) return id.status();
    if (address.peer.is_unspecified() || address.peer.is_ipv4() != nic_->address().is_ipv4()) {
      return absl::InvalidArgumentError(absl::StrCat("no datagrams go from ", nic_->address().ToString(), " to ",
                                                     address.peer.ToString(),
                                                     ": an address of the same family is needed"));
    }
    return std::make_unique<SoftAddressHandle>(nic_, *id, address);
  }

  absl::StatusOr<std::unique_ptr<DatagramQueuePair>> CreateQueuePair(ProtectionDomain& domain,
                                                                     const DatagramQueuePairOptions& options) override {
    const absl::StatusOr<DomainId> id = IdOf(domain);
    if (!id.ok()) return id.status();
    Nic::Control control(*nic_);
    absl::StatusOr<QueuePairParts> parts = PartsFor(*nic_, *id, options);
    if (!parts.ok()) return parts.status();
    const absl::StatusOr<DatagramCore*> core = nic_->CreateDatagramQueuePair(*std::move(parts), options);
    if (!core.ok()) return core.status();
    return std::make_unique<SoftDatagramQueuePair>(nic_, *core, options);
  }

 private:
  absl::StatusOr<DomainId> IdOf(const ProtectionDomain& domain) const {
    const auto* own = dynamic_cast<const SoftProtectionDomain*>(&domain);
    if (own == nullptr || own->nic() != nic_.get()) {
      return absl::InvalidArgumentError("the protection domain is another device's");
    }
    return own->id();
  }

  const std::shared_ptr<Nic> nic_;
};

class SoftDeviceHandle final : public SoftDevice {
 public:
  SoftDeviceHandle(std::shared_ptr<Nic> nic, std::string name, SoftConnectionManager& manager)
      : nic_(std::move(nic)), name_(std::move(name)), manager_(manager), datagrams_(nic_) {}

  const std::string& name() const override { return name_; }
  const Limits& limits() const override { return nic_->limits(); }
  bool is_rdma() const override { return false; }
  const Address& address() const override { return nic_->address(); }

  absl::StatusOr<std::unique_ptr<ProtectionDomain>> CreateProtectionDomain() override {
    Nic::Control control(*nic_);
    return std::make_unique<SoftProtectionDomain>(nic_, nic_->NewDomain());
  }

  absl::StatusOr<std::unique_ptr<CompletionQueue>> CreateCompletionQueue(base::EventLoop& loop, uint32_t depth,
                                                                         std::function<void()> on_event) override {
    if (absl::Status s = CheckDepth(depth, limits()); !s.ok()) return s;
    auto ring = std::make_shared<CompletionRing>(depth, loop.MakeSignal(std::move(on_event)), loop);
    return std::make_unique<SoftCompletionQueue>(nic_, std::move(ring));
  }

  ConnectionManager& connection_manager() override { return manager_; }
  Datagrams* datagrams() override { return &datagrams_; }

  std::unique_ptr<DeviceWatch> Watch(base::EventLoop& loop, DeviceEventHandler handler) override {
    return nic_->watches().Add(nic_, loop, std::move(handler));
  }

  DeviceCounters counters() const override {
    Nic::Control control(*nic_);
    return nic_->counters();
  }

  void WithManager(absl::FunctionRef<void(SoftConnectionManager&)> call) override {
    Nic::Control control(*nic_);
    call(manager_);
  }

  absl::StatusOr<QueuePairCounters> queue_pair_counters(uint32_t number) const override {
    Nic::Control control(*nic_);
    return nic_->queue_pair_counters(number);
  }

 private:
  const std::shared_ptr<Nic> nic_;
  const std::string name_;
  SoftConnectionManager& manager_;  // the NIC's
  SoftDatagrams datagrams_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<SoftDevice>> OpenSoftDevice(base::EventLoop& nic_loop, Fabric& fabric,
                                                           base::Trace& trace, const DeviceOptions& options) {
  absl::StatusOr<std::shared_ptr<Nic>> nic = Nic::Open(nic_loop, fabric, trace, options);
  if (!nic.ok()) return nic.status();
  auto manager = std::make_unique<SoftConnectionManager>(**nic);
  SoftConnectionManager& connection_manager = *manager;
  (*nic)->SetManager(std::move(manager));
  return std::make_unique<SoftDeviceHandle>(*std::move(nic), options.name, connection_manager);
}

absl::StatusOr<std::unique_ptr<MemoryRegion>> RegisterFrom(uint64_t base, ProtectionDomain& domain,
                                                           absl::Span<uint8_t> memory, Access access) {
  if (absl::Status s = CheckBase(base, memory); !s.ok()) return s;
  return static_cast<SoftProtectionDomain&>(domain).Register(RegionMemory(memory, base), access);
}

absl::Status Reregister(MemoryRegion& region, uint64_t base, ProtectionDomain& domain, absl::Span<uint8_t> memory,
                        Access access) {
  if (absl::Status s = CheckBase(base, memory); !s.ok()) return s;
  return static_cast<SoftMemoryRegion&>(region).Change(static_cast<SoftProtectionDomain&>(domain).id(),
                                                       RegionMemory(memory, base), access);
}

bool ChooseNextKey(MemoryWindow& window, uint32_t next, bool zero_based) {
  if (!KeyTable::MayFollow(window.rkey(), next)) return false;
  static_cast<SoftMemoryWindow&>(window).Choose(next, zero_based);
  return true;
}

}  // namespace tokamak::verbs::soft
