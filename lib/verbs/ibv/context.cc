#include "lib/verbs/ibv/context.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "lib/base/log.h"
#include "lib/os/process/processors.h"
#include "lib/verbs/ibv/cm/connection_rules.h"
#include "lib/verbs/ibv/cm/rdma_address.h"
#include "lib/verbs/ibv/posting/vectors.h"
#include "lib/verbs/ibv/tcp/tcp_hello.h"
#include "lib/verbs/ibv/translation/errors.h"
#include "lib/verbs/ibv/translation/gid.h"
#include "lib/verbs/ibv/translation/limits.h"
#include "lib/verbs/ibv/trial.h"

namespace tokamak::verbs::ibv {
namespace {

absl::StatusOr<OpenedDevice> OpenByName(const std::string& name) {
  int count = 0;
  ibv_device** const list = ibv_get_device_list(&count);
  if (list == nullptr && errno == ENOSYS) {
    return absl::NotFoundError(
        absl::StrCat("no RDMA device ", name,
                     ": this machine's kernel has no verbs for programs; where it has RDMA, modprobe ib_uverbs"));
  }
  if (list == nullptr) return ErrnoStatus(errno, "ibv_get_device_list");
  const absl::Cleanup free_list = [list] { ibv_free_device_list(list); };
  std::string names;
  for (int i = 0; i < count; ++i) {
    if (name != ibv_get_device_name(list[i])) {
      absl::StrAppend(&names, names.empty() ? "" : ", ", ibv_get_device_name(list[i]));
      continue;
    }
    OpenedDevice device(ibv_open_device(list[i]));
    if (device != nullptr) return device;
    const absl::Status status = ErrnoStatus(errno == 0 ? EIO : errno, absl::StrCat("open RDMA device ", name));
    return absl::Status(status.code(), absl::StrCat(status.message(), "; it needs /dev/infiniband/", list[i]->dev_name,
                                                    ", readable and writable here"));
  }
  if (names.empty()) {
    return absl::NotFoundError(
        absl::StrCat("no RDMA device ", name,
                     ": this machine has none; Soft-RoCE makes one of a network device: modprobe "
                     "rdma_rxe; rdma link add rxe0 type rxe netdev eth0"));
  }
  return absl::NotFoundError(absl::StrCat("no RDMA device ", name, ": there are ", names));
}

bool IsActive(const ibv_port_attr& port) {
  return port.state == IBV_PORT_ACTIVE || port.state == IBV_PORT_ACTIVE_DEFER;
}

absl::StatusOr<ibv_port_attr> QueryPort(ibv_context* device, uint8_t number) {
  ibv_port_attr port{};
  if (const int error = ibv_query_port(device, number, &port); error != 0) {
    return ErrnoStatus(error, absl::StrCat("ibv_query_port of port ", number));
  }
  return port;
}

absl::StatusOr<std::pair<uint8_t, ibv_port_attr>> ChoosePort(ibv_context* device, const ibv_device_attr& attributes,
                                                             const DeviceName& name) {
  if (name.port > attributes.phys_port_cnt) {
    return absl::NotFoundError(
        absl::StrCat("no port ", name.port, ": RDMA device ", name.device, " has ", attributes.phys_port_cnt));
  }
  std::string states;
  for (uint8_t number = 1; number != 0 && number <= attributes.phys_port_cnt; ++number) {
    if (name.port != 0 && name.port != number) continue;
    const absl::StatusOr<ibv_port_attr> port = QueryPort(device, number);
    if (!port.ok()) return port.status();
    if (IsActive(*port)) return std::make_pair(number, *port);
    absl::StrAppend(&states, states.empty() ? "" : ", ", "port ", number, " is ", ibv_port_state_str(port->state));
  }
  return absl::UnavailableError(absl::StrCat("RDMA device ", name.device, " has no active port: ", states,
                                             "; set its network device up, or look at the cable"));
}

// Returns the GID entry to speak from; none if the link needs none (iWARP).
absl::StatusOr<std::optional<GidEntry>> FindGid(ibv_context* device, LinkKind link, uint8_t port,
                                                const DeviceName& name) {
  const absl::StatusOr<std::vector<GidEntry>> table = ReadGidTable(device, port);
  if (!table.ok()) return table.status();
  const GidChoice choice = ChooseGid(link, *table, name.gid_index);
  if (const GidEntry* entry = choice.entry(); entry != nullptr) return std::make_optional(*entry);
  if (link == LinkKind::kIwarp && !name.gid_index) return std::nullopt;
  if (name.gid_index) {
    return absl::NotFoundError(absl::StrCat("no GID ", *name.gid_index, " at port ", port, " of RDMA device ",
                                            name.device, ":\n", choice.ToString()));
  }
  return absl::UnavailableError(absl::StrCat("no usable GID at port ", port, " of RDMA device ", name.device,
                                             "; its network device must be up and have an address:\n",
                                             choice.ToString()));
}

absl::StatusOr<Address> FindAddress(const DeviceOptions& options, const LocalPort& port) {
  Address address;
  if (options.exchange == Exchange::kTcp) {
    address = options.tcp_address;
    address.port = 0;
    return address;
  }
  if (port.link == LinkKind::kRoce) {
    address.ip = port.gid;
    if (!address.is_link_local()) return address;
    return absl::UnavailableError(absl::StrCat("port ", port.number, " of RDMA device ", options.name.device,
                                               " speaks from a link-local address, which rdma_cm cannot: give its "
                                               "network device another, or exchange over TCP (--cm tcp)"));
  }
  const absl::StatusOr<std::vector<Address>> all = RdmaAddressesOf(options.name.device, port.number);
  if (!all.ok()) return all.status();
  if (!all->empty()) return all->front();
  return absl::UnavailableError(absl::StrCat("no IP address leads to port ", port.number, " of RDMA device ",
                                             options.name.device,
                                             "; rdma_cm needs one: give its network device an "
                                             "address, or exchange over TCP (--cm tcp)"));
}

// siw's library takes one of the places at which the kernel offers a queue's memory, 0x90000, for
// "none", and no queue can be made there: with queues of one page, the 71st queue pair's. Places
// are given out from 0 on, so an unused first queue that is long enough covers it.
SparedQueue SpareForbiddenKey(ibv_context* device, const Quirks& quirks) {
  constexpr int kForbiddenPlace = 0x90000;  // bytes
  constexpr int kSmallestEntry = 32;        // bytes of a completion, siw's are larger
  if (!quirks.forbids_a_place) return nullptr;
  return SparedQueue(ibv_create_cq(device, kForbiddenPlace / kSmallestEntry + 1, nullptr, nullptr, 0));
}

absl::Status CheckOptions(const DeviceOptions& options) {
  if (options.exchange == Exchange::kTcp && options.tcp_address.is_unspecified()) {
    return absl::InvalidArgumentError(
        "connections exchanged over TCP need the address at which peers reach this host, which 0.0.0.0 and :: are not");
  }
  if (MtuBytes(MtuCode(options.max_path_mtu.value_or(kMinMtu))) == 0) {
    return absl::InvalidArgumentError("a path MTU is 256, 512, 1024, 2048 or 4096");
  }
  if (options.service_level.value_or(0) > 15) return absl::InvalidArgumentError("service levels are 0 to 15");
  return absl::OkStatus();
}

uint32_t PathMtu(const DeviceOptions& options, const ibv_port_attr& port) {
  return std::min(MtuBytes(port.active_mtu), options.max_path_mtu.value_or(kMaxMtu));
}

absl::Status CheckLinkKind(const DeviceOptions& options, LinkKind link) {
  if (options.router_lid.has_value() && link != LinkKind::kInfiniBand) {
    return absl::InvalidArgumentError(absl::StrCat(ToString(link), " has no LIDs, and so no router's"));
  }
  if (link != LinkKind::kIwarp) return absl::OkStatus();
  if (options.exchange == Exchange::kTcp) {
    return absl::UnimplementedError("iWARP connects by rdma_cm only, not over TCP by hand");
  }
  if (options.service_level.has_value()) {
    return absl::UnimplementedError("iWARP has no service levels; a traffic class sets the DSCP of its packets");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::shared_ptr<Context>> Context::Open(const DeviceOptions& options) {
  if (absl::Status s = CheckOptions(options); !s.ok()) return s;
  absl::StatusOr<OpenedDevice> opened = OpenByName(options.name.device);
  if (!opened.ok()) return opened.status();
  ibv_context* const device = opened->get();
  ibv_device_attr attributes{};
  if (const int error = ibv_query_device(device, &attributes); error != 0) {
    return ErrnoStatus(error, "ibv_query_device");
  }
  const auto chosen = ChoosePort(device, attributes, options.name);
  if (!chosen.ok()) return chosen.status();
  const auto& [number, queried] = *chosen;
  const LinkKind link = LinkOf(device->device->transport_type, queried.link_layer);
  if (absl::Status s = CheckLinkKind(options, link); !s.ok()) return s;
  const auto gid = FindGid(device, link, number, options.name);
  if (!gid.ok()) return gid.status();

  if (options.exchange == Exchange::kRdmaCm && options.name.gid_index && gid->has_value()) {
    if (absl::Status s = CheckForRdmaCm(link, **gid); !s.ok()) return s;
  }

  LocalPort port;
  port.link = link;
  port.number = number;
  port.gid_index_is_fixed = options.name.gid_index.has_value();
  if (gid->has_value()) {
    port.gid = (*gid)->gid;
    port.gid_index = static_cast<uint8_t>((*gid)->index);
  }
  port.global_routes_only = (queried.flags & IBV_QPF_GRH_REQUIRED) != 0;
  port.lid = queried.lid;
  port.pkey_index = options.pkey_index;
  port.service_level = options.service_level;
  port.traffic_class = options.traffic_class;
  port.router_lid = options.router_lid;
  port.active_mtu = PathMtu(options, queried);

  const absl::StatusOr<Address> address = FindAddress(options, port);
  if (!address.ok()) return address.status();
  const absl::StatusOr<uint32_t> max_inline = TryDevice(device, port);
  if (!max_inline.ok()) {
    return absl::UnavailableError(absl::StrCat("RDMA device ", options.name.device,
                                               " is listed, but cannot be used: ", max_inline.status().message()));
  }
  Limits limits = MakeLimits(link, attributes, queried, *max_inline);
  limits.max_private_data = options.exchange == Exchange::kTcp ? kTcpCmPrivateData : kRdmaCmPrivateData;
  const Quirks quirks = QuirksOf(attributes);
  SparedQueue spared = SpareForbiddenKey(device, quirks);
  return std::make_shared<Context>(*std::move(opened), std::move(spared), options, port, *address, limits, quirks);
}

Context::Context(OpenedDevice device, SparedQueue spared, const DeviceOptions& options, const LocalPort& port,
                 const Address& address, const Limits& limits, const Quirks& quirks)
    : device_(std::move(device)),
      spared_(std::move(spared)),
      options_(options),
      name_(options.name.ToString()),
      port_(port),
      address_(address),
      limits_(limits),
      quirks_(quirks),
      vector_processors_(VectorProcessors("", options.name.device, device_->num_comp_vectors)),
      next_vector_(static_cast<uint32_t>(getpid())),
      events_(device_.get(), port.number) {}

int Context::NextVector() {
  const std::vector<int> fitting = VectorsFor(vector_processors_, os::AllowedProcessors(), device_->num_comp_vectors);
  return fitting[next_vector_.fetch_add(1, std::memory_order_relaxed) % fitting.size()];
}

void Context::NoteRelaxedOrdering(int error) {
  if (told_ordering_.load(std::memory_order_relaxed) || told_ordering_.exchange(true)) return;
  LOG_IF(INFO, error == 0) << name_
                           << ": memory is registered with relaxed ordering, which a device or kernel that does "
                           << "not know it ignores";
  LOG_IF(WARNING, error != 0) << name_ << ": memory is registered without relaxed ordering, which the device refuses: "
                              << std::strerror(error);
}

LocalPort Context::PortNow() const {
  LocalPort now = port_;
  const absl::StatusOr<ibv_port_attr> queried = QueryPort(device_.get(), port_.number);
  if (!queried.ok()) return now;
  now.lid = queried->lid;
  now.active_mtu = PathMtu(options_, *queried);
  if (now.link != LinkKind::kRoce) return now;
  const absl::StatusOr<std::vector<GidEntry>> table = ReadGidTable(device_.get(), port_.number);
  if (!table.ok()) return now;
  const GidEntry* const entry = ChooseAgain(now.link, *table, port_.gid, options_.name.gid_index);
  if (entry == nullptr || (entry->gid != port_.gid && options_.exchange != Exchange::kTcp)) return now;
  now.gid = entry->gid;
  now.gid_index = static_cast<uint8_t>(entry->index);
  return now;
}

}  // namespace tokamak::verbs::ibv
