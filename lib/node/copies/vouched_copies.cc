#include "lib/node/copies/vouched_copies.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "glog/logging.h"
#include "lib/base/codec.h"
#include "lib/directory/directory.h"

namespace tokamak::node {

namespace {

// The first byte of a request of the objects service.
constexpr uint8_t kVouch = 3;
constexpr uint8_t kDropCopy = 4;
constexpr uint8_t kBring = 5;

constexpr size_t kMaxAddress = 64;                // bytes of text
constexpr uint64_t kMaxGoodFor = 86'400'000'000;  // microseconds: a day

void WriteGoodFor(base::Writer& writer, base::Duration good_for) {
  writer.Integer(std::min(static_cast<uint64_t>(good_for.microseconds()), kMaxGoodFor));
}

// Zero: no such time.
base::Duration ReadGoodFor(base::Reader& reader) {
  const auto microseconds = reader.Integer<uint64_t>();
  return microseconds > kMaxGoodFor ? base::Duration() : base::Microseconds(static_cast<int64_t>(microseconds));
}

}  // namespace

VouchedCopies::Waiter::~Waiter() {
  if (object_ != nullptr) object_->waiters.Remove(this);
}

void VouchedCopies::Waiter::Tell() {
  object_ = nullptr;
  const base::Task done = std::move(done_);
  done();
}

VouchedCopies::~VouchedCopies() {
  for (auto& [version, object] : objects_) {
    while (!object.waiters.empty()) object.waiters.PopFront()->Orphan();
  }
}

bool VouchedCopies::Vouch(const base::ObjectVersion& version, const verbs::Address& node, base::Duration lifetime) {
  if (expiries_.size() >= kMaxCopies) return false;
  Object& object = objects_[version];
  if (object.nodes.size() >= kMaxNodes && object.nodes.count(node) == 0) return false;
  Add(object, version, node, lifetime);
  return true;
}

// A word that is given again does not shorten the earlier one.
void VouchedCopies::Add(Object& object, const base::ObjectVersion& version, const verbs::Address& node,
                        base::Duration lifetime) {
  const base::Time until = services_.loop.Now() + lifetime;
  base::Time& told = object.nodes[node];
  if (until <= told) return;
  told = until;
  expiries_.emplace(until, Expiry{version, node});
  if (expiries_.begin()->first == until) expiry_ = services_.loop.RunAt(until, [this] { Expire(); });
}

void VouchedCopies::Drop(const base::ObjectVersion& version) {
  const auto found = objects_.find(version);
  if (found == objects_.end() || found->second.dropping) return;
  Object& object = found->second;
  object.dropping = true;
  for (const auto& [node, until] : object.nodes) object.named.insert(node);
  Tell(version);
}

base::Pending VouchedCopies::Await(const base::ObjectVersion& version, base::Task done) {
  const auto found = objects_.find(version);
  if (found == objects_.end()) return nullptr;
  auto waiter = std::make_unique<Waiter>(found->second, std::move(done));
  found->second.waiters.PushBack(waiter.get());
  return waiter;
}

// All that have not answered yet.
void VouchedCopies::Tell(const base::ObjectVersion& version) {
  Object& object = objects_.at(version);
  for (const auto& [node, until] : object.nodes) {
    if (object.calls.count(node) != 0) continue;
    object.calls[node] =
        services_.objects.Call(node, EncodeRequest({version, {}}), options_.deadline,
                               [this, version, node = node](const absl::StatusOr<absl::Span<const uint8_t>>& answer) {
                                 Answered(version, node, answer);
                               });
  }
}

void VouchedCopies::TellLater(Object& object, const base::ObjectVersion& version) {
  if (!object.retry.armed()) object.retry = services_.loop.RunAfter(options_.retry, [this, version] { Tell(version); });
}

void VouchedCopies::Answered(const base::ObjectVersion& version, const verbs::Address& node,
                             const absl::StatusOr<absl::Span<const uint8_t>>& answer) {
  Object& object = objects_.at(version);
  const auto call = object.calls.extract(node);
  if (!answer.ok() || !TakeNames(object, version, *answer)) return TellLater(object, version);
  if (!Remove(version, node)) Tell(version);
}

// Those to whom the node gave the object in its turn. False: malformed, or too many to be told now.
bool VouchedCopies::TakeNames(Object& object, const base::ObjectVersion& version, absl::Span<const uint8_t> answer) {
  base::Reader reader(answer);
  std::vector<verbs::Address> nodes;
  for (uint32_t left = reader.Count(kMaxNamed, sizeof(uint32_t)); left > 0; --left) {
    const absl::StatusOr<verbs::Address> node = verbs::Address::Parse(reader.Text(kMaxAddress));
    if (!node.ok()) return false;
    nodes.push_back(*node);
  }
  if (!reader.Complete() || object.nodes.size() + nodes.size() > kMaxNamed + 1) return false;
  for (const verbs::Address& node : nodes) {
    if (node != services_.self && object.named.insert(node).second) Add(object, version, node, options_.lifetime);
  }
  return true;
}

std::vector<uint8_t> VouchedCopies::AnswerDrop(const base::ObjectVersion& version) const {
  base::Writer writer;
  const auto found = objects_.find(version);
  writer.Integer(found == objects_.end() ? uint32_t{0} : static_cast<uint32_t>(found->second.nodes.size()));
  if (found != objects_.end()) {
    for (const auto& [node, until] : found->second.nodes) writer.Text(node.ToString());
  }
  return writer.Take();
}

// Returns whether it was the last: then those who waited for that were told, and may have dropped
// us.
bool VouchedCopies::Remove(const base::ObjectVersion& version, const verbs::Address& node) {
  const auto found = objects_.find(version);
  CHECK(found != objects_.end() && found->second.nodes.erase(node) == 1);
  found->second.calls.erase(node);
  if (!found->second.nodes.empty()) return false;
  auto over = objects_.extract(found);  // lives until all are told
  gone_(version);
  while (!over.mapped().waiters.empty()) over.mapped().waiters.PopFront()->Tell();
  return true;
}

void VouchedCopies::Expire() {
  while (!expiries_.empty() && expiries_.begin()->first <= services_.loop.Now()) {
    const auto [time, expiry] = *expiries_.begin();
    expiries_.erase(expiries_.begin());
    const auto found = objects_.find(expiry.version);
    if (found == objects_.end()) continue;
    const auto node = found->second.nodes.find(expiry.node);
    if (node == found->second.nodes.end() || node->second > time) continue;  // vouched for again
    expiry_ = services_.loop.Post([this] { Expire(); });
    Remove(expiry.version, expiry.node);
    return;
  }
  if (!expiries_.empty()) expiry_ = services_.loop.RunAt(expiries_.begin()->first, [this] { Expire(); });
}

std::vector<uint8_t> VouchedCopies::EncodeRequest(const Request& request) {
  base::Writer writer;
  writer.Integer(!request.node.has_value() ? kDropCopy : request.bring ? kBring : kVouch);
  writer.Id(request.version.id);
  writer.Integer(static_cast<uint64_t>(request.version.generation));
  if (request.node.has_value()) writer.Text(request.node->ToString());
  return writer.Take();
}

std::vector<uint8_t> VouchedCopies::EncodeAnswer(std::optional<base::Duration> good_for) {
  base::Writer writer;
  if (good_for.has_value()) WriteGoodFor(writer, *good_for);
  return writer.Take();
}

std::optional<base::Duration> VouchedCopies::DecodeAnswer(absl::Span<const uint8_t> answer) {
  base::Reader reader(answer);
  const base::Duration good_for = ReadGoodFor(reader);
  if (!reader.Complete() || good_for == base::Duration()) return std::nullopt;
  return good_for;
}

std::vector<uint8_t> VouchedCopies::EncodeBrought(const Brought& brought) {
  base::Writer writer;
  WriteGoodFor(writer, brought.good_for);
  writer.Integer(brought.data_size);
  writer.Integer(brought.metadata_size);
  writer.Raw(brought.contents);
  return writer.Take();
}

std::optional<VouchedCopies::Brought> VouchedCopies::DecodeBrought(absl::Span<const uint8_t> answer) {
  base::Reader reader(answer);
  Brought brought;
  brought.good_for = ReadGoodFor(reader);
  brought.data_size = reader.Integer<uint64_t>();
  brought.metadata_size = reader.Integer<uint64_t>();
  const bool small = directory::IsSmallEnoughToBring(brought.data_size, brought.metadata_size);
  if (!reader.ok() || brought.good_for == base::Duration() || !small) return std::nullopt;
  if (brought.data_size + brought.metadata_size != reader.rest()) return std::nullopt;
  brought.contents = answer.last(reader.rest());
  return brought;
}

std::optional<VouchedCopies::Request> VouchedCopies::DecodeRequest(absl::Span<const uint8_t> bytes) {
  base::Reader reader(bytes);
  const auto what = reader.Integer<uint8_t>();
  Request request;
  request.version.id = reader.Id();
  request.version.generation = base::Generation{reader.Integer<uint64_t>()};
  request.bring = what == kBring;
  if (what == kVouch || what == kBring) {
    const absl::StatusOr<verbs::Address> node = verbs::Address::Parse(reader.Text(kMaxAddress));
    if (!node.ok()) return std::nullopt;
    request.node = *node;
  }
  const bool known = what == kVouch || what == kBring || what == kDropCopy;
  if (!reader.Complete() || !known || request.version.generation == base::kNoGeneration) return std::nullopt;
  return request;
}

}  // namespace tokamak::node
