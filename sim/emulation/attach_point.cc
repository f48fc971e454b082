#include "sim/emulation/attach_point.h"

#include <net/if.h>

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace tokamak::sim {
namespace {

std::string NetworkPath(absl::string_view text) {
  if (text.find('/') != absl::string_view::npos) return std::string(text);
  const bool process = std::all_of(text.begin(), text.end(), absl::ascii_isdigit);
  return process ? absl::StrCat("/proc/", text, "/ns/net") : absl::StrCat("/run/netns/", text);
}

}  // namespace

absl::StatusOr<AttachPoint> AttachPoint::Parse(absl::string_view text) {
  const auto wrong = [text](absl::string_view why) {
    return absl::InvalidArgumentError(
        absl::StrCat("--attach ", text, ": ", why, "; write HOST=INTERFACE, HOST=INTERFACE@NETWORK or HOST=fd:NUMBER"));
  };
  AttachPoint point;
  const size_t equals = text.find('=');
  if (equals == absl::string_view::npos || equals == 0) return wrong("it names no host");
  point.host = std::string(text.substr(0, equals));
  absl::string_view rest = text.substr(equals + 1);
  if (absl::ConsumePrefix(&rest, "fd:")) {
    if (!absl::SimpleAtoi(rest, &point.descriptor) || point.descriptor < 0) return wrong("this is no descriptor");
    return point;
  }
  const size_t at = rest.find('@');
  point.interface = std::string(rest.substr(0, at));
  if (point.interface.empty() || point.interface.size() >= IFNAMSIZ) return wrong("this is no interface's name");
  if (at == absl::string_view::npos) return point;
  if (at + 1 == rest.size()) return wrong("it names no network");
  point.network = NetworkPath(rest.substr(at + 1));
  return point;
}

}  // namespace tokamak::sim
