#include "lib/verbs/kernel/cm/cm_context.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <utility>

#include "lib/verbs/kernel/cm/connected_cm_id.h"
#include "lib/verbs/kernel/cm/datagram_cm_id.h"
#include "lib/verbs/kernel/program/program_memory.h"

namespace tokamak::verbs::kernel {
namespace {

// Ids and memberships have one number space for all channels, since they may move between them.
uint32_t NextHandle() {
  static uint32_t last = 0;
  return ++last;
}

template <typename Response>
int Put(uint64_t to, const Response& response, size_t room) {
  return CopyToProgram(to, &response, std::min(sizeof(response), room));
}

}  // namespace

CmContext::CmContext(const std::vector<UserDevice*>& devices, std::function<CmContext*(int)> find)
    : devices_(devices), find_(std::move(find)), count_(eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE | EFD_NONBLOCK)) {}

CmContext::~CmContext() { ids_.clear(); }

// Shares one file description with the program, which decides whether it blocks; harmless, as only
// we read it, and only when there is an event.
int CmContext::MakeDescriptor() const {
  const int descriptor = fcntl(count_.get(), F_DUPFD_CLOEXEC, 0);
  if (descriptor >= 0) fcntl(descriptor, F_SETFL, 0);
  return descriptor;
}

int CmContext::Execute(const void* buffer, size_t size) {
  rdma_ucm_cmd_hdr header;
  if (size < sizeof(header)) return EINVAL;
  std::memcpy(&header, buffer, sizeof(header));
  if (header.in + sizeof(header) > size) return EINVAL;
  const void* const request = static_cast<const uint8_t*>(buffer) + sizeof(header);
  const size_t length = header.in;
  switch (header.cmd) {
    case RDMA_USER_CM_CMD_CREATE_ID:
      return CreateId(request, length);
    case RDMA_USER_CM_CMD_DESTROY_ID:
      return DestroyId(request, length);
    case RDMA_USER_CM_CMD_BIND_IP:
      return BindIp(request, length);
    case RDMA_USER_CM_CMD_BIND:
      return Bind(request, length);
    case RDMA_USER_CM_CMD_RESOLVE_IP:
      return ResolveIp(request, length);
    case RDMA_USER_CM_CMD_RESOLVE_ADDR:
      return ResolveAddress(request, length);
    case RDMA_USER_CM_CMD_RESOLVE_ROUTE:
      return ResolveRoute(request, length);
    case RDMA_USER_CM_CMD_QUERY_ROUTE:
      return QueryRoute(request, length);
    case RDMA_USER_CM_CMD_CONNECT:
      return Connect(request, length);
    case RDMA_USER_CM_CMD_LISTEN:
      return Listen(request, length);
    case RDMA_USER_CM_CMD_ACCEPT:
      return Accept(request, length);
    case RDMA_USER_CM_CMD_REJECT:
      return Reject(request, length);
    case RDMA_USER_CM_CMD_DISCONNECT:
      return Disconnect(request, length);
    case RDMA_USER_CM_CMD_INIT_QP_ATTR:
      return InitAttributes(request, length);
    case RDMA_USER_CM_CMD_GET_EVENT:
      return GetEvent(request, length);
    case RDMA_USER_CM_CMD_SET_OPTION:
      return SetOption(request, length);
    case RDMA_USER_CM_CMD_NOTIFY:
      return Notify(request, length);
    case RDMA_USER_CM_CMD_MIGRATE_ID:
      return Migrate(request, length);
    case RDMA_USER_CM_CMD_JOIN_IP_MCAST:
      return JoinIpGroup(request, length);
    case RDMA_USER_CM_CMD_JOIN_MCAST:
      return JoinGroup(request, length);
    case RDMA_USER_CM_CMD_LEAVE_MCAST:
      return LeaveGroup(request, length);
    default:
      return header.cmd <= RDMA_USER_CM_CMD_JOIN_MCAST ? ENOSYS : EINVAL;
  }
}

// As the kernel does, takes requests that are shorter or longer than it knows.
template <typename Request>
int CmContext::Get(const void* buffer, size_t size, Request* request) const {
  *request = Request();
  std::memcpy(static_cast<void*>(request), buffer, std::min(size, sizeof(Request)));
  return 0;
}

CmId* CmContext::Find(uint32_t handle) const {
  const auto found = ids_.find(handle);
  return found == ids_.end() ? nullptr : found->second.get();
}

uint32_t CmContext::NewHandle() { return ids_.size() < kMaxIds ? NextHandle() : 0; }

void CmContext::Adopt(std::unique_ptr<CmId> id) { ids_.emplace(id->handle(), std::move(id)); }

// ---- Events.

void CmContext::Raise(CmId& id, const rdma_ucm_event_resp& event) {
  events_.push_back({&id, event});
  const uint64_t one = 1;
  if (write(count_.get(), &one, sizeof(one)) != sizeof(one)) return;  // the counter cannot overflow
}

int CmContext::GetEvent(const void* buffer, size_t size) {
  rdma_ucm_get_event request;
  if (const int error = Get(buffer, size, &request)) return error;
  if (events_.empty()) return EAGAIN;
  const Event event = events_.front();
  if (const int error = Put(request.response, event.event, sizeof(event.event))) return error;
  events_.pop_front();
  ++event.id->events_reported;
  if (const auto joined = memberships_.find(event.event.id); joined != memberships_.end()) {
    ++joined->second.events_reported;
  }
  uint64_t one = 0;
  if (read(count_.get(), &one, sizeof(one)) != sizeof(one)) return 0;
  return 0;
}

void CmContext::TakeEvents(absl::FunctionRef<bool(const Event&)> wanted, std::deque<Event>* taken) {
  std::deque<Event> kept;
  for (const Event& event : events_) (wanted(event) ? *taken : kept).push_back(event);
  events_.swap(kept);
  for (size_t i = 0; i < taken->size(); ++i) {
    uint64_t one = 0;
    if (read(count_.get(), &one, sizeof(one)) != sizeof(one)) break;
  }
}

// ---- Commands.

int CmContext::CreateId(const void* buffer, size_t size) {
  rdma_ucm_create_id request;
  if (const int error = Get(buffer, size, &request)) return error;
  if (request.ps != RDMA_PS_TCP && request.ps != RDMA_PS_UDP) return EINVAL;
  const uint32_t handle = NewHandle();
  if (handle == 0) return ENOMEM;
  const rdma_ucm_create_id_resp response{handle};
  if (const int error = Put(request.response, response, sizeof(response))) return error;
  if (request.ps == RDMA_PS_TCP) {
    Adopt(std::make_unique<ConnectedCmId>(*this, devices_, handle, request.uid));
  } else {
    Adopt(std::make_unique<DatagramCmId>(*this, devices_, handle, request.uid));
  }
  return 0;
}

int CmContext::DestroyId(const void* buffer, size_t size) {
  rdma_ucm_destroy_id request;
  if (const int error = Get(buffer, size, &request)) return error;
  CmId* const id = Find(request.id);
  if (id == nullptr) return ENOENT;
  std::deque<Event> unread;
  TakeEvents([id](const Event& event) { return event.id == id; }, &unread);
  const uint32_t reported = id->events_reported;
  // Requests that the program has not seen go with the listening id.
  for (const Event& event : unread) {
    if (event.event.event == static_cast<uint32_t>(CmEvent::kConnectRequest)) ids_.erase(event.event.id);
  }
  for (auto joined = memberships_.begin(); joined != memberships_.end();) {
    joined = joined->second.id == id ? memberships_.erase(joined) : std::next(joined);
  }
  ids_.erase(request.id);
  return Put(request.response, rdma_ucm_destroy_id_resp{reported}, sizeof(rdma_ucm_destroy_id_resp));
}

int CmContext::BindIp(const void* buffer, size_t size) {
  rdma_ucm_bind_ip request;
  if (const int error = Get(buffer, size, &request)) return error;
  CmId* const id = Find(request.id);
  return id == nullptr ? ENOENT : id->Bind(reinterpret_cast<const sockaddr*>(&request.addr));
}

int CmContext::Bind(const void* buffer, size_t size) {
  rdma_ucm_bind request;
  if (const int error = Get(buffer, size, &request)) return error;
  CmId* const id = Find(request.id);
  return id == nullptr ? ENOENT : id->Bind(reinterpret_cast<const sockaddr*>(&request.addr));
}

int CmContext::ResolveIp(const void* buffer, size_t size) {
  rdma_ucm_resolve_ip request;
  if (const int error = Get(buffer, size, &request)) return error;
  CmId* const id = Find(request.id);
  if (id == nullptr) return ENOENT;
  return id->ResolveAddress(reinterpret_cast<const sockaddr*>(&request.src_addr),
                            reinterpret_cast<const sockaddr*>(&request.dst_addr));
}

int CmContext::ResolveAddress(const void* buffer, size_t size) {
  rdma_ucm_resolve_addr request;
  if (const int error = Get(buffer, size, &request)) return error;
  CmId* const id = Find(request.id);
  if (id == nullptr) return ENOENT;
  return id->ResolveAddress(reinterpret_cast<const sockaddr*>(&request.src_addr),
                            reinterpret_cast<const sockaddr*>(&request.dst_addr));
}

int CmContext::ResolveRoute(const void* buffer, size_t size) {
  rdma_ucm_resolve_route request;
  if (const int error = Get(buffer, size, &request)) return error;
  CmId* const id = Find(request.id);
  return id == nullptr ? ENOENT : id->ResolveRoute();
}

int CmContext::QueryRoute(const void* buffer, size_t size) {
  rdma_ucm_query request;
  if (const int error = Get(buffer, size, &request)) return error;
  CmId* const id = Find(request.id);
  if (id == nullptr) return ENOENT;
  // Older programs have no room for the later fields.
  return Put(request.response, id->Route(), offsetof(rdma_ucm_query_route_resp, ibdev_index));
}

int CmContext::Connect(const void* buffer, size_t size) {
  rdma_ucm_connect request;
  if (const int error = Get(buffer, size, &request)) return error;
  CmId* const id = Find(request.id);
  return id == nullptr ? ENOENT : id->Connect(request.conn_param);
}

int CmContext::Listen(const void* buffer, size_t size) {
  rdma_ucm_listen request;
  if (const int error = Get(buffer, size, &request)) return error;
  CmId* const id = Find(request.id);
  return id == nullptr ? ENOENT : id->Listen();
}

int CmContext::Accept(const void* buffer, size_t size) {
  rdma_ucm_accept request;
  if (const int error = Get(buffer, size, &request)) return error;
  CmId* const id = Find(request.id);
  return id == nullptr ? ENOENT : id->Accept(request.conn_param, request.uid);
}

int CmContext::Reject(const void* buffer, size_t size) {
  rdma_ucm_reject request;
  if (const int error = Get(buffer, size, &request)) return error;
  CmId* const id = Find(request.id);
  return id == nullptr ? ENOENT : id->Reject(request);
}

int CmContext::Disconnect(const void* buffer, size_t size) {
  rdma_ucm_disconnect request;
  if (const int error = Get(buffer, size, &request)) return error;
  CmId* const id = Find(request.id);
  return id == nullptr ? ENOENT : id->Disconnect();
}

int CmContext::InitAttributes(const void* buffer, size_t size) {
  rdma_ucm_init_qp_attr request;
  if (const int error = Get(buffer, size, &request)) return error;
  const CmId* const id = Find(request.id);
  if (id == nullptr) return ENOENT;
  ib_uverbs_qp_attr attributes;
  if (const int error = id->QueuePairAttributes(request.qp_state, &attributes)) return error;
  return Put(request.response, attributes, sizeof(attributes));
}

// Accepts type of service, reuse of addresses and paths, which have no effect here.
int CmContext::SetOption(const void* buffer, size_t size) {
  rdma_ucm_set_option request;
  if (const int error = Get(buffer, size, &request)) return error;
  CmId* const id = Find(request.id);
  if (id == nullptr) return ENOENT;
  if (request.level == RDMA_OPTION_ID && request.optname == RDMA_OPTION_ID_ACK_TIMEOUT) {
    uint8_t code = 0;
    if (request.optlen != sizeof(code)) return EINVAL;
    if (const int error = CopyFromProgram(request.optval, &code, sizeof(code))) return error;
    if (code > CmId::kMostAckTimeout) return EINVAL;
    id->set_ack_timeout(code);
    return 0;
  }
  const bool of_id = request.level == RDMA_OPTION_ID && request.optname <= RDMA_OPTION_ID_ACK_TIMEOUT;
  const bool of_path = request.level == RDMA_OPTION_IB && request.optname == RDMA_OPTION_IB_PATH;
  return of_id || of_path ? 0 : ENOSYS;
}

int CmContext::Notify(const void* buffer, size_t size) {
  rdma_ucm_notify request;
  if (const int error = Get(buffer, size, &request)) return error;
  return Find(request.id) == nullptr ? ENOENT : 0;
}

int CmContext::Migrate(const void* buffer, size_t size) {
  rdma_ucm_migrate_id request;
  if (const int error = Get(buffer, size, &request)) return error;
  CmContext* const from = find_(static_cast<int>(request.fd));
  if (from == nullptr) return EINVAL;
  const auto found = from->ids_.find(request.id);
  if (found == from->ids_.end()) return ENOENT;
  CmId& id = *found->second;
  const uint32_t reported = id.events_reported;
  if (from != this) {
    std::deque<Event> moved;
    from->TakeEvents([&id](const Event& event) { return event.id == &id; }, &moved);
    ids_.insert(from->ids_.extract(found));
    for (auto joined = from->memberships_.begin(); joined != from->memberships_.end();) {
      const auto next = std::next(joined);
      if (joined->second.id == &id) memberships_.insert(from->memberships_.extract(joined));
      joined = next;
    }
    id.MoveTo(*this);
    for (const Event& event : moved) Raise(id, event.event);
  }
  return Put(request.response, rdma_ucm_migrate_resp{reported}, sizeof(rdma_ucm_migrate_resp));
}

int CmContext::JoinIpGroup(const void* buffer, size_t size) {
  rdma_ucm_join_ip_mcast request;
  if (const int error = Get(buffer, size, &request)) return error;
  return Join(request.id, reinterpret_cast<const sockaddr*>(&request.addr), request.uid, request.response);
}

int CmContext::JoinGroup(const void* buffer, size_t size) {
  rdma_ucm_join_mcast request;
  if (const int error = Get(buffer, size, &request)) return error;
  if (request.join_flags >= RDMA_MC_JOIN_FLAG_RESERVED) return EINVAL;
  return Join(request.id, reinterpret_cast<const sockaddr*>(&request.addr), request.uid, request.response);
}

int CmContext::Join(uint32_t id, const sockaddr* group, uint64_t uid, uint64_t response) {
  CmId* const joining = Find(id);
  if (joining == nullptr) return ENOENT;
  if (memberships_.size() >= kMaxMemberships) return ENOMEM;
  const rdma_ucm_create_id_resp made{NextHandle()};
  if (const int error = Put(response, made, sizeof(made))) return error;
  if (const int error = joining->Join(group, made.id, uid)) return error;
  memberships_.emplace(made.id, Membership{joining, 0});
  return 0;
}

int CmContext::LeaveGroup(const void* buffer, size_t size) {
  rdma_ucm_destroy_id request;
  if (const int error = Get(buffer, size, &request)) return error;
  const auto left = memberships_.find(request.id);
  if (left == memberships_.end()) return ENOENT;
  const rdma_ucm_destroy_id_resp response{left->second.events_reported};
  std::deque<Event> unread;
  TakeEvents([&request](const Event& event) { return event.event.id == request.id; }, &unread);
  memberships_.erase(left);
  return Put(request.response, response, sizeof(response));
}

}  // namespace tokamak::verbs::kernel
