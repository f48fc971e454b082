#include "lib/directory/directory.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace tokamak::directory {

absl::Status CheckNodeId(const NodeId& node) {
  const bool length_ok = !node.empty() && node.size() <= kMaxNodeName;
  const bool letters_ok = std::all_of(node.begin(), node.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' || c == ':' || c == '-';
  });
  if (length_ok && letters_ok) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("a node's name has 1 to ", kMaxNodeName, " of A-Z a-z 0-9 . _ : -"));
}

absl::Status CheckNode(const NodeInfo& node) {
  if (absl::Status status = CheckNodeId(node.id); !status.ok()) return status;
  if (node.engines.empty() || node.engines.size() > kMaxEngines) {
    return absl::InvalidArgumentError(absl::StrCat("a node has 1 to ", kMaxEngines, " engines"));
  }
  for (const std::string& engine : node.engines) {
    if (engine.empty() || engine.size() > kMaxAddressText || engine.find(' ') != std::string::npos) {
      return absl::InvalidArgumentError(
          absl::StrCat("an engine's address has 1 to ", kMaxAddressText, " bytes and no space"));
    }
  }
  if (node.device.size() <= kMaxDeviceText) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("a device's name has at most ", kMaxDeviceText, " bytes"));
}

}  // namespace tokamak::directory
