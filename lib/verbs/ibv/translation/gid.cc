#include "lib/verbs/ibv/translation/gid.h"

#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "lib/os/file_descriptor.h"

namespace tokamak::verbs::ibv {
namespace {

// From best to worst.
enum class Scope : uint8_t { kIpv4, kGlobal, kUniqueLocal, kLinkLocal };

Scope ScopeOf(const Gid& gid) {
  Address address;
  address.ip = gid;
  if (address.is_ipv4()) return Scope::kIpv4;
  if (address.is_link_local()) return Scope::kLinkLocal;
  if ((gid[0] & 0xfe) == 0xfc) return Scope::kUniqueLocal;
  return Scope::kGlobal;
}

const char* ScopeText(Scope scope) {
  switch (scope) {
    case Scope::kIpv4:
      return "IPv4";
    case Scope::kGlobal:
      return "global IPv6";
    case Scope::kUniqueLocal:
      return "unique local IPv6";
    case Scope::kLinkLocal:
      return "link-local IPv6";
  }
  return "address";
}

// Returns why an entry is not usable; empty if it is.
std::string Objection(LinkKind link, const GidEntry& entry) {
  if (IsEmpty(entry.gid)) return "empty";
  if (entry.index > UINT8_MAX) return "beyond the 256 that a queue pair can name";
  if (link != LinkKind::kRoce) return "";
  if (entry.type == GidType::kRoceV1) return "RoCE v1: not routable; only by its index";
  if (entry.type != GidType::kRoceV2) return "not RoCE v2";
  if (entry.net_device.empty()) return "no net device behind it";
  if (!entry.net_device_up) return absl::StrCat("net device ", entry.net_device, " is down");
  return "";
}

// True if `a` is better; both are usable.
bool Better(LinkKind link, const GidEntry& a, const GidEntry& b) {
  if (link == LinkKind::kRoce && ScopeOf(a.gid) != ScopeOf(b.gid)) return ScopeOf(a.gid) < ScopeOf(b.gid);
  return a.index < b.index;
}

std::string WhyChosen(LinkKind link, const GidEntry& entry) {
  if (link == LinkKind::kInfiniBand) return "the port's own";
  if (link == LinkKind::kIwarp) return "the port's only one; iWARP goes by its net device's IP address";
  return absl::StrCat("RoCE v2, ", ScopeText(ScopeOf(entry.gid)), ", net device ", entry.net_device, " is up");
}

std::string WhyBeaten(LinkKind link, const GidEntry& entry, const GidEntry& winner) {
  if (link == LinkKind::kRoce && ScopeOf(entry.gid) != ScopeOf(winner.gid)) {
    return absl::StrCat(ScopeText(ScopeOf(entry.gid)), ": ", ScopeText(ScopeOf(winner.gid)), " comes first");
  }
  return absl::StrCat("as good as index ", winner.index, ", which comes first");
}

absl::Status ProviderError(int error, absl::string_view what) {
  const std::string text = absl::StrCat(what, ": ", std::strerror(error));
  return error == ENODEV || error == EIO ? absl::UnavailableError(text) : absl::InternalError(text);
}

GidType TypeOf(uint32_t type) {
  switch (type) {
    case IBV_GID_TYPE_IB:
      return GidType::kInfiniBand;
    case IBV_GID_TYPE_ROCE_V1:
      return GidType::kRoceV1;
    case IBV_GID_TYPE_ROCE_V2:
      return GidType::kRoceV2;
    default:
      return GidType::kUnknown;
  }
}

bool IsUp(int socket, const char* name) {
  ifreq request{};
  absl::string_view(name).copy(request.ifr_name, IFNAMSIZ - 1);
  if (ioctl(socket, SIOCGIFFLAGS, &request) != 0) return false;
  constexpr int kUp = IFF_UP | IFF_RUNNING;
  return (request.ifr_flags & kUp) == kUp;
}

}  // namespace

const char* ToString(GidType type) {
  switch (type) {
    case GidType::kInfiniBand:
      return "IB";
    case GidType::kRoceV1:
      return "RoCE v1";
    case GidType::kRoceV2:
      return "RoCE v2";
    case GidType::kUnknown:
      return "unknown";
  }
  return "unknown";
}

std::string GidText(const Gid& gid) {
  Address address;
  address.ip = gid;
  std::string text = address.ToString();  // without a port, and IPv6 without brackets
  return text;
}

bool IsEmpty(const Gid& gid) {
  return std::all_of(gid.begin(), gid.end(), [](uint8_t byte) { return byte == 0; });
}

std::string GidChoice::ToString() const {
  std::string text;
  for (const GidVerdict& verdict : verdicts) {
    const GidEntry& entry = verdict.entry;
    absl::StrAppendFormat(&text, "%c %3u  %-39s  %-7s  %-15s  %s\n", verdict.chosen ? '*' : ' ', entry.index,
                          GidText(entry.gid), ibv::ToString(entry.type),
                          entry.net_device.empty() ? "-" : entry.net_device, verdict.reason);
  }
  return text;
}

GidChoice ChooseGid(LinkKind link, absl::Span<const GidEntry> table, std::optional<uint32_t> index) {
  GidChoice choice;
  for (const GidEntry& entry : table) {
    GidVerdict verdict;
    verdict.entry = entry;
    verdict.reason = Objection(link, entry);
    const size_t position = choice.verdicts.size();
    if (index) {
      if (entry.index == *index && !IsEmpty(entry.gid)) choice.chosen = position;
    } else if (verdict.reason.empty()) {
      if (!choice.chosen || Better(link, entry, choice.verdicts[*choice.chosen].entry)) choice.chosen = position;
    }
    choice.verdicts.push_back(std::move(verdict));
  }
  if (!choice.chosen) {
    for (GidVerdict& verdict : choice.verdicts) {
      if (verdict.reason.empty()) verdict.reason = absl::StrCat("index ", *index, " was asked for");
    }
    return choice;
  }
  GidVerdict& winner = choice.verdicts[*choice.chosen];
  for (GidVerdict& verdict : choice.verdicts) {
    if (&verdict == &winner) continue;
    if (index) {
      verdict.reason = absl::StrCat("index ", *index, " was asked for");
    } else if (verdict.reason.empty()) {
      verdict.reason = WhyBeaten(link, verdict.entry, winner.entry);
    }
  }
  winner.chosen = true;
  if (index) {
    winner.reason = winner.reason.empty() ? "asked for by its index"
                                          : absl::StrCat("asked for by its index, although: ", winner.reason);
  } else {
    winner.reason = WhyChosen(link, winner.entry);
  }
  return choice;
}

absl::Status CheckForRdmaCm(LinkKind link, const GidEntry& entry) {
  if (link != LinkKind::kRoce) {
    return absl::InvalidArgumentError(absl::StrCat(
        "@", entry.index, ": on ", ToString(link), " rdma_cm goes by the IP address of the net device: leave @",
        entry.index, " out", link == LinkKind::kInfiniBand ? ", or --cm tcp" : ""));
  }
  if (entry.type == GidType::kRoceV2) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("@", entry.index, " is ", ibv::ToString(entry.type), ", and rdma_cm would take ", GidText(entry.gid),
                   " as RoCE v2: name the entry of that address that is RoCE v2, or --cm tcp"));
}

const GidEntry* ChooseAgain(LinkKind link, absl::Span<const GidEntry> table, const Gid& used,
                            std::optional<uint32_t> index) {
  const auto still = std::find_if(table.begin(), table.end(), [&](const GidEntry& entry) {
    return entry.gid == used && (index ? entry.index == *index : Objection(link, entry).empty());
  });
  if (still != table.end()) return &*still;
  const std::optional<size_t> best = ChooseGid(link, table, index).chosen;
  return best ? &table[*best] : nullptr;
}

absl::StatusOr<std::vector<GidEntry>> ReadGidTable(ibv_context* context, uint8_t port) {
  std::vector<ibv_gid_entry> raw(kMaxGids);
  const ssize_t count = ibv_query_gid_table(context, raw.data(), raw.size(), 0);
  if (count < 0) return ProviderError(static_cast<int>(-count), "ibv_query_gid_table");
  const os::FileDescriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return absl::InternalError(absl::StrCat("socket: ", std::strerror(errno)));
  std::vector<GidEntry> table;
  for (ssize_t i = 0; i < count; ++i) {
    const ibv_gid_entry& from = raw[static_cast<size_t>(i)];
    if (from.port_num != port) continue;
    GidEntry entry;
    entry.index = from.gid_index;
    std::copy(std::begin(from.gid.raw), std::end(from.gid.raw), entry.gid.begin());
    entry.type = TypeOf(from.gid_type);
    char name[IF_NAMESIZE] = {};
    if (from.ndev_ifindex != 0 && if_indextoname(from.ndev_ifindex, name) != nullptr) {
      entry.net_device = name;
      entry.net_device_up = IsUp(socket.get(), name);
    }
    table.push_back(std::move(entry));
  }
  const auto by_index = [](const GidEntry& a, const GidEntry& b) { return a.index < b.index; };
  std::sort(table.begin(), table.end(), by_index);
  return table;
}

}  // namespace tokamak::verbs::ibv
