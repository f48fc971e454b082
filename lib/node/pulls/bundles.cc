#include "lib/node/pulls/bundles.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "lib/base/codec.h"
#include "lib/directory/directory.h"

namespace tokamak::node {

namespace {

constexpr uint8_t kBringAll = 6;  // the first byte of a request of the objects service

absl::Status Malformed() { return absl::UnavailableError("the holder's answer is malformed"); }

}  // namespace

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
  bundle.reply_size += kObjectOverhead + size;
  ++bundle.live;
  if (!sending_.armed()) sending_ = loop_.Post([this] { SendAll(); });
  return part;
}

// The one for `holder` that has room, or a new one.
Bundles::Bundle& Bundles::Gathering(const verbs::Address& holder, uint64_t size) {
  const size_t room = objects_.max_call_size();
  for (const auto& bundle : bundles_) {
    const size_t request = kRequestOverhead + (bundle->parts.size() + 1) * kVersionSize;
    if (bundle->under_way == nullptr && bundle->holder == holder && bundle->parts.size() < kMaxObjects &&
        request <= room && bundle->reply_size + kObjectOverhead + size <= room) {
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
    // Those that were dropped meanwhile are not asked for.
    bundle.parts.erase(std::remove(bundle.parts.begin(), bundle.parts.end(), nullptr), bundle.parts.end());
    ++sent_;
    base::Writer request;
    request.Integer(kBringAll);
    request.Integer(static_cast<uint32_t>(bundle.parts.size()));
    for (size_t i = 0; i < bundle.parts.size(); ++i) {
      bundle.parts[i]->place = i;
      request.Id(bundle.parts[i]->version.id);
      request.Integer(static_cast<uint64_t>(bundle.parts[i]->version.generation));
    }
    bundle.under_way =
        objects_.Call(bundle.holder, request.Take(), deadline_,
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

// Any of those that are told may drop others, or all of this.
void Bundles::OnReply(Bundle& bundle, const absl::StatusOr<absl::Span<const uint8_t>>& reply) {
  const std::unique_ptr<Bundle> ended = bundle.bundles->Take(bundle);
  ++ended->live;  // it outlives them all
  base::Reader reader(reply.ok() ? *reply : absl::Span<const uint8_t>());
  const bool right = reply.ok() && reader.Count(ended->parts.size(), kObjectOverhead) == ended->parts.size();
  for (size_t place = 0; place < ended->parts.size(); ++place) {
    absl::StatusOr<absl::Span<const uint8_t>> contents = reply.ok() ? Malformed() : reply.status();
    if (right) {
      const auto here = reader.Integer<uint8_t>();
      const absl::Span<const uint8_t> bytes = reader.Bytes(directory::kMaxBrought);
      const bool last = place + 1 == ended->parts.size();
      if (reader.ok() && here <= 1 && (!last || reader.Complete())) contents = bytes;
      if (contents.ok() && here == 0) contents = absl::NotFoundError("the holder does not have it any more");
    }
    Part* const part = std::exchange(ended->parts[place], nullptr);
    if (part == nullptr) continue;
    part->bundle = nullptr;
    const Callback done = std::move(part->done);
    done(contents);
  }
}

std::optional<std::vector<base::ObjectVersion>> Bundles::DecodeRequest(absl::Span<const uint8_t> bytes) {
  base::Reader reader(bytes);
  if (reader.Integer<uint8_t>() != kBringAll) return std::nullopt;
  std::vector<base::ObjectVersion> versions(reader.Count(kMaxObjects, kVersionSize));
  for (base::ObjectVersion& version : versions) {
    version.id = reader.Id();
    version.generation = base::Generation{reader.Integer<uint64_t>()};
    if (version.generation == base::kNoGeneration) return std::nullopt;
  }
  if (!reader.Complete() || versions.empty()) return std::nullopt;
  const absl::flat_hash_set<base::ObjectVersion> distinct(versions.begin(), versions.end());
  if (distinct.size() < versions.size()) return std::nullopt;
  return versions;
}

std::vector<uint8_t> Bundles::EncodeAnswer(absl::Span<const base::ObjectVersion> versions, size_t max_size,
                                           const Size& size, const Contents& contents) {
  base::Writer writer;
  writer.Integer(static_cast<uint32_t>(versions.size()));
  size_t left = versions.size() * kObjectOverhead;  // of those that follow, at least
  for (const base::ObjectVersion& version : versions) {
    const std::optional<uint64_t> here = size(version);
    left -= kObjectOverhead;
    const bool fits = here.has_value() && *here <= directory::kMaxBrought &&
                      writer.size() + kObjectOverhead + *here + left <= max_size;
    const absl::Span<const uint8_t> bytes = fits ? contents(version) : absl::Span<const uint8_t>();
    const bool brought = fits && bytes.size() == *here;
    writer.Integer<uint8_t>(brought ? 1 : 0);
    writer.Bytes(brought ? bytes : absl::Span<const uint8_t>());
  }
  return writer.Take();
}

}  // namespace tokamak::node
