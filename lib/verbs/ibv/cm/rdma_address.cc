#include "lib/verbs/ibv/cm/rdma_address.h"

#include <ifaddrs.h>
#include <rdma/rdma_cma.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>

#include "absl/cleanup/cleanup.h"
#include "lib/verbs/ibv/cm/cm_channel.h"
#include "lib/verbs/ibv/translation/errors.h"
#include "lib/verbs/ibv/translation/socket_address.h"

namespace tokamak::verbs::ibv {
namespace {

absl::StatusOr<bool> LeadsTo(rdma_event_channel* channel, const Address& address, const std::string& device,
                             uint8_t port) {
  rdma_cm_id* id = nullptr;
  if (rdma_create_id(channel, &id, nullptr, RDMA_PS_TCP) != 0) return ErrnoStatus(errno, "rdma_create_id");
  const absl::Cleanup destroy = [id] { rdma_destroy_id(id); };
  SocketAddress where = ToSocketAddress(address);
  if (rdma_bind_addr(id, where.get()) != 0) return false;  // an address of a net device without RDMA
  return id->verbs != nullptr && device == ibv_get_device_name(id->verbs->device) && id->port_num == port;
}

}  // namespace

absl::StatusOr<std::vector<Address>> RdmaAddressesOf(const std::string& device, uint8_t port) {
  auto channel = OpenCmChannel();
  if (!channel.ok()) return channel.status();
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return ErrnoStatus(errno, "getifaddrs");
  const absl::Cleanup free_list = [list] { freeifaddrs(list); };
  std::vector<Address> found;
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr) continue;
    std::optional<Address> address = FromSocketAddress(one->ifa_addr);
    if (!address || address->is_link_local()) continue;
    address->port = 0;
    if (std::find(found.begin(), found.end(), *address) != found.end()) continue;
    const auto leads = LeadsTo(channel->get(), *address, device, port);
    if (!leads.ok()) return leads.status();
    if (*leads) found.push_back(*address);
  }
  std::stable_partition(found.begin(), found.end(), [](const Address& address) { return address.is_ipv4(); });
  return found;
}

}  // namespace tokamak::verbs::ibv
