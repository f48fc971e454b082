#include "lib/verbs/ibv/device.h"

#include <cerrno>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/verbs/ibv/call_thread.h"
#include "lib/verbs/ibv/cm/rdma_cm.h"
#include "lib/verbs/ibv/completion_queue.h"
#include "lib/verbs/ibv/context.h"
#include "lib/verbs/ibv/loops.h"
#include "lib/verbs/ibv/memory.h"
#include "lib/verbs/ibv/off_loop_cm.h"
#include "lib/verbs/ibv/queue_pair.h"
#include "lib/verbs/ibv/shared_receives.h"
#include "lib/verbs/ibv/tcp/tcp_cm.h"
#include "lib/verbs/ibv/translation/errors.h"
#include "lib/verbs/ibv/translation/gid.h"

namespace tokamak::verbs::ibv {
namespace {

class IbvProtectionDomain final : public ProtectionDomain {
 public:
  IbvProtectionDomain(std::shared_ptr<Domain> domain, std::shared_ptr<CallThread> calls)
      : domain_(std::move(domain)), calls_(std::move(calls)) {}

  absl::StatusOr<std::unique_ptr<MemoryRegion>> RegisterMemory(absl::Span<uint8_t> memory, Access access) override {
    return IbvMemoryRegion::Register(domain_, memory, access);
  }
  absl::StatusOr<std::unique_ptr<MemoryWindow>> CreateMemoryWindow() override {
    return IbvMemoryWindow::Allocate(domain_);
  }
  absl::StatusOr<std::unique_ptr<QueuePair>> CreateQueuePair(const QueuePairOptions& options) override {
    return IbvQueuePair::Make(domain_, calls_, options);
  }
  absl::StatusOr<std::unique_ptr<SharedReceiveQueue>> CreateSharedReceiveQueue(uint32_t depth,
                                                                               uint32_t max_sges) override {
    auto core = SharedReceivesCore::Make(domain_, depth, max_sges);
    if (!core.ok()) return core.status();
    return std::make_unique<IbvSharedReceiveQueue>(*std::move(core));
  }

 private:
  const std::shared_ptr<Domain> domain_;
  const std::shared_ptr<CallThread> calls_;
};

class IbvDevice final : public Device {
 public:
  IbvDevice(std::shared_ptr<Context> context, std::shared_ptr<ConnectionManager> manager)
      : context_(std::move(context)),
        calls_(std::make_shared<CallThread>()),
        connects_(manager),
        manager_(calls_, std::move(manager), context_->address(), context_->limits().max_private_data) {
    if (auto* const rdma_cm = dynamic_cast<RdmaConnectionManager*>(connects_.get()); rdma_cm != nullptr) {
      context_->events().OnFirstData([rdma_cm](uint32_t number) { rdma_cm->OnFirstData(number); });
      context_->events().OnPathsChanged([rdma_cm] { rdma_cm->OnPathsChanged(); });
    }
  }
  ~IbvDevice() override {
    context_->events().OnFirstData(nullptr);
    context_->events().OnPathsChanged(nullptr);
  }

  const std::string& name() const override { return context_->name(); }
  const Limits& limits() const override { return context_->limits(); }
  bool is_rdma() const override { return true; }
  const Address& address() const override { return context_->address(); }

  absl::StatusOr<std::unique_ptr<ProtectionDomain>> CreateProtectionDomain() override {
    errno = 0;
    ibv_pd* const pd = ibv_alloc_pd(context_->device());
    if (pd == nullptr) return ErrnoStatus(errno == 0 ? EIO : errno, "ibv_alloc_pd");
    return std::make_unique<IbvProtectionDomain>(std::make_shared<Domain>(context_, pd), calls_);
  }

  absl::StatusOr<std::unique_ptr<CompletionQueue>> CreateCompletionQueue(base::EventLoop& loop, uint32_t depth,
                                                                         std::function<void()> on_event) override {
    if (depth == 0 || depth > limits().max_completions) {
      return absl::InvalidArgumentError(absl::StrCat("a completion queue has 1 to ", limits().max_completions));
    }
    auto core = CompletionCore::Make(context_, RealLoop(loop), depth);
    if (!core.ok()) return core.status();
    return std::make_unique<IbvCompletionQueue>(*std::move(core), std::move(on_event));
  }

  ConnectionManager& connection_manager() override { return manager_; }

  std::unique_ptr<DeviceWatch> Watch(base::EventLoop& loop, DeviceEventHandler handler) override {
    return context_->events().Watch(context_, loop, std::move(handler));
  }

 private:
  const std::shared_ptr<Context> context_;
  const std::shared_ptr<CallThread> calls_;
  const std::shared_ptr<ConnectionManager> connects_;  // on the thread
  OffLoopConnectionManager manager_;
};

// Making an address handle has the kernel look up the route without a queue pair. Other errors are
// left to the queue pair's own step.
absl::Status FindRouteTo(const Domain& domain, const PeerPort& peer) {
  const LocalPort port = domain.context().PortNow();
  Agreement agreement;
  agreement.path_mtu = port.active_mtu;
  absl::StatusOr<ibv::Step> step = ReadyToReceiveStep(port, peer, agreement);
  if (!step.ok()) return absl::OkStatus();
  errno = 0;
  ibv_ah* const route = ibv_create_ah(domain.pd(), &step->attributes.ah_attr);
  if (route != nullptr) {
    ibv_destroy_ah(route);
    return absl::OkStatus();
  }
  const absl::Status status = ErrnoStatus(errno, "ibv_create_ah");
  if (!absl::IsUnavailable(status)) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("no way to ", GidText(peer.gid), ": ", status.message()));
}

absl::StatusOr<std::unique_ptr<ConnectionManager>> MakeManager(const std::shared_ptr<Context>& context) {
  const std::function<LocalPort()> port = [context] { return context->PortNow(); };
  if (context->options().exchange == Exchange::kTcp) {
    TcpCmOptions options;
    options.address = context->address();
    options.port = port;
    options.max_reads = context->limits().max_reads;
    if (context->link() == LinkKind::kRoce) {
      errno = 0;
      ibv_pd* const pd = ibv_alloc_pd(context->device());
      if (pd == nullptr) return ErrnoStatus(errno == 0 ? EIO : errno, "ibv_alloc_pd");
      const auto domain = std::make_shared<Domain>(context, pd);
      options.find_route = [domain](const PeerPort& peer) { return FindRouteTo(*domain, peer); };
    }
    return TcpConnectionManager::Make(options);
  }
  RdmaCmOptions options;
  options.device = context->options().name.device;
  options.port_number = context->port().number;
  options.traffic_class = context->port().traffic_class;
  options.address = context->address();
  options.port = port;
  options.max_reads = context->limits().max_reads;
  return RdmaConnectionManager::Make(options);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Device>> OpenIbvDevice(const DeviceOptions& options) {
  absl::StatusOr<std::shared_ptr<Context>> context = Context::Open(options);
  if (!context.ok()) return context.status();
  auto manager = MakeManager(*context);
  if (!manager.ok()) return manager.status();
  return std::make_unique<IbvDevice>(*std::move(context), *std::move(manager));
}

}  // namespace tokamak::verbs::ibv
