#include "lib/directory/redis/server/cluster_slot.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "lib/directory/redis/server/named_server.h"
#include "lib/directory/redis/server/remedies.h"

namespace tokamak::directory::redis {
namespace {

constexpr size_t kInfo = 0, kKey = 1, kSlots = 2;  // of the questions

}  // namespace

base::Pending ClusterSlot::Find(base::Duration, FoundCallback found) {
  const Place place = owner_.has_value() ? *owner_ : servers_[next_++ % servers_.size()];
  return answers_.Add([place, found = std::move(found)] { found(place); });
}

std::vector<Command> ClusterSlot::Questions() const { return {{"INFO"}, {"EXISTS", key_}, {"CLUSTER", "SLOTS"}}; }

absl::Status ClusterSlot::Judge(const Place& place, const std::vector<Reply>& replies) {
  if (const absl::Status status = JudgeInfo(replies[kInfo], Target::Kind::kCluster); !status.ok()) return status;
  Learn(place, replies[kSlots]);
  const Reply& key = replies[kKey];
  if (key.kind == Reply::Kind::kInteger) {
    owner_ = place;
    return absl::OkStatus();
  }
  // On its way to another server: this one still answers for it.
  if (absl::StartsWith(key.text, "ASK ")) return absl::OkStatus();
  if (Follow(place, key.text)) {
    return absl::AbortedError(absl::StrCat("the keys of the directory are on ", owner_->ToString()));
  }
  return absl::UnavailableError(WithRemedy(key.text));
}

void ClusterSlot::Failed(const Place& place, const std::string& why) {
  const std::optional<Place> before = owner_;
  if (Follow(place, why) && owner_ != before) return;
  if (owner_ == place) owner_.reset();
}

bool ClusterSlot::Follow(const Place& from, absl::string_view error) {
  const std::vector<absl::string_view> words = absl::StrSplit(error.substr(0, error.find(';')), ' ');
  if (words.size() < 3 || words[0] != "MOVED") return false;
  const size_t colon = words[2].rfind(':');
  uint32_t port = 0;
  if (colon == absl::string_view::npos || !absl::SimpleAtoi(words[2].substr(colon + 1), &port) || port == 0 ||
      port > UINT16_MAX) {
    return false;
  }
  base::HostPort address{std::string(words[2].substr(0, colon)), static_cast<uint16_t>(port)};
  if (address.host.empty()) address.host = from.address.host;  // the host that was reached
  owner_ = Place{std::move(address), ""};
  return true;
}

// [[first slot, last slot, [host, port, ...] of the master, of each replica...]...]
void ClusterSlot::Learn(const Place& from, const Reply& slots) {
  std::vector<Place> servers = named_;
  for (const Reply& range : slots.elements) {
    for (size_t i = 2; i < range.elements.size(); ++i) {
      const std::vector<Reply>& server = range.elements[i].elements;
      if (server.size() < 2 || server[1].integer <= 0 || server[1].integer > UINT16_MAX) continue;
      const bool same_host = server[0].text.empty() || server[0].text == "?";
      Place place;
      place.address = {same_host ? from.address.host : server[0].text, static_cast<uint16_t>(server[1].integer)};
      const bool known = std::find(servers.begin(), servers.end(), place) != servers.end();
      if (!known && servers.size() < kMaxServers) servers.push_back(std::move(place));
    }
  }
  servers_ = std::move(servers);
}

base::Pending ClusterSlot::Confirm(const Place&, base::Duration, StatusCallback done) {
  return answers_.Add([done = std::move(done)] { done(absl::OkStatus()); });
}

std::string ClusterSlot::name() const {
  std::vector<std::string> names;
  for (const Place& place : named_) names.push_back(place.ToString());
  return absl::StrCat("the cluster of ", absl::StrJoin(names, ", "));
}

}  // namespace tokamak::directory::redis
