// HostPort is a host, by name or address, and a port: "db1.example.com:6379", "10.0.0.1:7000",
// "[::1]:7000".
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tokamak::base {

struct HostPort {
  std::string host;  // without brackets
  uint16_t port = 0;

  // Parses, and looks nothing up. Takes `default_port` if `text` has no port; if that is 0, a port
  // is required. kInvalidArgument: malformed.
  static absl::StatusOr<HostPort> Parse(absl::string_view text, uint16_t default_port = 0);
  std::string ToString() const;

  bool operator==(const HostPort& other) const { return host == other.host && port == other.port; }
  bool operator!=(const HostPort& other) const { return !(*this == other); }
};

}  // namespace tokamak::base
