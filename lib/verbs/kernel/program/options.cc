#include "lib/verbs/kernel/program/options.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "lib/base/units.h"
#include "lib/os/file_descriptor.h"
#include "lib/verbs/soft/udp/udp_socket.h"

namespace tokamak::verbs::kernel {
namespace {

Address FromInternet(const sockaddr* address) {
  sockaddr_storage storage{};
  if (address->sa_family == AF_INET) std::memcpy(&storage, address, sizeof(sockaddr_in));
  if (address->sa_family == AF_INET6) std::memcpy(&storage, address, sizeof(sockaddr_in6));
  return soft::FromSocketAddress(storage);
}

template <typename T>
absl::Status Take(const absl::StatusOr<T>& value, T* option) {
  if (value.ok()) *option = *value;
  return value.status();
}

absl::Status Take(absl::string_view key, absl::string_view value, Options* options) {
  if (key == "address") {
    for (const absl::string_view text : absl::StrSplit(value, '+')) {
      absl::StatusOr<Address> address = Address::Parse(text);
      if (!address.ok()) return address.status();
      options->addresses.push_back(*address);
    }
    return absl::OkStatus();
  }
  if (key == "pcap") {
    options->pcap = std::string(value);
    return absl::OkStatus();
  }
  if (key == "shm") {
    options->shared_memory = true;
    return absl::OkStatus();
  }
  if (key == "log") {
    options->log = true;
    return absl::OkStatus();
  }
  if (key == "explain") {
    options->explain = true;
    return absl::OkStatus();
  }
  if (key == "counters") {
    options->counters = true;
    return absl::OkStatus();
  }
  soft::FabricFaults& faults = options->faults;
  if (key == "loss") return Take(base::ParseShare(value), &faults.loss);
  if (key == "corrupt") return Take(base::ParseShare(value), &faults.corruption);
  if (key == "delay") return Take(base::ParseDuration(value), &faults.delay);
  if (key == "error-at") return Take(RequestFault::Parse(value), &options->request_fault);
  if (key == "port-down") return Take(PortFault::Parse(value), &options->port_fault);
  if (key == "seed") {
    if (absl::SimpleAtoi(value, &faults.seed)) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("'", value, "' is no seed: give a number"));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("no option \"", key, "\" in ", kOptionsVariable,
                   ": address, shm, pcap, log, explain, counters, loss, corrupt, delay, seed, error-at, port-down"));
}

}  // namespace

absl::StatusOr<Options> Options::Parse(absl::string_view text) {
  Options options;
  for (const absl::string_view item : absl::StrSplit(text, ',', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> pair = absl::StrSplit(item, absl::MaxSplits('=', 1));
    if (absl::Status taken = Take(pair.first, pair.second, &options); !taken.ok()) return taken;
  }
  return options;
}

std::string Options::ToString() const {
  std::vector<std::string> items;
  if (!addresses.empty()) {
    const auto write = [](std::string* out, const Address& address) {
      Address plain = address;
      std::string text = plain.ToString();
      out->append(text);
    };
    items.push_back("address=" + absl::StrJoin(addresses, "+", write));
  }
  if (shared_memory) items.push_back("shm");
  if (!pcap.empty()) items.push_back("pcap=" + pcap);
  if (log) items.push_back("log");
  if (explain) items.push_back("explain");
  if (counters) items.push_back("counters");
  if (faults.loss > 0) items.push_back(absl::StrCat("loss=", faults.loss));
  if (faults.corruption > 0) items.push_back(absl::StrCat("corrupt=", faults.corruption));
  if (faults.delay > base::Duration()) items.push_back(absl::StrCat("delay=", faults.delay.nanoseconds(), "ns"));
  if (faults.any()) items.push_back(absl::StrCat("seed=", faults.seed));
  if (request_fault.number != 0) items.push_back("error-at=" + request_fault.ToString());
  if (port_fault.any()) items.push_back("port-down=" + port_fault.ToString());
  return absl::StrJoin(items, ",");
}

// Connecting a datagram socket only looks the route up. 192.0.2.0/24 is for documentation.
Address DefaultAddress() {
  Address loopback;
  loopback.ip = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1};
  const os::FileDescriptor socket_fd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in far{};
  far.sin_family = AF_INET;
  far.sin_port = htons(9);
  far.sin_addr.s_addr = htonl(0xc0000201);
  if (connect(socket_fd.get(), reinterpret_cast<const sockaddr*>(&far), sizeof(far)) != 0) return loopback;
  sockaddr_storage own{};
  socklen_t length = sizeof(own);
  if (getsockname(socket_fd.get(), reinterpret_cast<sockaddr*>(&own), &length) != 0) return loopback;
  Address address = soft::FromSocketAddress(own);
  address.port = 0;  // temporary
  return address;
}

std::string InterfaceOf(const Address& address) {
  ifaddrs* list = nullptr;
  std::string name = "lo";
  if (getifaddrs(&list) != 0) return name;
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr != nullptr && FromInternet(one->ifa_addr).ip == address.ip) name = one->ifa_name;
  }
  freeifaddrs(list);
  return name;
}

}  // namespace tokamak::verbs::kernel
