#include "lib/verbs/kernel/user_device.h"

#include <endian.h>
#include <infiniband/verbs.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/verbs/kernel/program/translate.h"
#include "lib/verbs/soft/ud/multicast_groups.h"

namespace tokamak::verbs::kernel {
namespace {

std::string Groups(absl::Span<const uint8_t> bytes) {
  std::string text;
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (i > 0 && i % 2 == 0) text += ':';
    absl::StrAppend(&text, absl::Hex(bytes[i], absl::kZeroPad2));
  }
  return text;
}

constexpr uint32_t kCapabilities = IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_SYS_IMAGE_GUID |
                                   IBV_DEVICE_PORT_ACTIVE_EVENT | IBV_DEVICE_CURR_QP_STATE_MOD | IBV_DEVICE_MEM_WINDOW |
                                   IBV_DEVICE_MEM_WINDOW_TYPE_2B;

// GIDs are IP addresses, and need a GRH. (the specification's port capability bits)
constexpr uint32_t kPortCapabilities = 1u << 16 /* CM */ | 1u << 26 /* IP-based GIDs */;

// Locally administered, as the GUID; not Soft-RoCE's, whose faults programs work around.
constexpr uint32_t kVendor = 0x02746b;

constexpr uint8_t kLinkUp = 5;
constexpr uint8_t kLinkDisabled = 3;
constexpr uint8_t kWidthOfOneLane = 1;
constexpr uint8_t kSpeedOf25Gbps = 32;

}  // namespace

std::string Identity::GuidText() const {
  const uint64_t big = htobe64(guid);
  return Groups(absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(&big), sizeof(big)));
}

std::string Identity::GidText() const { return Groups(address.ip); }

Identity MakeIdentity(uint32_t index, const Address& address, std::string netdev) {
  Identity identity;
  identity.index = index;
  identity.name = absl::StrCat("rxe_tok", index);
  identity.netdev = std::move(netdev);
  identity.address = address;
  for (size_t i = 0; i < 8; ++i) {
    identity.guid =
        identity.guid << 8 | static_cast<uint8_t>(address.ip[i + 8] ^ (address.is_ipv4() ? 0 : address.ip[i]));
  }
  // A locally administered EUI-64.
  identity.guid |= uint64_t{0x02} << 56;
  return identity;
}

UserDevice::UserDevice(Identity identity, soft::SoftDevice& nic, base::EventLoop& loop, FailingRequest& failing,
                       Neighbours* neighbours)
    : identity_(std::move(identity)), nic_(nic), loop_(loop), failing_(failing), neighbours_(neighbours) {}

void UserDevice::Remove(Pulled& pulled) { pulled_.erase(std::find(pulled_.begin(), pulled_.end(), &pulled)); }

void UserDevice::SetPortActive(bool active) {
  if (port_active_ == active) return;
  port_active_ = active;
  for (PortListener* listener : listeners_) listener->OnPort(active);
}

ib_uverbs_query_device_resp UserDevice::Attributes() const {
  const Limits& limits = nic_.limits();
  ib_uverbs_query_device_resp attributes{};
  attributes.node_guid = attributes.sys_image_guid = htobe64(identity_.guid);
  attributes.vendor_id = kVendor;
  attributes.max_mr_size = UINT64_MAX;
  attributes.page_size_cap = 0xfffff000;
  attributes.max_qp = std::min(limits.max_queue_pairs, kMaxObjects);
  attributes.max_qp_wr = kMaxRequests;
  attributes.device_cap_flags = kCapabilities;
  attributes.max_sge = limits.max_sges;
  attributes.max_sge_rd = limits.max_read_sges;
  attributes.max_cq = kMaxObjects;
  attributes.max_cqe = kMaxCompletions;
  attributes.max_mr = kMaxObjects;
  attributes.max_pd = kMaxObjects;
  attributes.max_qp_rd_atom = attributes.max_qp_init_rd_atom = limits.max_reads;
  attributes.max_res_rd_atom = limits.max_reads * attributes.max_qp;
  attributes.atomic_cap = limits.atomics ? IBV_ATOMIC_HCA : IBV_ATOMIC_NONE;
  attributes.max_mw = limits.memory_windows ? kMaxObjects : 0;
  attributes.max_ah = kMaxObjects;
  attributes.max_mcast_grp = soft::MulticastGroups::kMaxGroups;
  attributes.max_mcast_qp_attach = soft::MulticastGroups::kMaxMembers;
  attributes.max_total_mcast_qp_attach = soft::MulticastGroups::kMaxGroups * soft::MulticastGroups::kMaxMembers;
  attributes.max_srq = kMaxObjects;
  attributes.max_srq_wr = kMaxRequests;
  attributes.max_srq_sge = limits.max_sges;
  attributes.max_pkeys = 1;
  attributes.local_ca_ack_delay = 15;
  attributes.phys_port_cnt = 1;
  return attributes;
}

ib_uverbs_query_port_resp UserDevice::PortAttributes() const {
  ib_uverbs_query_port_resp port{};
  port.port_cap_flags = kPortCapabilities;
  port.max_msg_sz = static_cast<uint32_t>(std::min<uint64_t>(nic_.limits().max_message, UINT32_MAX));
  port.gid_tbl_len = 1;
  port.pkey_tbl_len = 1;
  port.state = port_active_ ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
  port.max_mtu = IBV_MTU_4096;
  port.active_mtu = MtuNumber(nic_.limits().active_mtu);
  port.max_vl_num = 1;
  port.active_width = kWidthOfOneLane;
  port.active_speed = kSpeedOf25Gbps;
  port.phys_state = port_active_ ? kLinkUp : kLinkDisabled;
  port.link_layer = IBV_LINK_LAYER_ETHERNET;
  return port;
}

}  // namespace tokamak::verbs::kernel
