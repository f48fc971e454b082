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

template <typename Request>
int CheckMemory(const Request& request) {
  if (request.length == 0 || request.length > UINT64_MAX - request.start) return EINVAL;
  return (request.start & kPageMask) == (request.hca_va & kPageMask) ? 0 : EINVAL;
}

// Returns the address of a region's first byte in requests.
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
      return With(command, &UserContext::QueryPort);
    case IB_USER_VERBS_CMD_ALLOC_PD:
      return AllocateDomain(command);
    case IB_USER_VERBS_CMD_DEALLOC_PD:
      return Destroy<DomainObject>(command, &ib_uverbs_dealloc_pd::pd_handle);
    case IB_USER_VERBS_CMD_REG_MR:
      return With(command, &UserContext::RegisterRegion);
    case IB_USER_VERBS_CMD_REREG_MR:
      return With(command, &UserContext::ReregisterRegion);
    case IB_USER_VERBS_CMD_ALLOC_MW:
      return With(command, &UserContext::AllocateWindow);
    case IB_USER_VERBS_CMD_DEALLOC_MW:
      return Destroy<WindowObject>(command, &ib_uverbs_dealloc_mw::mw_handle);
    case IB_USER_VERBS_CMD_DEREG_MR:
      return Destroy<RegionObject>(command, &ib_uverbs_dereg_mr::mr_handle);
    case IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL:
      return CreateChannel(command);
    case IB_USER_VERBS_CMD_CREATE_CQ:
      return With(command, &UserContext::CreateCompletionQueue);
    case IB_USER_VERBS_CMD_RESIZE_CQ:
      return With(command, &UserContext::ResizeCompletionQueue);
    case IB_USER_VERBS_CMD_DESTROY_CQ:
      return With(command, &UserContext::DestroyCompletionQueue);
    case IB_USER_VERBS_CMD_REQ_NOTIFY_CQ:
      return With(command, &UserContext::RequestNotify);
    case IB_USER_VERBS_CMD_CREATE_SRQ:
      return With(command, &UserContext::CreateSharedReceives);
    case IB_USER_VERBS_CMD_MODIFY_SRQ:
      return With(command, &UserContext::ModifySharedReceives);
    case IB_USER_VERBS_CMD_QUERY_SRQ:
      return With(command, &UserContext::QuerySharedReceives);
    case IB_USER_VERBS_CMD_DESTROY_SRQ:
      return With(command, &UserContext::DestroySharedReceives);
    case IB_USER_VERBS_CMD_CREATE_QP:
      return With(command, &UserContext::CreateQueuePair);
    case IB_USER_VERBS_CMD_MODIFY_QP:
      return With(command, &UserContext::ModifyQueuePair);
    case IB_USER_VERBS_CMD_QUERY_QP:
      return With(command, &UserContext::QueryQueuePair);
    case IB_USER_VERBS_CMD_DESTROY_QP:
      return With(command, &UserContext::DestroyQueuePair);
    case IB_USER_VERBS_CMD_CREATE_AH:
      return With(command, &UserContext::CreateAddress);
    case IB_USER_VERBS_CMD_DESTROY_AH:
      return Destroy<AddressObject>(command, &ib_uverbs_destroy_ah::ah_handle);
    case IB_USER_VERBS_CMD_ATTACH_MCAST:
    case IB_USER_VERBS_CMD_DETACH_MCAST:
      return With(command, &UserContext::ChangeGroups);
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
      return With(command, &UserContext::QueryDeviceExtended);
    case IB_USER_VERBS_EX_CMD_CREATE_CQ:
      return With(command, &UserContext::CreateCompletionQueueExtended);
    case IB_USER_VERBS_EX_CMD_CREATE_QP:
      return With(command, &UserContext::CreateQueuePairExtended);
    default:
      return EOPNOTSUPP;
  }
}

template <typename Request>
int UserContext::With(const Command& command, int (UserContext::*act)(const Command&, const Request&)) {
  Request request;
  if (const int error = command.Get(&request)) return error;
  return (this->*act)(command, request);
}

template <typename Request>
int UserContext::With(const Command& command, int (UserContext::*act)(const Request&)) {
  Request request;
  if (const int error = command.Get(&request)) return error;
  return (this->*act)(request);
}

template <typename T, typename Request>
int UserContext::Destroy(const Command& command, uint32_t Request::*handle) {
  Request request;
  if (const int error = command.Get(&request)) return error;
  return objects_.Destroy<T>(request.*handle);
}

template <typename T, typename Retire>
int UserContext::DestroyCounted(const Command& command, uint32_t handle, Retire retire) {
  T* const object = objects_.Find<T>(handle);
  if (object == nullptr || object->users > 0) return objects_.Destroy<T>(handle);  // the table knows the error
  const auto response = retire(*object);
  objects_.Destroy<T>(handle);
  return command.Put(response);
}

template <typename T, typename... Responses>
int UserContext::PutOrDestroy(const Command& command, const T& made, const Responses&... responses) {
  const int error = command.Put(responses...);
  if (error != 0) objects_.Destroy<T>(made.handle);
  return error;
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

int UserContext::QueryDeviceExtended(const Command& command, const ib_uverbs_ex_query_device& request) {
  if (request.comp_mask != 0 || request.reserved != 0) return EINVAL;
  ib_uverbs_ex_query_device_resp response{};
  response.base = device_.Attributes();
  response.response_length = command.Taken<ib_uverbs_ex_query_device_resp>();
  return command.Put(response);
}

int UserContext::QueryPort(const Command& command, const ib_uverbs_query_port& request) {
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
  return PutOrDestroy(command, *made, response);
}

int UserContext::RegisterRegion(const Command& command, const ib_uverbs_reg_mr& request) {
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
  return PutOrDestroy(command, *made, response);
}

// The region keeps its keys, as with the kernel's Soft-RoCE.
int UserContext::ReregisterRegion(const Command& command, const ib_uverbs_rereg_mr& request) {
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

int UserContext::AllocateWindow(const Command& command, const ib_uverbs_alloc_mw& request) {
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
  return PutOrDestroy(command, *made, response);
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

template <typename Request>
int UserContext::MakeCompletionQueue(const Request& request, UserCompletionQueue** made) {
  if (request.cqe == 0 || request.cqe > UserDevice::kMaxCompletions || request.comp_vector >= kVectors) return EINVAL;
  std::shared_ptr<EventPipe> events;
  if (request.comp_channel >= 0) {
    const auto found = channels_.find(request.comp_channel);
    if (found == channels_.end()) return EINVAL;
    events = found->second;
  }
  std::unique_ptr<UserCompletionQueue> queue;
  if (const int error = UserCompletionQueue::Make(device_, *memory_, request.cqe, request.user_handle,
                                                  std::move(events), *async_, &queue)) {
    return error;
  }
  *made = objects_.Add(std::move(queue));
  return *made == nullptr ? ENOMEM : 0;
}

int UserContext::CreateCompletionQueue(const Command& command, const ib_uverbs_create_cq& request) {
  UserCompletionQueue* made = nullptr;
  if (const int error = MakeCompletionQueue(request, &made)) return error;
  ib_uverbs_create_cq_resp response{};
  response.cq_handle = made->handle;
  response.cqe = made->ring().capacity();
  return PutOrDestroy(command, *made, response, rxe_create_cq_resp{made->ring().place()});
}

int UserContext::CreateCompletionQueueExtended(const Command& command, const ib_uverbs_ex_create_cq& request) {
  if (request.comp_mask != 0 || request.reserved != 0) return EINVAL;
  if (request.flags != 0) return EOPNOTSUPP;
  UserCompletionQueue* made = nullptr;
  if (const int error = MakeCompletionQueue(request, &made)) return error;
  ib_uverbs_ex_create_cq_resp response{};
  response.base.cq_handle = made->handle;
  response.base.cqe = made->ring().capacity();
  response.response_length = command.Taken<ib_uverbs_ex_create_cq_resp>();
  return PutOrDestroy(command, *made, response, rxe_create_cq_resp{made->ring().place()});
}

int UserContext::ResizeCompletionQueue(const Command& command, const ib_uverbs_resize_cq& request) {
  auto* const queue = objects_.Find<UserCompletionQueue>(request.cq_handle);
  if (queue == nullptr || request.cqe == 0 || request.cqe > UserDevice::kMaxCompletions) return EINVAL;
  if (const int error = queue->Resize(request.cqe)) return error;
  ib_uverbs_resize_cq_resp response{};
  response.cqe = queue->ring().capacity();
  return command.Put(response, rxe_resize_cq_resp{queue->ring().place()});
}

int UserContext::DestroyCompletionQueue(const Command& command, const ib_uverbs_destroy_cq& request) {
  return DestroyCounted<UserCompletionQueue>(command, request.cq_handle, [](UserCompletionQueue& queue) {
    ib_uverbs_destroy_cq_resp response{};
    response.comp_events_reported = queue.RetireCompletionEvents();
    response.async_events_reported = queue.RetireAsyncEvents();
    return response;
  });
}

int UserContext::RequestNotify(const ib_uverbs_req_notify_cq& request) {
  auto* const queue = objects_.Find<UserCompletionQueue>(request.cq_handle);
  if (queue == nullptr) return EINVAL;
  queue->Arm(request.solicited_only != 0);
  return 0;
}

// ---- Shared receives.

int UserContext::CreateSharedReceives(const Command& command, const ib_uverbs_create_srq& request) {
  auto* const domain = objects_.Find<DomainObject>(request.pd_handle);
  if (domain == nullptr) return EINVAL;
  std::unique_ptr<UserSharedReceives> receives;
  if (const int error = UserSharedReceives::Make(device_, *memory_, *domain, request.max_wr, request.max_sge,
                                                 request.user_handle, *async_, &receives)) {
    return error;
  }
  UserSharedReceives* const made = objects_.Add(std::move(receives));
  if (made == nullptr) return ENOMEM;
  ib_uverbs_create_srq_resp response{};
  response.srq_handle = made->handle;
  response.max_wr = made->ring().capacity();
  response.max_sge = made->max_sges();
  response.srqn = made->handle;
  const rxe_create_srq_resp drivers{made->ring().place(), made->handle, 0};
  if (const int error = PutOrDestroy(command, *made, response, drivers)) return error;
  limits_[&made->queue()] = made;
  return 0;
}

int UserContext::ModifySharedReceives(const Command& command, const ib_uverbs_modify_srq& request) {
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

int UserContext::QuerySharedReceives(const Command& command, const ib_uverbs_query_srq& request) {
  const auto* const receives = objects_.Find<UserSharedReceives>(request.srq_handle);
  if (receives == nullptr) return EINVAL;
  ib_uverbs_query_srq_resp response{};
  response.max_wr = receives->ring().capacity();
  response.max_sge = receives->max_sges();
  response.srq_limit = receives->limit();
  return command.Put(response);
}

int UserContext::DestroySharedReceives(const Command& command, const ib_uverbs_destroy_srq& request) {
  return DestroyCounted<UserSharedReceives>(command, request.srq_handle, [this](UserSharedReceives& receives) {
    ib_uverbs_destroy_srq_resp response{};
    response.events_reported = receives.RetireAsyncEvents();
    limits_.erase(&receives.queue());
    return response;
  });
}

void UserContext::OnReceiveLimit(const SharedReceiveQueue* queue) {
  const auto found = limits_.find(queue);
  if (found != limits_.end()) found->second->OnLimit();
}

// ---- Queue pairs.

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

int UserContext::CreateQueuePair(const Command& command, const ib_uverbs_create_qp& request) {
  UserQueuePair* made = nullptr;
  if (const int error = MakeQueuePair(request, &made)) return error;
  ib_uverbs_create_qp_resp response = made->Granted();
  response.qp_handle = made->handle;
  return PutOrDestroy(command, *made, response, made->Places());
}

int UserContext::CreateQueuePairExtended(const Command& command, const ib_uverbs_ex_create_qp& request) {
  UserQueuePair* made = nullptr;
  if (request.comp_mask != 0 || request.reserved != 0 || request.source_qpn != 0) return EINVAL;
  if (request.create_flags != 0) return EOPNOTSUPP;
  if (const int error = MakeQueuePair(request, &made)) return error;
  ib_uverbs_ex_create_qp_resp response{};
  response.base = made->Granted();
  response.base.qp_handle = made->handle;
  response.response_length = command.Taken<ib_uverbs_ex_create_qp_resp>();
  return PutOrDestroy(command, *made, response, made->Places());
}

int UserContext::ModifyQueuePair(const ib_uverbs_modify_qp& request) {
  auto* const queue_pair = objects_.Find<UserQueuePair>(request.qp_handle);
  return queue_pair == nullptr ? EINVAL : queue_pair->Modify(request);
}

int UserContext::QueryQueuePair(const Command& command, const ib_uverbs_query_qp& request) {
  const auto* const queue_pair = objects_.Find<UserQueuePair>(request.qp_handle);
  return queue_pair == nullptr ? EINVAL : command.Put(queue_pair->Query());
}

int UserContext::DestroyQueuePair(const Command& command, const ib_uverbs_destroy_qp& request) {
  return DestroyCounted<UserQueuePair>(command, request.qp_handle, [](UserQueuePair& queue_pair) {
    ib_uverbs_destroy_qp_resp response{};
    response.events_reported = queue_pair.RetireAsyncEvents();
    return response;
  });
}

// ---- Datagrams.

// A provider names the handle, in requests, by our number for it.
int UserContext::CreateAddress(const Command& command, const ib_uverbs_create_ah& request) {
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
  return PutOrDestroy(command, *made, response, rxe_create_ah_resp{made->handle, 0});
}

// The request to leave a group, ib_uverbs_detach_mcast, has the same form.
int UserContext::ChangeGroups(const Command& command, const ib_uverbs_attach_mcast& request) {
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
