#include "lib/node/deletes/object_delete.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "lib/node/calls/object_messages.h"

namespace tokamak::node {

namespace {

constexpr size_t kMaxNamesTold = 8;  // in an error's text

std::string Names(const std::vector<directory::NodeId>& nodes) {
  const size_t told = std::min(nodes.size(), kMaxNamesTold);
  std::string names = absl::StrJoin(nodes.begin(), nodes.begin() + static_cast<ptrdiff_t>(told), ", ");
  if (told < nodes.size()) absl::StrAppend(&names, " and ", nodes.size() - told, " more");
  return names;
}

}  // namespace

ObjectDelete::ObjectDelete(const Needs& needs, const base::ObjectId& id, Callback done)
    : needs_(needs), id_(id), done_(std::move(done)) {
  if (const auto here = needs_.store.Find(id)) here_ = here->generation;
  Mark();
}

ObjectDelete::ObjectDelete(const Needs& needs, const base::ObjectVersion& version, Callback done)
    : needs_(needs), id_(version.id), done_(std::move(done)), generation_(version.generation) {
  Mark();
}

void ObjectDelete::Mark() {
  directory::DeleteRequest request;
  request.id = id_;
  request.generation = generation_;
  request.dropped = std::exchange(confirmed_, {});
  request.after = after_;
  question_ = needs_.directory.Delete(request, needs_.deadline,
                                      [this](const absl::StatusOr<directory::DeleteReply>& reply) { Marked(reply); });
}

void ObjectDelete::Marked(const absl::StatusOr<directory::DeleteReply>& reply) {
  if (!reply.ok()) {
    // A marked deletion is forgotten once the last holder has confirmed.
    const bool over = absl::IsNotFound(reply.status());
    if (over && DeletesWhatIsHereNext()) return;
    return Finish(marked_ && over ? absl::OkStatus() : reply.status());
  }
  const base::Generation asked = std::exchange(generation_, reply->generation);
  if (asked != generation_) {
    DropHere(asked);  // over: the directory names another content
    dropped_here_ = false;
    after_.clear();
  }
  marked_ = true;
  if (!std::exchange(dropped_here_, true)) {
    if (HasLostThisNode(*reply)) needs_.membership.DirectoryHasLost();
    tells_all_ = needs_.membership.OthersMayBeLost();
    DropHere(generation_);
  }
  to_tell_.clear();
  for (const directory::NodeId& holder : reply->holders) {
    if (failed_.count(holder) == 0) to_tell_.push_back(holder);
  }
  if (!to_tell_.empty()) return TellHolders();
  if (!reply->holders.empty()) {  // all called before, without an answer
    after_ = reply->holders.back();
    return Mark();
  }
  silent_.insert(silent_.end(), reply->silent.begin(), reply->silent.end());
  if (std::exchange(tells_all_, false)) return TellAll();
  if (!DeletesWhatIsHereNext()) Finish(absl::OkStatus());
}

// The directory accepted the content here and neither names this node nor will: it has lost that
// entry, and perhaps others. (A fresh copy is its holder's to name.)
bool ObjectDelete::HasLostThisNode(const directory::DeleteReply& reply) const {
  const base::ObjectVersion version{id_, generation_};
  const auto place = needs_.store.Find(id_);
  if (!place.has_value() || place->generation != generation_) return false;
  const Membership& membership = needs_.membership;
  const bool may_have_been_accepted =
      reply.holders.empty() ? membership.MayBeElsewhere(version) : !membership.IsUnannounced(version);
  const bool may_come = reply.holders.size() >= directory::kMaxHoldersNamed && reply.holders.back() < needs_.self;
  if (!may_have_been_accepted || may_come) return false;
  const auto names_us = [this](const std::vector<directory::NodeId>& nodes) {
    return std::find(nodes.begin(), nodes.end(), needs_.self) != nodes.end();
  };
  return !names_us(reply.holders) && !names_us(reply.silent);
}

// A content here since the beginning: not the directory's, or one that it does not know yet, or has
// lost.
bool ObjectDelete::DeletesWhatIsHereNext() {
  const base::Generation next = std::exchange(here_, base::kNoGeneration);
  const auto place = needs_.store.Find(id_);
  if (next == base::kNoGeneration || !place.has_value() || place->generation != next) return false;
  generation_ = next;
  dropped_here_ = false;
  after_.clear();
  Mark();
  return true;
}

void ObjectDelete::DropHere(base::Generation generation) {
  const auto place = needs_.store.Find(id_);
  if (!place.has_value() || place->generation != generation) return;
  needs_.copies.Drop({id_, generation}, absl::AbortedError("it was deleted"));
  ++copies_;
}

// Nobody announces it any more: only nodes alive now may hold it, and silent ones, which learn of
// it when back.
void ObjectDelete::TellAll() {
  question_ = needs_.peers.Refresh([this](const absl::Status& status) {
    if (!status.ok()) return Finish(status);
    all_ = needs_.peers.Names();
    TellSomeOfAll();
  });
}

void ObjectDelete::TellSomeOfAll() {
  const size_t rest = all_.size() - std::min(all_.size(), directory::kMaxHoldersNamed);
  to_tell_.assign(all_.begin() + static_cast<ptrdiff_t>(rest), all_.end());
  all_.resize(rest);
  if (to_tell_.empty()) {
    Mark();
  } else {
    TellHolders();
  }
}

void ObjectDelete::TellHolders() {
  const bool all_known = std::all_of(to_tell_.begin(), to_tell_.end(), [this](const directory::NodeId& holder) {
    const Peers::Peer* peer = needs_.peers.Find(holder);
    return holder == needs_.self || (peer != nullptr && !peer->suspect);
  });
  const auto tell = [this](const absl::Status&) {
    calls_.clear();
    unanswered_ = static_cast<uint32_t>(to_tell_.size());
    for (const directory::NodeId& holder : std::vector<directory::NodeId>(to_tell_)) Tell(holder);
  };
  if (all_known) return tell(absl::OkStatus());
  question_ = needs_.peers.Refresh(tell);
}

void ObjectDelete::Tell(const directory::NodeId& holder) {
  const base::ObjectVersion version{id_, generation_};
  if (holder == needs_.self) {
    needs_.copies.Drop(version, absl::AbortedError("it was deleted"));
    return AwaitVouched();
  }
  const Peers::Peer* peer = needs_.peers.Find(holder);
  if (peer == nullptr) return Told(holder, false, false);
  calls_.push_back(needs_.holders.Call(peer->engines.front(), EncodeRequest(DropRequest{version}), needs_.deadline,
                                       [this, holder](const absl::StatusOr<absl::Span<const uint8_t>>& reply) {
                                         const std::optional<bool> had_it =
                                             reply.ok() ? DecodeDropAnswer(*reply) : std::nullopt;
                                         Told(holder, had_it.has_value(), had_it.value_or(false));
                                       }));
}

// This node confirms only when its vouched copies are gone.
void ObjectDelete::AwaitVouched() {
  vouched_ = needs_.copies.AwaitVouched({id_, generation_}, [this] {
    vouched_deadline_.Cancel();
    Told(needs_.self, true, false);
  });
  if (vouched_ == nullptr) return Told(needs_.self, true, false);
  vouched_deadline_ = needs_.loop.RunAfter(needs_.deadline, [this] {
    vouched_.reset();
    Told(needs_.self, false, false);
  });
}

void ObjectDelete::Told(const directory::NodeId& holder, bool confirmed, bool had_it) {
  if (confirmed) confirmed_.push_back(holder);
  if (!confirmed) failed_.insert(holder);
  copies_ += had_it;
  if (--unanswered_ > 0) return;
  if (!all_.empty()) return TellSomeOfAll();
  confirmed_.resize(std::min(confirmed_.size(), directory::kMaxHoldersNamed));  // nobody asked for those of all
  Mark();
}

void ObjectDelete::Finish(const absl::Status& directory_status) {
  const Callback done = std::move(done_);
  if (!directory_status.ok()) {
    if (absl::IsNotFound(directory_status)) return done(directory_status);
    // Refused or without an answer: it cannot be asked.
    return done(absl::UnavailableError(absl::StrCat("the object may not be deleted: ", directory_status.message())));
  }
  // A node may have fallen silent meanwhile.
  failed_.insert(silent_.begin(), silent_.end());
  const std::vector<directory::NodeId> left(failed_.begin(), failed_.end());
  if (left.empty()) return done(copies_);
  done(absl::UnavailableError(absl::StrCat(
      "deleted on all nodes that could be asked (", copies_, "), but ", Names(left), left.size() == 1 ? " does" : " do",
      " not answer and may hold a copy, which is dropped when it is back; delete again to see whether it was")));
}

}  // namespace tokamak::node
