#include "lib/verbs/kernel/user_context.h"

#include <infiniband/verbs.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "lib/verbs/kernel/program/program_memory.h"
#include "lib/verbs/kernel/program/rxe_abi.h"
#include "lib/verbs/kernel/program/translate.h"

namespace tokamak::verbs::kernel {
namespace {

constexpr uint32_t kVectors = 1;
constexpr uint8_t kPort = 1;
constexpr uint32_t kPageMask = 4095;

// `Request` is ib_uverbs_reg_mr or ib_uverbs_rereg_mr.
template <typename Request>
int CheckMemory(const Request& request) {
  if (request.length == 0 || request.length > UINT64_MAX - request.start) return EINVAL;
  return (request.start & kPageMask) == (request.hca_va & kPageMask) ? 0 : EINVAL;
}

// What requests call the first byte of a region.
uint64_t BaseOf(uint64_t hca_va, uint32_t access) { return (access & IBV_ACCESS_ZERO_BASED) != 0 ? 0 : hca_va; }

int CheckRegion(const ib_uverbs_reg_mr& request) {
  if (const int error = CheckMemory(request)) return error;
  return IsRegionAccess(request.access_flags) ? 0 : EINVAL;
}

absl::Span<uint8_t> MemoryAt(uint64_t start, uint64_t length) {
  return absl::MakeSpan(reinterpret_cast<uint8_t*>(start), length);
}

}  // namespace

std::unique_ptr<UserContext> UserContext::Open(UserDevice& device, std::function<void(int)> on_channel) {
  std::unique_ptr<RingMemory> memory = RingMemory::Make();
  if (memory == nullptr) return nullptr;
  return std::unique_ptr<UserContext>(new UserContext(device, std::move(memory), std::move(on_channel)));
}

UserContext::~UserContext() {
  if (async_ != nullptr) device_.Remove(*this);
  objects_.Clear();
}

int UserContext::Prepare(const Command& command) {
  if (command.extended()) return 0;
  if (command.number() == IB_USER_VERBS_CMD_REREG_MR) {
    ib_uverbs_rereg_mr request;
    if (const int error = command.Get(&request)) return error;
    if ((request.flags & IBV_REREG_MR_CHANGE_TRANSLATION) == 0) return 0;
    if (const int error = CheckMemory(request)) return error;
    return Populate(request.start, request.length, (request.access_flags & IBV_ACCESS_LOCAL_WRITE) != 0);
  }
  if (command.number() != IB_USER_VERBS_CMD_REG_MR) return 0;
  ib_uverbs_reg_mr request;
  if (const int error = command.Get(&request)) return error;
  if (const int error = CheckRegion(request)) return error;
  return Populate(request.start, request.length, (request.access_flags & IBV_ACCESS_LOCAL_WRITE) != 0);
}

int UserContext::Execute(const Command& command) {
  if (async_ == nullptr && (command.extended() || command.number() != IB_USER_VERBS_CMD_GET_CONTEXT)) return EINVAL;
  return command.extended() ? ExecuteExtended(command) : ExecuteBasic(command);
}

int UserContext::ExecuteBasic(const Command& command) {
  switch (command.number()) {
    case IB_USER_VERBS_CMD_GET_CONTEXT:
      return GetContext(command);
    case IB_USER_VERBS_CMD_QUERY_DEVICE:
      return QueryDevice(command);
    case IB_USER_VERBS_CMD_QUERY_PORT:
      return QueryPort(command);
    case IB_USER_VERBS_CMD_ALLOC_PD:
      return AllocateDomain(command);
    case IB_USER_VERBS_CMD_DEALLOC_PD: {
      ib_uverbs_dealloc_pd request;
      if (const int error = command.Get(&request)) return error;
      return objects_.Destroy<DomainObject>(request.pd_handle);
    }
    case IB_USER_VERBS_CMD_REG_MR:
      return RegisterRegion(command);
    case IB_USER_VERBS_CMD_REREG_MR:
      return ReregisterRegion(command);
    case IB_USER_VERBS_CMD_ALLOC_MW:
      return AllocateWindow(command);
    case IB_USER_VERBS_CMD_DEALLOC_MW: {
      ib_uverbs_dealloc_mw request;
      if (const int error = command.Get(&request)) return error;
      return objects_.Destroy<WindowObject>(request.mw_handle);
    }
    case IB_USER_VERBS_CMD_DEREG_MR: {
      ib_uverbs_dereg_mr request;
      if (const int error = command.Get(&request)) return error;
      return objects_.Destroy<RegionObject>(request.mr_handle);
    }
    case IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL:
      return CreateChannel(command);
    case IB_USER_VERBS_CMD_CREATE_CQ:
      return CreateCompletionQueue(command);
    case IB_USER_VERBS_CMD_RESIZE_CQ:
      return ResizeCompletionQueue(command);
    case IB_USER_VERBS_CMD_DESTROY_CQ:
      return DestroyCompletionQueue(command);
    case IB_USER_VERBS_CMD_REQ_NOTIFY_CQ:
      return RequestNotify(command);
    case IB_USER_VERBS_CMD_CREATE_SRQ:
      return CreateSharedReceives(command);
    case IB_USER_VERBS_CMD_MODIFY_SRQ:
      return ModifySharedReceives(command);
    case IB_USER_VERBS_CMD_QUERY_SRQ:
      return QuerySharedReceives(command);
    case IB_USER_VERBS_CMD_DESTROY_SRQ:
      return DestroySharedReceives(command);
    case IB_USER_VERBS_CMD_CREATE_QP:
      return CreateQueuePair(command);
    case IB_USER_VERBS_CMD_MODIFY_QP:
      return ModifyQueuePair(command);
    case IB_USER_VERBS_CMD_QUERY_QP:
      return QueryQueuePair(command);
    case IB_USER_VERBS_CMD_DESTROY_QP:
      return DestroyQueuePair(command);
    case IB_USER_VERBS_CMD_CREATE_AH:
      return CreateAddress(command);
    case IB_USER_VERBS_CMD_DESTROY_AH: {
      ib_uverbs_destroy_ah request;
      if (const int error = command.Get(&request)) return error;
      return objects_.Destroy<AddressObject>(request.ah_handle);
    }
    case IB_USER_VERBS_CMD_ATTACH_MCAST:
    case IB_USER_VERBS_CMD_DETACH_MCAST:
      return ChangeGroups(command);
    case IB_USER_VERBS_CMD_POST_SEND: {
      ib_uverbs_post_send request;
      if (const int error = command.Get(&request)) return error;
      return PostSend(request.qp_handle);
    }
    default:
      return command.number() < IB_USER_VERBS_CMD_THRESHOLD ? EOPNOTSUPP : EINVAL;
  }
}

int UserContext::ExecuteExtended(const Command& command) {
  switch (command.number()) {
    case IB_USER_VERBS_EX_CMD_QUERY_DEVICE:
      return QueryDeviceExtended(command);
    case IB_USER_VERBS_EX_CMD_CREATE_CQ:
      return CreateCompletionQueueExtended(command);
    case IB_USER_VERBS_EX_CMD_CREATE_QP:
      return CreateQueuePairExtended(command);
    default:
      return EOPNOTSUPP;
  }
}

// ---- The device.

int UserContext::GetContext(const Command& command) {
  if (async_ != nullptr) return EINVAL;
  std::unique_ptr<EventPipe> pipe = EventPipe::Make(sizeof(ib_uverbs_async_event_desc));
  if (pipe == nullptr) return EMFILE;
  auto async = std::make_unique<AsyncEvents>(std::move(pipe));
  const int descriptor = async->TakeReadEnd();
  ib_uverbs_get_context_resp response{};
  response.async_fd = static_cast<uint32_t>(descriptor);
  response.num_comp_vectors = kVectors;
  if (const int error = command.Put(response)) {
    close(descriptor);
    return error;
  }
  async_ = std::move(async);
  if (on_channel_) on_channel_(descriptor);
  device_.Add(*this);
  watch_ = device_.nic().Watch(device_.loop(), [this](const DeviceEventInfo& event) {
    if (event.event == DeviceEvent::kReceiveLimit) OnReceiveLimit(event.shared_receives);
  });
  return 0;
}

int UserContext::QueryDevice(const Command& command) { return command.Put(device_.Attributes()); }

int UserContext::QueryDeviceExtended(const Command& command) {
  ib_uverbs_ex_query_device request;
  if (const int error = command.Get(&request)) return error;
  if (request.comp_mask != 0 || request.reserved != 0) return EINVAL;
  ib_uverbs_ex_query_device_resp response{};
  response.base = device_.Attributes();
  response.response_length = command.Taken<ib_uverbs_ex_query_device_resp>();
  return command.Put(response);
}

int UserContext::QueryPort(const Command& command) {
  ib_uverbs_query_port request;
  if (const int error = command.Get(&request)) return error;
  if (request.port_num != kPort) return EINVAL;
  return command.Put(device_.PortAttributes());
}

void UserContext::OnPort(bool active) { async_->Raise(active ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR, kPort); }

// ---- Memory.

int UserContext::AllocateDomain(const Command& command) {
  absl::StatusOr<std::unique_ptr<ProtectionDomain>> domain = device_.nic().CreateProtectionDomain();
  if (!domain.ok()) return ErrnoOf(domain.status());
  DomainObject* const made = objects_.Add(std::make_unique<DomainObject>(*std::move(domain)));
  if (made == nullptr) return ENOMEM;
  ib_uverbs_alloc_pd_resp response{};
  response.pd_handle = made->handle;
  const int error = command.Put(response);
  if (error != 0) objects_.Destroy<DomainObject>(made->handle);
  return error;
}

int UserContext::RegisterRegion(const Command& command) {
  ib_uverbs_reg_mr request;
  if (const int error = command.Get(&request)) return error;
  if (const int error = CheckRegion(request)) return error;
  auto* const domain = objects_.Find<DomainObject>(request.pd_handle);
  if (domain == nullptr) return EINVAL;
  absl::StatusOr<std::unique_ptr<MemoryRegion>> region =
      soft::RegisterFrom(BaseOf(request.hca_va, request.access_flags), *domain->domain,
                         MemoryAt(request.start, request.length), AccessOf(request.access_flags));
  if (!region.ok()) return ErrnoOf(region.status());
  auto* const made = objects_.Add(std::make_unique<RegionObject>(*domain, *std::move(region)));
  if (made == nullptr) return ENOMEM;
  made->access = request.access_flags;
  made->base = BaseOf(request.hca_va, request.access_flags);
  ib_uverbs_reg_mr_resp response{};
  response.mr_handle = made->handle;
  response.lkey = made->region->lkey();
  response.rkey = made->region->rkey();
  const int error = command.Put(response);
  if (error != 0) objects_.Destroy<RegionObject>(made->handle);
  return error;
}

// It keeps its keys, as with the kernel's Soft-RoCE.
int UserContext::ReregisterRegion(const Command& command) {
  ib_uverbs_rereg_mr request;
  if (const int error = command.Get(&request)) return error;
  auto* const region = objects_.Find<RegionObject>(request.mr_handle);
  if (region == nullptr || request.flags == 0) return EINVAL;
  constexpr uint32_t kKnown = IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_PD | IBV_REREG_MR_CHANGE_ACCESS;
  if ((request.flags & ~kKnown) != 0) return EINVAL;

  DomainObject* domain = region->domain;
  if ((request.flags & IBV_REREG_MR_CHANGE_PD) != 0) domain = objects_.Find<DomainObject>(request.pd_handle);
  if (domain == nullptr) return EINVAL;
  const bool moves = (request.flags & IBV_REREG_MR_CHANGE_TRANSLATION) != 0;
  if (moves) {
    if (const int error = CheckMemory(request)) return error;
  }
  const uint32_t access = (request.flags & IBV_REREG_MR_CHANGE_ACCESS) != 0 ? request.access_flags : region->access;
  if (!IsRegionAccess(access)) return EINVAL;

  ib_uverbs_rereg_mr_resp response{};
  response.lkey = region->region->lkey();
  response.rkey = region->region->rkey();
  if (const int error = command.Put(response)) return error;
  MemoryRegion& nics = *region->region;
  const absl::Span<uint8_t> memory =
      moves ? MemoryAt(request.start, request.length) : absl::MakeSpan(nics.address(), nics.length());
  const uint64_t base = moves ? BaseOf(request.hca_va, access) : region->base;
  const absl::Status changed = soft::Reregister(nics, base, *domain->domain, memory, AccessOf(access));
  if (!changed.ok()) return ErrnoOf(changed);
  region->access = access;
  region->base = base;
  region->domain = domain;
  region->use = std::make_unique<Use>(domain);
  return 0;
}

int UserContext::AllocateWindow(const Command& command) {
  ib_uverbs_alloc_mw request;
  if (const int error = command.Get(&request)) return error;
  if (request.mw_type != IBV_MW_TYPE_1 && request.mw_type != IBV_MW_TYPE_2) return EINVAL;
  auto* const domain = objects_.Find<DomainObject>(request.pd_handle);
  if (domain == nullptr) return EINVAL;
  absl::StatusOr<std::unique_ptr<MemoryWindow>> window = domain->domain->CreateMemoryWindow();
  if (!window.ok()) return ErrnoOf(window.status());
  auto* const made = objects_.Add(std::make_unique<WindowObject>(*domain, *std::move(window)));
  if (made == nullptr) return ENOMEM;
  ib_uverbs_alloc_mw_resp response{};
  response.mw_handle = made->handle;
  response.rkey = made->window->rkey();
  const int error = command.Put(response);
  if (error != 0) objects_.Destroy<WindowObject>(made->handle);
  return error;
}

// ---- Completions.

int UserContext::CreateChannel(const Command& command) {
  std::shared_ptr<EventPipe> channel = EventPipe::Make(sizeof(ib_uverbs_comp_event_desc));
  if (channel == nullptr) return EMFILE;
  const int descriptor = channel->TakeReadEnd();
  ib_uverbs_create_comp_channel_resp response{};
  response.fd = static_cast<uint32_t>(descriptor);
  if (const int error = command.Put(response)) {
    close(descriptor);
    return error;
  }
  channels_[descriptor] = std::move(channel);
  if (on_channel_) on_channel_(descriptor);
  return 0;
}

int UserContext::MakeCompletionQueue(uint32_t depth, uint32_t vector, int32_t channel, uint64_t name,
                                     std::unique_ptr<UserCompletionQueue>* made) {
  if (depth == 0 || depth > UserDevice::kMaxCompletions || vector >= kVectors) return EINVAL;
  std::shared_ptr<EventPipe> events;
  if (channel >= 0) {
    const auto found = channels_.find(channel);
    if (found == channels_.end()) return EINVAL;
    events = found->second;
  }
  return UserCompletionQueue::Make(device_, *memory_, depth, name, std::move(events), *async_, made);
}

int UserContext::CreateCompletionQueue(const Command& command) {
  ib_uverbs_create_cq request;
  if (const int error = command.Get(&request)) return error;
  std::unique_ptr<UserCompletionQueue> queue;
  if (const int error =
          MakeCompletionQueue(request.cqe, request.comp_vector, request.comp_channel, request.user_handle, &queue)) {
    return error;
  }
  UserCompletionQueue* const made = objects_.Add(std::move(queue));
  if (made == nullptr) return ENOMEM;
  ib_uverbs_create_cq_resp response{};
  response.cq_handle = made->handle;
  response.cqe = made->ring().capacity();
  const int error = command.Put(response, rxe_create_cq_resp{made->ring().place()});
  if (error != 0) objects_.Destroy<UserCompletionQueue>(made->handle);
  return error;
}

int UserContext::CreateCompletionQueueExtended(const Command& command) {
  ib_uverbs_ex_create_cq request;
  if (const int error = command.Get(&request)) return error;
  if (request.comp_mask != 0 || request.reserved != 0) return EINVAL;
  if (request.flags != 0) return EOPNOTSUPP;
  std::unique_ptr<UserCompletionQueue> queue;
  if (const int error =
          MakeCompletionQueue(request.cqe, request.comp_vector, request.comp_channel, request.user_handle, &queue)) {
    return error;
  }
  UserCompletionQueue* const made = objects_.Add(std::move(queue));
  if (made == nullptr) return ENOMEM;
  ib_uverbs_ex_create_cq_resp response{};
  response.base.cq_handle = made->handle;
  response.base.cqe = made->ring().capacity();
  response.response_length = command.Taken<ib_uverbs_ex_create_cq_resp>();
  const int error = command.Put(response, rxe_create_cq_resp{made->ring().place()});
  if (error != 0) objects_.Destroy<UserCompletionQueue>(made->handle);
  return error;
}

int UserContext::ResizeCompletionQueue(const Command& command) {
  ib_uverbs_resize_cq request;
  if (const int error = command.Get(&request)) return error;
  auto* const queue = objects_.Find<UserCompletionQueue>(request.cq_handle);
  if (queue == nullptr || request.cqe == 0 || request.cqe > UserDevice::kMaxCompletions) return EINVAL;
  if (const int error = queue->Resize(request.cqe)) return error;
  ib_uverbs_resize_cq_resp response{};
  response.cqe = queue->ring().capacity();
  return command.Put(response, rxe_resize_cq_resp{queue->ring().place()});
}

int UserContext::DestroyCompletionQueue(const Command& command) {
  ib_uverbs_destroy_cq request;
  if (const int error = command.Get(&request)) return error;
  auto* const queue = objects_.Find<UserCompletionQueue>(request.cq_handle);
  if (queue == nullptr) return objects_.Destroy<UserCompletionQueue>(request.cq_handle);
  if (queue->users > 0) return EBUSY;
  ib_uverbs_destroy_cq_resp response{};
  response.comp_events_reported = queue->RetireCompletionEvents();
  response.async_events_reported = queue->RetireAsyncEvents();
  objects_.Destroy<UserCompletionQueue>(request.cq_handle);
  return command.Put(response);
}

int UserContext::RequestNotify(const Command& command) {
  ib_uverbs_req_notify_cq request;
  if (const int error = command.Get(&request)) return error;
  auto* const queue = objects_.Find<UserCompletionQueue>(request.cq_handle);
  if (queue == nullptr) return EINVAL;
  queue->Arm(request.solicited_only != 0);
  return 0;
}

// ---- Shared receives.

int UserContext::CreateSharedReceives(const Command& command) {
  ib_uverbs_create_srq request;
  if (const int error = command.Get(&request)) return error;
  auto* const domain = objects_.Find<DomainObject>(request.pd_handle);
  if (domain == nullptr) return EINVAL;
  std::unique_ptr<UserSharedReceives> receives;
  if (const int error = UserSharedReceives::Make(device_, *memory_, *domain, request.max_wr, request.max_sge,
                                                 request.user_handle, *async_, &receives)) {
    return error;
  }
  UserSharedReceives* const made = objects_.Add(std::move(receives));
  if (made == nullptr) return ENOMEM;
  limits_[&made->queue()] = made;
  ib_uverbs_create_srq_resp response{};
  response.srq_handle = made->handle;
  response.max_wr = made->ring().capacity();
  response.max_sge = made->max_sges();
  response.srqn = made->handle;
  const int error = command.Put(response, rxe_create_srq_resp{made->ring().place(), made->handle, 0});
  if (error != 0) {
    limits_.erase(&made->queue());
    objects_.Destroy<UserSharedReceives>(made->handle);
  }
  return error;
}

int UserContext::ModifySharedReceives(const Command& command) {
  ib_uverbs_modify_srq request;
  if (const int error = command.Get(&request)) return error;
  auto* const receives = objects_.Find<UserSharedReceives>(request.srq_handle);
  if (receives == nullptr) return EINVAL;
  if ((request.attr_mask & ~static_cast<uint32_t>(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT)) != 0) return EINVAL;
  if ((request.attr_mask & IBV_SRQ_MAX_WR) != 0) {
    rxe_modify_srq_cmd where;
    if (const int error = command.GetDriver<ib_uverbs_modify_srq>(&where)) return error;
    if (const int error = receives->Resize(request.max_wr)) return error;
    const mminfo& place = receives->ring().place();
    if (const int error = CopyToProgram(where.mmap_info_addr, &place, sizeof(place))) return error;
  }
  return (request.attr_mask & IBV_SRQ_LIMIT) != 0 ? receives->Arm(request.srq_limit) : 0;
}

int UserContext::QuerySharedReceives(const Command& command) {
  ib_uverbs_query_srq request;
  if (const int error = command.Get(&request)) return error;
  const auto* const receives = objects_.Find<UserSharedReceives>(request.srq_handle);
  if (receives == nullptr) return EINVAL;
  ib_uverbs_query_srq_resp response{};
  response.max_wr = receives->ring().capacity();
  response.max_sge = receives->max_sges();
  response.srq_limit = receives->limit();
  return command.Put(response);
}

int UserContext::DestroySharedReceives(const Command& command) {
  ib_uverbs_destroy_srq request;
  if (const int error = command.Get(&request)) return error;
  auto* const receives = objects_.Find<UserSharedReceives>(request.srq_handle);
  if (receives == nullptr) return objects_.Destroy<UserSharedReceives>(request.srq_handle);
  if (receives->users > 0) return EBUSY;
  ib_uverbs_destroy_srq_resp response{};
  response.events_reported = receives->RetireAsyncEvents();
  limits_.erase(&receives->queue());
  objects_.Destroy<UserSharedReceives>(request.srq_handle);
  return command.Put(response);
}

void UserContext::OnReceiveLimit(const SharedReceiveQueue* queue) {
  const auto found = limits_.find(queue);
  if (found != limits_.end()) found->second->OnLimit();
}

// ---- Queue pairs.

// `Request` is ib_uverbs_create_qp or ib_uverbs_ex_create_qp.
template <typename Request>
int UserContext::MakeQueuePair(const Request& request, UserQueuePair** made) {
  auto* const domain = objects_.Find<DomainObject>(request.pd_handle);
  auto* const sends_to = objects_.Find<UserCompletionQueue>(request.send_cq_handle);
  auto* const receives_to = objects_.Find<UserCompletionQueue>(request.recv_cq_handle);
  auto* const shared = request.is_srq != 0 ? objects_.Find<UserSharedReceives>(request.srq_handle) : nullptr;
  if (domain == nullptr || sends_to == nullptr || receives_to == nullptr) return EINVAL;
  if (request.is_srq != 0 && shared == nullptr) return EINVAL;
  QueuePairWish wish;
  wish.name = request.user_handle;
  wish.type = request.qp_type;
  wish.max_send_wr = request.max_send_wr;
  wish.max_recv_wr = request.max_recv_wr;
  wish.max_send_sge = request.max_send_sge;
  wish.max_recv_sge = request.max_recv_sge;
  wish.max_inline_data = request.max_inline_data;
  wish.all_signaled = request.sq_sig_all != 0;
  std::unique_ptr<UserQueuePair> queue_pair;
  if (const int error = UserQueuePair::Make(device_, *memory_, wish, *domain, *sends_to, *receives_to, shared, objects_,
                                            *async_, &queue_pair)) {
    return error;
  }
  *made = objects_.Add(std::move(queue_pair));
  return *made == nullptr ? ENOMEM : 0;
}

int UserContext::CreateQueuePair(const Command& command) {
  ib_uverbs_create_qp request;
  UserQueuePair* made = nullptr;
  if (const int error = command.Get(&request)) return error;
  if (const int error = MakeQueuePair(request, &made)) return error;
  ib_uverbs_create_qp_resp response = made->Granted();
  response.qp_handle = made->handle;
  const int error = command.Put(response, made->Places());
  if (error != 0) objects_.Destroy<UserQueuePair>(made->handle);
  return error;
}

int UserContext::CreateQueuePairExtended(const Command& command) {
  ib_uverbs_ex_create_qp request;
  UserQueuePair* made = nullptr;
  if (const int error = command.Get(&request)) return error;
  if (request.comp_mask != 0 || request.reserved != 0 || request.source_qpn != 0) return EINVAL;
  if (request.create_flags != 0) return EOPNOTSUPP;
  if (const int error = MakeQueuePair(request, &made)) return error;
  ib_uverbs_ex_create_qp_resp response{};
  response.base = made->Granted();
  response.base.qp_handle = made->handle;
  response.response_length = command.Taken<ib_uverbs_ex_create_qp_resp>();
  const int error = command.Put(response, made->Places());
  if (error != 0) objects_.Destroy<UserQueuePair>(made->handle);
  return error;
}

int UserContext::ModifyQueuePair(const Command& command) {
  ib_uverbs_modify_qp request;
  if (const int error = command.Get(&request)) return error;
  auto* const queue_pair = objects_.Find<UserQueuePair>(request.qp_handle);
  return queue_pair == nullptr ? EINVAL : queue_pair->Modify(request);
}

int UserContext::QueryQueuePair(const Command& command) {
  ib_uverbs_query_qp request;
  if (const int error = command.Get(&request)) return error;
  const auto* const queue_pair = objects_.Find<UserQueuePair>(request.qp_handle);
  return queue_pair == nullptr ? EINVAL : command.Put(queue_pair->Query());
}

int UserContext::DestroyQueuePair(const Command& command) {
  ib_uverbs_destroy_qp request;
  if (const int error = command.Get(&request)) return error;
  auto* const queue_pair = objects_.Find<UserQueuePair>(request.qp_handle);
  if (queue_pair == nullptr) return objects_.Destroy<UserQueuePair>(request.qp_handle);
  if (queue_pair->users > 0) return EBUSY;
  ib_uverbs_destroy_qp_resp response{};
  response.events_reported = queue_pair->RetireAsyncEvents();
  objects_.Destroy<UserQueuePair>(request.qp_handle);
  return command.Put(response);
}

// ---- Datagrams.

// A provider names the handle by our number for it in what it posts.
int UserContext::CreateAddress(const Command& command) {
  ib_uverbs_create_ah request;
  if (const int error = command.Get(&request)) return error;
  auto* const domain = objects_.Find<DomainObject>(request.pd_handle);
  if (domain == nullptr) return EINVAL;
  const ib_uverbs_ah_attr& wanted = request.attr;
  if (wanted.is_global == 0 || wanted.port_num != kPort || wanted.grh.sgid_index != 0) return EINVAL;
  DatagramAddress address;
  address.peer = AddressOfGid(wanted.grh.dgid);
  address.traffic_class = wanted.grh.traffic_class;
  absl::StatusOr<std::unique_ptr<AddressHandle>> handle =
      device_.nic().datagrams()->CreateAddressHandle(*domain->domain, address);
  if (!handle.ok()) return ErrnoOf(handle.status());
  AddressObject* const made = objects_.Add(std::make_unique<AddressObject>(*domain, *std::move(handle)));
  if (made == nullptr) return ENOMEM;
  ib_uverbs_create_ah_resp response{};
  response.ah_handle = made->handle;
  const int error = command.Put(response, rxe_create_ah_resp{made->handle, 0});
  if (error != 0) objects_.Destroy<AddressObject>(made->handle);
  return error;
}

int UserContext::ChangeGroups(const Command& command) {
  ib_uverbs_attach_mcast request;  // ib_uverbs_detach_mcast has the same form
  if (const int error = command.Get(&request)) return error;
  auto* const queue_pair = objects_.Find<UserQueuePair>(request.qp_handle);
  if (queue_pair == nullptr) return EINVAL;
  const Address group = AddressOfGid(request.gid);
  return command.number() == IB_USER_VERBS_CMD_ATTACH_MCAST ? queue_pair->Attach(group) : queue_pair->Detach(group);
}

uint32_t UserContext::CompletionsIn(uint32_t handle) const {
  const auto* const queue = objects_.Find<UserCompletionQueue>(handle);
  return queue == nullptr ? 0 : queue->ring().filled();
}

int UserContext::PostSend(uint32_t handle) {
  auto* const queue_pair = objects_.Find<UserQueuePair>(handle);
  return queue_pair == nullptr ? EINVAL : queue_pair->PostSend();
}

}  // namespace tokamak::verbs::kernel
