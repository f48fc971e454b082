#include "lib/verbs/kernel/cm/cm_id.h"

#include <arpa/inet.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "lib/os/file_descriptor.h"
#include "lib/verbs/kernel/program/translate.h"
#include "lib/verbs/soft/udp/udp_socket.h"

namespace tokamak::verbs::kernel {
namespace {

constexpr uint8_t kHopLimit = 64;

bool IsLoopback(const Address& address) {
  static constexpr std::array<uint8_t, 16> kLoopback6 = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  return address.is_ipv4() ? address.ip[12] == 127 : address.ip == kLoopback6;
}

// Converts to the ABI's sockaddr_in6, which holds an address of either family; all zero if it is
// unknown.
sockaddr_in6 ToSockaddr(const Address& address) {
  sockaddr_storage storage{};
  soft::ToSocketAddress(address, 0, &storage);
  sockaddr_in6 out{};
  std::memcpy(&out, &storage, sizeof(out));
  return out;
}

// Returns the source address of packets to `destination`, by the system's routes.
std::optional<Address> SourceTowards(const Address& destination) {
  const int family = destination.is_ipv4() ? AF_INET : AF_INET6;
  const os::FileDescriptor probe(socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  Address far = destination;
  if (far.port == 0) far.port = soft::kRoceUdpPort;
  sockaddr_storage name{};
  const socklen_t length = soft::ToSocketAddress(far, 0, &name);
  if (connect(probe.get(), reinterpret_cast<const sockaddr*>(&name), length) != 0) return std::nullopt;
  sockaddr_storage own{};
  socklen_t own_length = sizeof(own);
  if (getsockname(probe.get(), reinterpret_cast<sockaddr*>(&own), &own_length) != 0) return std::nullopt;
  Address source = soft::FromSocketAddress(own);
  source.port = 0;
  return source;
}

}  // namespace

CmId::CmId(CmEvents& events, const std::vector<UserDevice*>& devices, uint32_t handle, uint64_t uid)
    : events_(&events), devices_(devices), uid_(uid), handle_(handle) {}

CmId::~CmId() = default;

int CmId::ToAddress(const sockaddr* from, Address* to) {
  sockaddr_storage storage{};
  if (from->sa_family == AF_INET) {
    std::memcpy(&storage, from, sizeof(sockaddr_in));
  } else if (from->sa_family == AF_INET6) {
    std::memcpy(&storage, from, sizeof(sockaddr_in6));
  } else {
    return EINVAL;
  }
  *to = soft::FromSocketAddress(storage);
  return 0;
}

ib_uverbs_ah_attr CmId::Towards(const Address& address) {
  ib_uverbs_ah_attr attributes{};
  attributes.is_global = 1;
  attributes.port_num = kOnlyPort;
  attributes.grh.hop_limit = kHopLimit;
  std::copy(address.ip.begin(), address.ip.end(), attributes.grh.dgid);
  return attributes;
}

UserDevice* CmId::DeviceAt(const Address& address) const {
  for (UserDevice* device : devices_) {
    if (device != nullptr && device->identity().address.ip == address.ip) return device;
  }
  return nullptr;
}

// If no device has the source address that the system would take, any device of the family will do:
// it may be a loopback address, or one of several of this machine.
UserDevice* CmId::DeviceTowards(const Address& address) const {
  if (const std::optional<Address> source = SourceTowards(address)) {
    if (UserDevice* const device = DeviceAt(*source)) return device;
  }
  for (UserDevice* device : devices_) {
    if (device != nullptr && device->identity().address.is_ipv4() == address.is_ipv4()) return device;
  }
  return nullptr;
}

// Returns whether the address stands for the device's own: any loopback address does, except
// another device's, unless the device itself is on the loopback network. A program that binds one
// sees the device's address, to pass on to its peers.
bool CmId::IsOwn(const Address& address) const {
  if (address.is_unspecified()) return true;
  return IsLoopback(address) && !IsLoopback(device_->identity().address) && DeviceAt(address) == nullptr;
}

int CmId::Bind(const sockaddr* address) {
  if (state_ != State::kIdle) return EINVAL;
  Address bound;
  if (const int error = ToAddress(address, &bound)) return error;
  if (!bound.is_unspecified()) {
    device_ = DeviceAt(bound);
    if (device_ == nullptr && IsLoopback(bound)) {
      device_ = DeviceTowards(bound);
      if (device_ != nullptr && IsOwn(bound)) bound.ip = device_->identity().address.ip;
    }
    if (device_ == nullptr) return ENODEV;
  }
  source_ = bound;
  // Programs send their peers the port before they listen.
  if (source_.port == 0) source_.port = ChoosePortOfDevice();
  state_ = State::kBound;
  return 0;
}

// Returns a port at which no device of ours listens; 0 if there is none, which Listen reports.
uint16_t CmId::ChoosePortOfDevice() const {
  for (UserDevice* device : devices_) {
    if (device == nullptr || (device_ != nullptr && device != device_)) continue;
    absl::StatusOr<uint16_t> port = uint16_t{0};
    device->nic().WithManager([&](soft::SoftConnectionManager& manager)
                                  REQUIRES_NIC_MUTEX { port = ChoosePort(manager); });
    return port.value_or(0);
  }
  return 0;
}

int CmId::ResolveAddress(const sockaddr* source, const sockaddr* destination) {
  if (state_ == State::kIdle && source->sa_family != AF_UNSPEC) {
    if (const int error = Bind(source)) return error;
  }
  if (state_ != State::kIdle && state_ != State::kBound) return EINVAL;
  if (const int error = ToAddress(destination, &destination_)) return error;
  if (device_ == nullptr) device_ = DeviceTowards(destination_);
  if (device_ == nullptr) {
    Raise(CmEvent::kAddressError, -ENODEV);
    return 0;
  }
  source_.ip = device_->identity().address.ip;
  if (IsOwn(destination_)) destination_.ip = source_.ip;
  state_ = State::kAddressResolved;
  Raise(CmEvent::kAddressResolved);
  return 0;
}

int CmId::ResolveRoute() {
  if (state_ != State::kAddressResolved) return EINVAL;
  state_ = State::kRouteResolved;
  Raise(CmEvent::kRouteResolved);
  return 0;
}

int CmId::Listen() {
  if (state_ == State::kIdle) state_ = State::kBound;
  if (state_ != State::kBound) return EINVAL;
  for (UserDevice* device : devices_) {
    if (device == nullptr || (device_ != nullptr && device != device_)) continue;
    std::unique_ptr<Port> port;
    if (const int error = Open(*device, &source_.port, &port)) {
      CloseAll();
      return error;
    }
    ports_.push_back(std::move(port));
  }
  if (ports_.empty()) return ENODEV;
  state_ = State::kListening;
  return 0;
}

void CmId::BecomeAsked(UserDevice& device, uint16_t port, const Address& peer) {
  device_ = &device;
  state_ = State::kAsked;
  source_ = device.identity().address;
  source_.port = port;
  destination_ = peer;
}

rdma_ucm_event_resp CmId::MakeEvent(CmEvent type, int status) const {
  rdma_ucm_event_resp event{};
  event.uid = uid_;
  event.id = handle_;
  event.event = static_cast<uint32_t>(type);
  event.status = static_cast<uint32_t>(status);
  return event;
}

rdma_ucm_query_route_resp CmId::Route() const {
  rdma_ucm_query_route_resp route{};
  route.src_addr = ToSockaddr(source_);
  if (state_ != State::kIdle && state_ != State::kBound && state_ != State::kListening) {
    route.dst_addr = ToSockaddr(destination_);
  }
  if (device_ == nullptr) return route;
  route.node_guid = htobe64(device_->identity().guid);
  route.port_num = kOnlyPort;
  if (state_ < State::kRouteResolved || state_ == State::kListening) return route;
  route.num_paths = 1;
  ib_user_path_rec& path = route.ib_route[0];
  std::copy(source_.ip.begin(), source_.ip.end(), path.sgid);
  std::copy(destination_.ip.begin(), destination_.ip.end(), path.dgid);
  path.pkey = htons(0xffff);
  path.mtu = MtuNumber(device_->nic().limits().active_mtu);
  path.mtu_selector = 2;
  path.rate_selector = 2;
  path.packet_life_time = ack_timeout_ > 0 ? ack_timeout_ - 1 : 0;
  path.packet_life_time_selector = 2;
  path.hop_limit = kHopLimit;
  path.reversible = 1;
  path.numb_path = 1;
  return route;
}

}  // namespace tokamak::verbs::kernel
