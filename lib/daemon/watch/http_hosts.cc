#include "lib/daemon/watch/http_hosts.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "lib/base/text/printable.h"
#include "lib/os/sockets/name_lookup.h"

namespace tokamak::daemon {
namespace {

constexpr size_t kLongestHostName = 253;

// For comparison.
std::string Normal(absl::string_view name) {
  absl::ConsumeSuffix(&name, ".");
  return absl::AsciiStrToLower(name);
}

bool IsPort(absl::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); });
}

}  // namespace

absl::Status HttpHosts::Check(const std::string& name) {
  const bool is_name =
      !name.empty() && name.size() <= kLongestHostName && std::all_of(name.begin(), name.end(), [](char c) {
        return absl::ascii_isalnum(static_cast<unsigned char>(c)) || absl::StrContains("-._", c);
      });
  if (is_name) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("'", base::Printable(name),
                                                 "' is no name of a host: give it as it stands in the page's address, "
                                                 "without http:// and without a port"));
}

void HttpHosts::Add(absl::string_view name) {
  if (name.empty()) return;
  const base::MutexLock lock(mutex_);
  names_.insert(Normal(name));
}

bool HttpHosts::Allows(absl::string_view host) const {
  if (absl::ConsumePrefix(&host, "[")) {  // IPv6
    const size_t end = host.find(']');
    if (end == absl::string_view::npos) return false;
    absl::string_view port = host.substr(end + 1);
    if (!port.empty() && !(absl::ConsumePrefix(&port, ":") && IsPort(port))) return false;
    return os::IsIpAddress(std::string(host.substr(0, end)));
  }
  const size_t colon = host.find(':');
  if (colon != absl::string_view::npos && !IsPort(host.substr(colon + 1))) return false;
  const std::string name = Normal(host.substr(0, colon));
  if (os::IsIpAddress(name)) return true;
  const base::MutexLock lock(mutex_);
  return names_.count(name) > 0;
}

}  // namespace tokamak::daemon
