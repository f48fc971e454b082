#include "lib/node/cluster_delete.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tokamak::node {

namespace {

// A request of the objects service: one byte that says what, then the id. The answer is one byte.
constexpr uint8_t kDelete = 1;
constexpr uint8_t kDeleted = 1;
constexpr uint8_t kNotHere = 2;

}  // namespace

ClusterDelete::ClusterDelete(store::Store& store, directory::Directory& directory, Peers& peers,
                             transport::Caller& holders, directory::NodeId self, const base::ObjectId& id,
                             base::Duration deadline, Node::DeleteCallback done)
    : store_(store),
      directory_(directory),
      peers_(peers),
      holders_(holders),
      self_(std::move(self)),
      id_(id),
      deadline_(deadline),
      done_(std::move(done)) {}

std::vector<uint8_t> ClusterDelete::EncodeRequest(const base::ObjectId& id) {
  std::vector<uint8_t> request(1 + base::ObjectId::kSize, kDelete);
  std::memcpy(request.data() + 1, id.data(), base::ObjectId::kSize);
  return request;
}

std::vector<uint8_t> ClusterDelete::Answer(absl::Span<const uint8_t> request, store::Store& store,
                                           Membership& membership) {
  if (request.size() != 1 + base::ObjectId::kSize || request[0] != kDelete) return {};
  std::array<uint8_t, base::ObjectId::kSize> bytes;
  std::copy(request.begin() + 1, request.end(), bytes.begin());
  const base::ObjectId id(bytes);
  if (store.Delete(id).ok()) return {kDeleted};
  membership.Recheck(id);  // the peer was told that it is here
  return {kNotHere};
}

void ClusterDelete::Begin() {
  directory_.Locate(id_, base::Duration(), deadline_,
                    [self = weak_from_this()](absl::StatusOr<directory::ObjectInfo> info) {
                      if (const auto alive = self.lock()) alive->Located(std::move(info));
                    });
}

void ClusterDelete::Located(absl::StatusOr<directory::ObjectInfo> info) {
  if (store_.Delete(id_).ok()) ++result_.copies;
  if (!info.ok()) {
    if (!absl::IsNotFound(info.status())) directory_status_ = info.status();
    return Settle();
  }
  info_ = *std::move(info);
  info_.holders.erase(std::remove(info_.holders.begin(), info_.holders.end(), self_), info_.holders.end());
  if (info_.holders.empty()) return Settle();
  if (AllKnown()) return AskHolders();
  peers_.Refresh([self = weak_from_this()](const absl::Status&) {
    if (const auto alive = self.lock()) alive->AskHolders();
  });
}

bool ClusterDelete::AllKnown() const {
  return std::all_of(info_.holders.begin(), info_.holders.end(), [this](const directory::NodeId& holder) {
    const Peers::Peer* peer = peers_.Find(holder);
    return peer != nullptr && !peer->suspect;
  });
}

void ClusterDelete::AskHolders() {
  std::vector<verbs::Address> reachable;
  for (const directory::NodeId& holder : info_.holders) {
    const Peers::Peer* peer = peers_.Find(holder);
    if (peer == nullptr) {
      ++result_.unreachable;
    } else {
      reachable.push_back(peer->engines.front());
    }
  }
  unanswered_ = static_cast<uint32_t>(reachable.size());
  if (unanswered_ == 0) return Settle();
  for (const verbs::Address& holder : reachable) Ask(holder);
}

void ClusterDelete::Ask(const verbs::Address& holder) {
  holders_.Call(holder, EncodeRequest(id_), deadline_,
                [self = weak_from_this()](absl::StatusOr<absl::Span<const uint8_t>> reply) {
                  const auto alive = self.lock();
                  if (alive == nullptr) return;
                  const bool answered = reply.ok() && reply->size() == 1;
                  if (!answered) ++alive->result_.unreachable;
                  if (answered && (*reply)[0] == kDeleted) ++alive->result_.copies;
                  if (--alive->unanswered_ == 0) alive->Settle();
                });
}

void ClusterDelete::Settle() {
  const Node::DeleteCallback done = std::move(done_);
  if (!directory_status_.ok()) {
    return done(absl::Status(directory_status_.code(),
                             absl::StrCat("deleted ", result_.copies,
                                          " copy here, but other holders are unknown: ", directory_status_.message())));
  }
  if (result_.copies == 0 && result_.unreachable == 0) return done(absl::NotFoundError("no node holds the object"));
  done(result_);
}

}  // namespace tokamak::node
