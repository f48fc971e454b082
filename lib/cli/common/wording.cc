#include "lib/cli/common/wording.h"

#include <chrono>

#include "absl/strings/str_cat.h"

namespace tokamak::cli {

const char* Wording(ObjectState state) {
  switch (state) {
    case ObjectState::kCreated:
      return "unsealed";
    case ObjectState::kSealed:
      return "sealed";
    case ObjectState::kEvicted:
      return "evicted";
    case ObjectState::kDeleted:
      return "deleted";
    case ObjectState::kAborted:
      return "aborted";
  }
  return "?";
}

const char* Wording(Origin origin) { return origin == Origin::kPulled ? "pulled" : "created here"; }

const char* Wording(EventKind kind) {
  switch (kind) {
    case EventKind::kSealed:
      return "sealed";
    case EventKind::kDeleted:
      return "deleted";
    case EventKind::kEvicted:
      return "evicted";
    case EventKind::kRefused:
      return "refused";
  }
  return "?";
}

const char* Wording(NodeState state) {
  switch (state) {
    case NodeState::kAlive:
      return "alive";
    case NodeState::kSuspected:
      return "suspected";
    case NodeState::kSilent:
      return "silent";
  }
  return "?";
}

std::string StandingOf(const ViewedNode& node) {
  if (node.state == NodeState::kAlive) return Wording(node.state);
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(node.unheard_for).count();
  return absl::StrCat(Wording(node.state), ", seen ", seconds, " s ago");
}

nlohmann::json ToJson(const ObjectInfo& object) {
  return {{"id", object.id.ToHex()},
          {"name", object.name},
          {"data_bytes", object.data_size},
          {"metadata_bytes", object.metadata_size},
          {"pins", object.pins},
          {"pinned", object.pinned_here},
          {"state", Wording(object.state)},
          {"origin", Wording(object.origin)},
          {"age_seconds", std::chrono::duration<double>(object.age).count()}};
}

}  // namespace tokamak::cli
