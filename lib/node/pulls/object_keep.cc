#include "lib/node/pulls/object_keep.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "lib/base/codec.h"

namespace tokamak::node {

namespace {

// The first byte of a request of the objects service.
constexpr uint8_t kKeep = 2;
constexpr uint8_t kHowFar = 8;

void WriteVersion(base::Writer& writer, const base::ObjectVersion& version) {
  writer.Id(version.id);
  writer.Integer(static_cast<uint64_t>(version.generation));
}

base::ObjectVersion ReadVersion(base::Reader& reader) {
  base::ObjectVersion version;
  version.id = reader.Id();
  version.generation = base::Generation{reader.Integer<uint64_t>()};
  return version;
}

}  // namespace

std::vector<uint8_t> ObjectKeep::EncodeRequest(const Request& request) {
  base::Writer writer;
  writer.Integer(kKeep);
  WriteVersion(writer, request.version);
  writer.Integer(request.data_size);
  writer.Integer(request.metadata_size);
  return writer.Take();
}

std::optional<ObjectKeep::Request> ObjectKeep::DecodeRequest(absl::Span<const uint8_t> bytes) {
  base::Reader reader(bytes);
  if (reader.Integer<uint8_t>() != kKeep) return std::nullopt;
  Request request;
  request.version = ReadVersion(reader);
  request.data_size = reader.Integer<uint64_t>();
  request.metadata_size = reader.Integer<uint64_t>();
  if (!reader.Complete() || request.version.generation == base::kNoGeneration) return std::nullopt;
  return request;
}

std::vector<uint8_t> ObjectKeep::EncodeAnswer(Answer answer) { return {static_cast<uint8_t>(answer)}; }

std::optional<ObjectKeep::Answer> ObjectKeep::DecodeAnswer(absl::Span<const uint8_t> bytes) {
  if (bytes.size() != 1) return std::nullopt;
  const bool known = bytes[0] >= static_cast<uint8_t>(Answer::kKept) && bytes[0] <= static_cast<uint8_t>(kLastAnswer);
  if (!known) return std::nullopt;
  return static_cast<Answer>(bytes[0]);
}

std::vector<uint8_t> ObjectKeep::EncodeHowFar(absl::Span<const base::ObjectVersion> versions) {
  base::Writer writer;
  writer.Integer(kHowFar);
  writer.Integer(static_cast<uint32_t>(versions.size()));
  for (const base::ObjectVersion& version : versions) WriteVersion(writer, version);
  return writer.Take();
}

std::optional<std::vector<base::ObjectVersion>> ObjectKeep::DecodeHowFar(absl::Span<const uint8_t> bytes) {
  base::Reader reader(bytes);
  if (reader.Integer<uint8_t>() != kHowFar) return std::nullopt;
  std::vector<base::ObjectVersion> versions(
      reader.Count(kMaxAskedAbout, base::ObjectId::kSize + sizeof(base::Generation)));
  for (base::ObjectVersion& version : versions) version = ReadVersion(reader);
  if (!reader.Complete()) return std::nullopt;
  return versions;
}

std::vector<uint8_t> ObjectKeep::EncodeFar(absl::Span<const uint64_t> bytes_come) {
  base::Writer writer;
  for (const uint64_t bytes : bytes_come) writer.Integer(bytes);
  return writer.Take();
}

std::optional<std::vector<uint64_t>> ObjectKeep::DecodeFar(absl::Span<const uint8_t> bytes, size_t count) {
  if (bytes.size() != count * sizeof(uint64_t)) return std::nullopt;
  base::Reader reader(bytes);
  std::vector<uint64_t> far(count);
  for (uint64_t& one : far) one = reader.Integer<uint64_t>();
  return far;
}

ObjectKeep::ObjectKeep(const Services& services, const Request& request, transport::Reply reply)
    : services_(services), request_(request), reply_(std::move(reply)) {
  Try();
}

bool ObjectKeep::IsHere() const {
  const std::optional<store::Location> here = services_.store.Find(request_.version.id);
  return here.has_value() && here->generation == request_.version.generation;
}

void ObjectKeep::Try() {
  if (leaving()) return Say(Answer::kLeaving);
  if (IsHere()) return KeepWhenAnnounced();
  if (const Answer why = WhyNot(); why != Answer::kKept) return Say(why);
  step_ = services_.pulls.StartOnce(request_.version, [this](const absl::Status& status) { Pulled(status); });
}

// What can be told without asking anybody; kKept: nothing is against it.
ObjectKeep::Answer ObjectKeep::WhyNot() const {
  if (services_.dropped.Contains(request_.version)) return Answer::kGone;
  if (services_.membership.fenced()) return Answer::kLater;
  if (services_.store.Contains(request_.version.id)) return Answer::kInUse;
  return LeavesRoom(request_.data_size, request_.metadata_size) ? Answer::kKept : Answer::kNoRoom;
}

bool ObjectKeep::LeavesRoom(uint64_t data_size, uint64_t metadata_size) const {
  const uint64_t available = services_.store.available_bytes();
  const uint64_t of_programs = services_.store.statistics().capacity_bytes / kPartOfPrograms;
  const uint64_t room = available - std::min(available, of_programs);
  return data_size <= room && metadata_size <= room - data_size;
}

void ObjectKeep::Pulled(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return KeepWhenAnnounced();
    case absl::StatusCode::kNotFound:
      return Say(Answer::kGone);
    case absl::StatusCode::kResourceExhausted:
      return Say(Answer::kNoRoom);
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kFailedPrecondition:
      return Say(Answer::kInUse);
    default:
      return Say(Answer::kLater);
  }
}

// What is kept is never given up: the directory must know of it, or a deletion would not find it.
void ObjectKeep::KeepWhenAnnounced() {
  Membership& membership = services_.membership;
  const base::ObjectVersion& version = request_.version;
  if (!membership.IsUnannounced(version)) return Keep(absl::OkStatus());
  if (membership.directory_away() || membership.IsConfirming(version)) return Say(Answer::kLater);
  step_ = membership.Confirm(version, services_.deadline, [this](const absl::Status& status) { Keep(status); });
}

void ObjectKeep::Keep(const absl::Status& announced) {
  if (leaving()) return Say(Answer::kLeaving);
  if (!announced.ok()) return Say(Answer::kLater);
  const absl::StatusOr<store::StoredObject> here = services_.store.Stat(request_.version.id);
  // Another content may have come, or it is gone again.
  if (!here.ok() || here->version() != request_.version) return Say(Answer::kLater);
  // Others may have come and been kept meanwhile, and it may be larger than it was said to be.
  const store::Location& place = here->location;
  const bool is_kept = here->origin == store::Origin::kCreatedHere;
  if (!is_kept && !LeavesRoom(place.data_size, place.metadata_size)) return Say(Answer::kNoRoom);
  Say(services_.store.Keep(request_.version).ok() ? Answer::kKept : Answer::kLater);
}

}  // namespace tokamak::node
