#include "lib/cli/doctor/rdma_facts.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

namespace tokamak::cli::doctor {

namespace {

namespace ibv = verbs::ibv;

constexpr char kClass[] = "/sys/class/infiniband/";
constexpr uint32_t kUpFlag = 1;  // IFF_UP

// "4: ACTIVE" is ACTIVE.
std::string Name(const std::optional<std::string>& text) {
  if (!text.has_value()) return "";
  const size_t colon = text->find(": ");
  return colon == std::string::npos ? *text : text->substr(colon + 2);
}

NetdevFacts ReadNetdev(const SystemFiles& files, const std::string& name) {
  NetdevFacts facts;
  facts.name = name;
  if (name.empty()) return facts;
  const std::string folder = absl::StrCat("/sys/class/net/", name);
  facts.here = files.Exists(folder);
  facts.mtu = static_cast<uint32_t>(files.ReadNumber(folder + "/mtu").value_or(0));
  facts.state = files.Read(folder + "/operstate").value_or("");
  uint32_t flags = 0;
  const bool shown = absl::SimpleHexAtoi(files.Read(folder + "/flags").value_or(""), &flags);
  facts.up = shown && (flags & kUpFlag) != 0 && (facts.state == "up" || facts.state == "unknown");
  return facts;
}

ibv::GidType TypeOf(const std::string& text, bool ethernet) {
  if (text == "RoCE v2") return ibv::GidType::kRoceV2;
  if (text != "IB/RoCE v1") return ibv::GidType::kUnknown;
  return ethernet ? ibv::GidType::kRoceV1 : ibv::GidType::kInfiniBand;
}

std::vector<ibv::GidEntry> ReadGids(const SystemFiles& files, const std::string& port, bool ethernet) {
  std::vector<ibv::GidEntry> gids;
  for (const std::string& name : files.List(port + "/gids")) {
    ibv::GidEntry entry;
    if (!absl::SimpleAtoi(name, &entry.index) || gids.size() == ibv::kMaxGids) continue;
    const auto address = verbs::Address::Parse(files.Read(absl::StrCat(port, "/gids/", name)).value_or(""));
    if (!address.ok() || ibv::IsEmpty(address->ip)) continue;
    entry.gid = address->ip;
    entry.type = TypeOf(files.Read(absl::StrCat(port, "/gid_attrs/types/", name)).value_or(""), ethernet);
    entry.net_device = files.Read(absl::StrCat(port, "/gid_attrs/ndevs/", name)).value_or("");
    entry.net_device_up = ReadNetdev(files, entry.net_device).up;
    gids.push_back(std::move(entry));
  }
  return gids;
}

// An iWARP device's GID begins with the address of its network device's hardware.
std::string NetdevOfHardware(const SystemFiles& files, const ibv::Gid& gid) {
  const std::string hardware =
      absl::StrFormat("%02x:%02x:%02x:%02x:%02x:%02x", gid[0], gid[1], gid[2], gid[3], gid[4], gid[5]);
  for (const std::string& name : files.List("/sys/class/net")) {
    if (files.Read(absl::StrCat("/sys/class/net/", name, "/address")) == hardware) return name;
  }
  return "";
}

std::string FindNetdev(const SystemFiles& files, const std::string& device, const PortFacts& port) {
  for (const ibv::GidEntry& entry : port.gids) {
    if (!entry.net_device.empty()) return entry.net_device;
  }
  if (const auto parent = files.Read(absl::StrCat(kClass, device, "/parent")); parent.has_value()) return *parent;
  const std::vector<std::string> of_card = files.List(absl::StrCat(kClass, device, "/device/net"));
  if (of_card.size() == 1) return of_card.front();
  return port.gids.empty() ? "" : NetdevOfHardware(files, port.gids.front().gid);
}

std::string FindDriver(const SystemFiles& files, const std::string& device) {
  const std::string folder = kClass + device;
  const std::string about = files.Read(folder + "/node_desc").value_or("");
  if (about == "rxe") return "rdma_rxe";
  if (absl::StartsWith(about, "Software iWARP")) return "siw";
  return files.LinkName(folder + "/device/driver");
}

PortFacts ReadPort(const SystemFiles& files, const std::string& device, const std::string& number, bool iwarp) {
  const std::string folder = absl::StrCat(kClass, device, "/ports/", number);
  PortFacts port;
  if (!absl::SimpleAtoi(number, &port.number)) return port;
  port.state = Name(files.Read(folder + "/state"));
  port.physical = Name(files.Read(folder + "/phys_state"));
  port.rate = files.Read(folder + "/rate").value_or("");
  const bool ethernet = files.Read(folder + "/link_layer").value_or("") == "Ethernet";
  port.link = iwarp ? ibv::LinkKind::kIwarp : ethernet ? ibv::LinkKind::kRoce : ibv::LinkKind::kInfiniBand;
  port.gids = ReadGids(files, folder, ethernet);
  if (port.link != ibv::LinkKind::kInfiniBand) port.netdev = ReadNetdev(files, FindNetdev(files, device, port));
  return port;
}

}  // namespace

std::vector<RdmaFacts> ReadRdmaDevices(const SystemFiles& files) {
  std::vector<RdmaFacts> devices;
  for (const std::string& name : files.List("/sys/class/infiniband")) {
    RdmaFacts device;
    device.name = name;
    device.driver = FindDriver(files, name);
    const bool iwarp = Name(files.Read(absl::StrCat(kClass, name, "/node_type"))) == "RNIC";
    for (const std::string& number : files.List(absl::StrCat(kClass, name, "/ports"))) {
      device.ports.push_back(ReadPort(files, name, number, iwarp));
    }
    devices.push_back(std::move(device));
  }
  return devices;
}

}  // namespace tokamak::cli::doctor
