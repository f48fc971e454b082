#include "lib/node/pulls/bundles.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "lib/directory/directory.h"

namespace tokamak::node {

Bundles::Part::~Part() {
  if (bundle != nullptr) Drop(*this);
}

Bundles::~Bundles() {
  for (const auto& bundle : bundles_) {
    for (Part* part : bundle->parts) {
      if (part != nullptr) part->bundle = nullptr;
    }
  }
}

base::Pending Bundles::Ask(const verbs::Address& holder, const base::ObjectVersion& version, uint64_t size,
                           Callback done) {
  Bundle& bundle = Gathering(holder, size);
  auto part = std::make_unique<Part>();
  part->bundle = &bundle;
  part->place = bundle.parts.size();
  part->version = version;
  part->done = std::move(done);
  bundle.parts.push_back(part.get());
  bundle.reply_size += BringAllAnswer::kBesideContents + size;
  ++bundle.live;
  if (!sending_.armed()) sending_ = loop_.Post([this] { SendAll(); });
  return part;
}

Bundles::Bundle& Bundles::Gathering(const verbs::Address& holder, uint64_t size) {
  const size_t room = objects_.max_call_size();
  for (const auto& bundle : bundles_) {
    const size_t request = BringAllRequest::kBesideVersions + (bundle->parts.size() + 1) * kVersionSize;
    const uint64_t reply = bundle->reply_size + BringAllAnswer::kBesideContents + size;
    if (bundle->under_way == nullptr && bundle->holder == holder &&
        bundle->parts.size() < BringAllRequest::kMaxObjects && request <= room && reply <= room) {
      return *bundle;
    }
  }
  Bundle& bundle = *bundles_.emplace_back(std::make_unique<Bundle>());
  bundle.bundles = this;
  bundle.holder = holder;
  return bundle;
}

void Bundles::SendAll() {
  for (const auto& each : bundles_) {
    Bundle& bundle = *each;
    if (bundle.under_way != nullptr) continue;
    bundle.parts.erase(std::remove(bundle.parts.begin(), bundle.parts.end(), nullptr), bundle.parts.end());
    ++sent_;
    BringAllRequest request;
    for (size_t i = 0; i < bundle.parts.size(); ++i) {
      bundle.parts[i]->place = i;
      request.versions.push_back(bundle.parts[i]->version);
    }
    bundle.under_way =
        objects_.Call(bundle.holder, EncodeRequest(std::move(request)), deadline_,
                      [&bundle](const absl::StatusOr<absl::Span<const uint8_t>>& reply) { OnReply(bundle, reply); });
  }
}

std::unique_ptr<Bundles::Bundle> Bundles::Take(const Bundle& bundle) {
  const auto found =
      std::find_if(bundles_.begin(), bundles_.end(), [&](const auto& one) { return one.get() == &bundle; });
  std::unique_ptr<Bundle> taken = std::move(*found);
  bundles_.erase(found);
  return taken;
}

void Bundles::Drop(Part& part) {
  Bundle& bundle = *part.bundle;
  bundle.parts[part.place] = nullptr;
  if (--bundle.live == 0) bundle.bundles->Take(bundle);  // its handle cancels the request
}

// A callback may drop other parts, or all of this.
void Bundles::OnReply(Bundle& bundle, const absl::StatusOr<absl::Span<const uint8_t>>& reply) {
  const std::unique_ptr<Bundle> ended = bundle.bundles->Take(bundle);
  ++ended->live;  // outlives them all
  const auto objects = reply.ok() ? BringAllAnswer::Decode(*reply, ended->parts.size())
                                  : BringAllAnswer::Contents(ended->parts.size(), reply.status());
  for (size_t place = 0; place < ended->parts.size(); ++place) {
    Part* const part = std::exchange(ended->parts[place], nullptr);
    if (part == nullptr) continue;
    part->bundle = nullptr;
    const Callback done = std::move(part->done);
    done(objects[place]);
  }
}

std::vector<uint8_t> Bundles::Answer(absl::Span<const base::ObjectVersion> versions, size_t max_size, const Size& size,
                                     const Contents& contents) {
  BringAllAnswer answer(versions.size());
  size_t left = versions.size() * BringAllAnswer::kBesideContents;  // least need of the contents to follow
  for (const base::ObjectVersion& version : versions) {
    const std::optional<uint64_t> here = size(version);
    left -= BringAllAnswer::kBesideContents;
    const bool fits = here.has_value() && *here <= directory::kMaxBrought &&
                      answer.size() + BringAllAnswer::kBesideContents + *here + left <= max_size;
    const absl::Span<const uint8_t> bytes = fits ? contents(version) : absl::Span<const uint8_t>();
    const bool brought = fits && bytes.size() == *here;
    if (brought) {
      answer.Bring(bytes);
    } else {
      answer.LeaveOut();
    }
  }
  return answer.Take();
}

}  // namespace tokamak::node
