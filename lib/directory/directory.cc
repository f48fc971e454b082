#include "lib/directory/directory.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "lib/base/text/printable.h"

namespace tokamak::directory {

namespace {

std::string InSeconds(base::Duration duration) {
  return absl::StrFormat("%.1f s", static_cast<double>(duration.milliseconds()) / 1000);
}

}  // namespace

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
    if (engine.empty() || engine.size() > kMaxAddressText || engine.find(' ') != std::string::npos ||
        base::Printable(engine) != engine) {
      return absl::InvalidArgumentError(
          absl::StrCat("an engine's address has 1 to ", kMaxAddressText, " bytes, no space and no control character"));
    }
  }
  if (node.device.size() <= kMaxDeviceText && base::Printable(node.device) == node.device) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("a device's name has at most ", kMaxDeviceText, " bytes and no control character"));
}

base::Pending Directory::Nodes(base::Duration deadline, NodesCallback done) {
  return Roster(deadline, [done = std::move(done)](absl::StatusOr<std::vector<RosterEntry>> roster) {
    if (!roster.ok()) return done(roster.status());
    std::vector<NodeInfo> alive;
    for (RosterEntry& entry : *roster) {
      if (entry.liveness == Liveness::kAlive) alive.push_back(std::move(entry.node));
    }
    done(std::move(alive));
  });
}

absl::Status HasJustBegun(base::Duration ago, base::Duration left) {
  return absl::UnavailableError(absl::StrCat("the directory began ", InSeconds(ago),
                                             " ago and is learning who holds what: try again in ", InSeconds(left)));
}

absl::Status HasNotToldAll(const NodeId& node) {
  return absl::UnavailableError(
      absl::StrCat("node ", node, " has not told yet all that it holds: try again in some seconds"));
}

absl::Status MayHaveBeenDeleted() {
  return absl::AbortedError(
      "it may have been deleted while this node was gone: more was deleted since than the directory remembers");
}

absl::Status SaidTooLongAgo() {
  return absl::FailedPreconditionError("this was said before deletions that the directory has forgotten: say it again");
}

}  // namespace tokamak::directory
