#include "lib/node/evacuation.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/codec.h"

namespace tokamak::node {

namespace {

// The first byte of a request of the objects service; object_delete.cc has the other.
constexpr uint8_t kKeep = 2;

constexpr size_t kPage = 64;  // objects listed at once
constexpr base::Duration kReportInterval = base::Seconds(1);
constexpr base::Duration kRetryDelay = base::Milliseconds(200);  // after a connection broke

}  // namespace

Evacuation::Evacuation(const Services& services, base::Duration limit, Callback progress, Callback done)
    : services_(services),
      limit_(services.loop.Now() + limit),
      progress_(std::move(progress)),
      done_(std::move(done)),
      sealed_(services.store.Subscribe([this](absl::Span<const store::Event> events) { Put(events); })),
      end_(services.loop.RunAt(limit_, [this] { Finish(); })) {
  report_timer_ = services_.loop.RunAfter(kReportInterval, [this] { Report(); });
  question_ = services_.directory.Nodes(
      services_.deadline, [this](const absl::StatusOr<std::vector<directory::NodeInfo>>& nodes) { Known(nodes); });
}

std::vector<uint8_t> Evacuation::EncodeRequest(const Request& request) {
  base::Writer writer;
  writer.Integer(kKeep);
  writer.Id(request.version.id);
  writer.Integer(static_cast<uint64_t>(request.version.generation));
  writer.Integer(request.data_size);
  writer.Integer(request.metadata_size);
  return writer.Take();
}

absl::optional<Evacuation::Request> Evacuation::DecodeRequest(absl::Span<const uint8_t> bytes) {
  base::Reader reader(bytes);
  const auto what = reader.Integer<uint8_t>();
  Request request;
  request.version.id = reader.Id();
  request.version.generation = base::Generation{reader.Integer<uint64_t>()};
  request.data_size = reader.Integer<uint64_t>();
  request.metadata_size = reader.Integer<uint64_t>();
  if (!reader.Complete() || what != kKeep || request.version.generation == base::kNoGeneration) return absl::nullopt;
  return request;
}

void Evacuation::Known(const absl::StatusOr<std::vector<directory::NodeInfo>>& nodes) {
  report_.trouble = nodes.status();
  for (const directory::NodeInfo& node : nodes.value_or(std::vector<directory::NodeInfo>())) {
    if (node.id != services_.self) nodes_.push_back(node.id);
  }
  if (nodes_.empty() && nodes.ok()) report_.trouble = absl::NotFoundError("there is no other node");
  // Their addresses, for Ask.
  question_ = services_.peers.Refresh([this](const absl::Status& status) {
    if (!status.ok()) report_.trouble = status;
    asking_ = true;
    Fill();
  });
}

void Evacuation::Put(absl::Span<const store::Event> events) {
  for (const store::Event& event : events) {
    if (event.kind != store::Event::Kind::kSealed || event.origin != store::Origin::kCreatedHere) continue;
    put_.push_back(event.version());
  }
  if (asking_) Fill();
}

void Evacuation::Fill() {
  while (moving_.size() < kAtOnce) {
    absl::optional<Request> object = NextObject();
    if (!object.has_value()) break;
    const uint64_t number = ++last_number_;
    moving_[number].request = *object;
    Ask(number);
  }
  if (moving_.empty() && done_ != nullptr) end_ = services_.loop.Post([this] { Finish(); });
}

void Evacuation::ListNextPage() {
  const std::vector<store::ObjectInfo> page = services_.store.List(kPage, listed_to_);
  listed_ = page.empty();
  if (!listed_) listed_to_ = page.back().id;
  for (const store::ObjectInfo& object : page) {
    if (object.state != store::State::kSealed || object.origin != store::Origin::kCreatedHere) continue;
    if (!taken_.insert(object.version()).second) continue;
    page_.push_back({object.version(), object.location.data_size, object.location.metadata_size});
  }
  std::reverse(page_.begin(), page_.end());
}

absl::optional<Evacuation::Request> Evacuation::NextObject() {
  while (page_.empty() && !listed_) ListNextPage();
  while (page_.empty() && !put_.empty()) {
    const base::ObjectVersion version = put_.front();
    put_.pop_front();
    const absl::optional<store::Location> here = services_.store.Find(version.id);
    if (!here.has_value() || here->generation != version.generation) continue;  // it was deleted
    if (taken_.insert(version).second) page_.push_back({version, here->data_size, here->metadata_size});
  }
  if (page_.empty()) return absl::nullopt;
  const Request next = page_.back();
  page_.pop_back();
  return next;
}

// One node after the other, as long as none has taken it.
void Evacuation::Ask(uint64_t number) {
  Moving& moving = moving_[number];
  while (moving.asked < nodes_.size()) {
    ++moving.asked;
    const Peers::Peer* peer = services_.peers.Find(nodes_[next_node_++ % nodes_.size()]);
    if (peer == nullptr) continue;
    moving.call = services_.holders.Call(
        peer->engines.front(), EncodeRequest(moving.request), limit_ - services_.loop.Now(),
        [this, number](const absl::StatusOr<absl::Span<const uint8_t>>& reply) { Answered(number, reply); });
    return;
  }
  Leave(moving.request);
  moving_.erase(number);
}

void Evacuation::Answered(uint64_t number, const absl::StatusOr<absl::Span<const uint8_t>>& reply) {
  Moving& moving = moving_[number];
  const Request request = moving.request;
  if (reply.ok() && reply->size() == 1 && (*reply)[0] == 1) {
    ++report_.objects;
    report_.bytes += request.data_size + request.metadata_size;
    moving_.erase(number);
  } else {
    report_.trouble = reply.ok() ? absl::ResourceExhaustedError("a node has no room for it") : reply.status();
    const bool broke = absl::IsUnavailable(reply.status());
    if (broke) --moving.asked;  // that was no answer
    moving.retry = services_.loop.RunAfter(broke ? kRetryDelay : base::Duration(), [this, number] {
      Ask(number);
      Fill();
    });
  }
  Fill();
}

void Evacuation::Leave(const Request& request) {
  ++report_.left_objects;
  report_.left_bytes += request.data_size + request.metadata_size;
}

void Evacuation::Report() {
  report_timer_ = services_.loop.RunAfter(kReportInterval, [this] { Report(); });
  progress_(report_);
}

void Evacuation::Finish() {
  report_timer_.Cancel();
  for (const auto& [number, moving] : moving_) Leave(moving.request);
  moving_.clear();
  while (const absl::optional<Request> object = NextObject()) Leave(*object);
  const Callback done = std::move(done_);
  done(report_);  // may drop us
}

}  // namespace tokamak::node
