#include "lib/verbs/ibv/translation/device_name.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace tokamak::verbs::ibv {
namespace {

absl::Status Malformed(absl::string_view text) {
  return absl::InvalidArgumentError(
      absl::StrCat("'", text, "' names no RDMA device: ibv:NAME[:PORT][@GID_INDEX], say ibv:mlx5_0 or ibv:mlx5_0:1@3"));
}

// Digits only, without leading zeros.
bool ParseNumber(absl::string_view text, uint32_t max, uint32_t* value) {
  if (text.empty() || text.size() > 4 || (text.size() > 1 && text[0] == '0')) return false;
  if (text.find_first_not_of("0123456789") != absl::string_view::npos) return false;
  return absl::SimpleAtoi(text, value) && *value <= max;
}

}  // namespace

std::string DeviceName::ToString() const {
  std::string text = absl::StrCat("ibv:", device);
  if (port != 0) absl::StrAppend(&text, ":", port);
  if (gid_index) absl::StrAppend(&text, "@", *gid_index);
  return text;
}

absl::StatusOr<DeviceName> ParseDeviceName(absl::string_view text) {
  absl::string_view rest = text;
  if (!absl::ConsumePrefix(&rest, "ibv:")) return Malformed(text);
  DeviceName name;
  if (const size_t at = rest.find('@'); at != absl::string_view::npos) {
    uint32_t index = 0;
    if (!ParseNumber(rest.substr(at + 1), UINT8_MAX, &index)) return Malformed(text);
    name.gid_index = index;
    rest = rest.substr(0, at);
  }
  if (const size_t colon = rest.find(':'); colon != absl::string_view::npos) {
    uint32_t port = 0;
    if (!ParseNumber(rest.substr(colon + 1), UINT8_MAX, &port) || port == 0) return Malformed(text);
    name.port = static_cast<uint8_t>(port);
    rest = rest.substr(0, colon);
  }
  constexpr absl::string_view kNameCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
  if (rest.empty() || rest.find_first_not_of(kNameCharacters) != absl::string_view::npos) return Malformed(text);
  name.device = std::string(rest);
  return name;
}

}  // namespace tokamak::verbs::ibv
