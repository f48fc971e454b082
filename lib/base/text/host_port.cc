#include "lib/base/text/host_port.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace tokamak::base {
namespace {

constexpr size_t kLongestName = 253;  // RFC 1035

bool IsIpv6(absl::string_view host) {
  return absl::StrContains(host, ':') && std::all_of(host.begin(), host.end(), [](char c) {
           return absl::ascii_isalnum(c) || c == ':' || c == '.' || c == '%';
         });
}

// True for digits and points alone.
bool IsMeantAsIpv4(absl::string_view host) {
  return std::all_of(host.begin(), host.end(), [](char c) { return absl::ascii_isdigit(c) || c == '.'; });
}

bool IsIpv4(absl::string_view host) {
  const std::vector<absl::string_view> parts = absl::StrSplit(host, '.');
  return parts.size() == 4 && std::all_of(parts.begin(), parts.end(), [](absl::string_view part) {
           uint32_t number = 0;
           return absl::SimpleAtoi(part, &number) && number < 256;
         });
}

bool IsName(absl::string_view host) {
  return !host.empty() && host.size() <= kLongestName && std::all_of(host.begin(), host.end(), [](char c) {
    return absl::ascii_isalnum(c) || c == '.' || c == '-' || c == '_';
  });
}

}  // namespace

absl::StatusOr<HostPort> HostPort::Parse(absl::string_view text, uint16_t default_port) {
  const absl::Status none = absl::InvalidArgumentError(absl::StrCat(
      "\"", text, "\" is no host with a port: write it as host.example.com:7000, 10.0.0.1:7000 or [::1]:7000"));
  absl::string_view host = text, port;
  bool has_port = false;
  if (absl::ConsumePrefix(&host, "[")) {
    const size_t end = host.find(']');
    if (end == absl::string_view::npos) return none;
    port = host.substr(end + 1);
    host = host.substr(0, end);
    has_port = absl::ConsumePrefix(&port, ":");
    if (!IsIpv6(host) || (!has_port && !port.empty())) return none;
  } else {
    const size_t colon = host.find(':');
    has_port = colon != absl::string_view::npos;
    if (has_port) {
      port = host.substr(colon + 1);
      host = host.substr(0, colon);
    }
    if (!(IsMeantAsIpv4(host) ? IsIpv4(host) : IsName(host))) return none;
  }
  uint32_t number = default_port;
  if (has_port && !absl::SimpleAtoi(port, &number)) return none;
  if (number == 0 || number > UINT16_MAX) return none;
  return HostPort{std::string(host), static_cast<uint16_t>(number)};
}

std::string HostPort::ToString() const {
  return absl::StrContains(host, ':') ? absl::StrCat("[", host, "]:", port) : absl::StrCat(host, ":", port);
}

}  // namespace tokamak::base
