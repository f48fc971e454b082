#include "lib/node/object_keep.h"

#include <algorithm>
#include <utility>

#include "lib/base/codec.h"

namespace tokamak::node {

namespace {

// The first byte of a request of the objects service.
constexpr uint8_t kKeepOld = 2;
constexpr uint8_t kKeepSoon = 8;
constexpr uint8_t kHowFar = 9;

constexpr uint8_t kSaysKept = 1;
constexpr uint8_t kSaysRefused = 0;

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

base::Writer StartOfRequest(uint8_t what, const ObjectKeep::Request& request) {
  base::Writer writer;
  writer.Integer(what);
  WriteVersion(writer, request.version);
  writer.Integer(request.data_size);
  writer.Integer(request.metadata_size);
  return writer;
}

}  // namespace

std::vector<uint8_t> ObjectKeep::EncodeOldRequest(const Request& request) {
  return StartOfRequest(kKeepOld, request).Take();
}

std::vector<uint8_t> ObjectKeep::EncodeRequest(const Request& request) {
  base::Writer writer = StartOfRequest(kKeepSoon, request);
  writer.Integer(static_cast<uint32_t>(request.patience.milliseconds()));
  return writer.Take();
}

absl::optional<ObjectKeep::Request> ObjectKeep::DecodeRequest(absl::Span<const uint8_t> bytes) {
  base::Reader reader(bytes);
  const auto what = reader.Integer<uint8_t>();
  if (what != kKeepOld && what != kKeepSoon) return absl::nullopt;
  Request request;
  request.version = ReadVersion(reader);
  request.data_size = reader.Integer<uint64_t>();
  request.metadata_size = reader.Integer<uint64_t>();
  request.patience = kUsualPatience;
  if (what == kKeepSoon) {
    const uint32_t patience = reader.Integer<uint32_t>();
    if (patience > kMaxPatience) return absl::nullopt;
    request.patience = base::Milliseconds(patience);
  }
  if (!reader.Complete() || request.version.generation == base::kNoGeneration) return absl::nullopt;
  return request;
}

std::vector<uint8_t> ObjectKeep::EncodeAnswer(Answer answer) {
  if (answer == Answer::kKept) return {kSaysKept};
  return {kSaysRefused, static_cast<uint8_t>(answer)};
}

absl::optional<ObjectKeep::Answer> ObjectKeep::DecodeAnswer(absl::Span<const uint8_t> bytes) {
  if (bytes.empty()) return absl::nullopt;
  if (bytes[0] == kSaysKept && bytes.size() == 1) return Answer::kKept;
  if (bytes[0] != kSaysRefused || bytes.size() != 2) return Answer::kRefused;
  const bool known = bytes[1] > static_cast<uint8_t>(Answer::kKept) && bytes[1] <= static_cast<uint8_t>(kLastAnswer);
  return known ? static_cast<Answer>(bytes[1]) : Answer::kRefused;
}

std::vector<uint8_t> ObjectKeep::EncodeHowFar(absl::Span<const base::ObjectVersion> versions) {
  base::Writer writer;
  writer.Integer(kHowFar);
  writer.Integer(static_cast<uint32_t>(versions.size()));
  for (const base::ObjectVersion& version : versions) WriteVersion(writer, version);
  return writer.Take();
}

absl::optional<std::vector<base::ObjectVersion>> ObjectKeep::DecodeHowFar(absl::Span<const uint8_t> bytes) {
  base::Reader reader(bytes);
  if (reader.Integer<uint8_t>() != kHowFar) return absl::nullopt;
  std::vector<base::ObjectVersion> versions(
      reader.Count(kMaxAskedAbout, base::ObjectId::kSize + sizeof(base::Generation)));
  for (base::ObjectVersion& version : versions) version = ReadVersion(reader);
  if (!reader.Complete()) return absl::nullopt;
  return versions;
}

std::vector<uint8_t> ObjectKeep::EncodeFar(absl::Span<const uint64_t> bytes_come) {
  base::Writer writer;
  for (const uint64_t bytes : bytes_come) writer.Integer(bytes);
  return writer.Take();
}

absl::optional<std::vector<uint64_t>> ObjectKeep::DecodeFar(absl::Span<const uint8_t> bytes, size_t count) {
  if (bytes.size() != count * sizeof(uint64_t)) return absl::nullopt;
  base::Reader reader(bytes);
  std::vector<uint64_t> far(count);
  for (uint64_t& one : far) one = reader.Integer<uint64_t>();
  return far;
}

ObjectKeep::ObjectKeep(const Services& services, const Request& request, transport::Reply reply)
    : services_(services), request_(request), reply_(std::move(reply)), until_(services.loop.Now() + request.patience) {
  Try();
}

bool ObjectKeep::IsHere() const {
  const absl::optional<store::Location> here = services_.store.Find(request_.version.id);
  return here.has_value() && here->generation == request_.version.generation;
}

void ObjectKeep::Try() {
  if (leaving()) return Refuse(Answer::kLeaving);
  if (IsHere()) return KeepWhenAnnounced();
  if (const Answer why = WhyNot(); why != Answer::kKept) return Refuse(why);
  step_ = services_.pulls.StartOnce(request_.version, [this](const absl::Status& status) { Pulled(status); });
}

// What can be told without asking anybody; kKept: nothing is against it.
ObjectKeep::Answer ObjectKeep::WhyNot() const {
  if (services_.dropped.Contains(request_.version)) return Answer::kGone;
  if (services_.membership.fenced()) return Answer::kLater;
  if (services_.store.Contains(request_.version.id)) return Answer::kInUse;
  const uint64_t room = services_.store.available_bytes();
  const bool fits = request_.data_size <= room && request_.metadata_size <= room - request_.data_size;
  return fits ? Answer::kKept : Answer::kNoRoom;
}

void ObjectKeep::Pulled(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return KeepWhenAnnounced();
    case absl::StatusCode::kNotFound:
      return Refuse(Answer::kGone);
    case absl::StatusCode::kResourceExhausted:
      return Refuse(Answer::kNoRoom);
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kFailedPrecondition:
      return Refuse(Answer::kInUse);
    default:
      return Refuse(Answer::kLater);
  }
}

// What is kept is never given up: the directory must know of it, or a deletion would not find it.
void ObjectKeep::KeepWhenAnnounced() {
  Membership& membership = services_.membership;
  const base::ObjectVersion& version = request_.version;
  if (!membership.IsUnannounced(version)) return Keep(absl::OkStatus());
  if (membership.directory_away() || membership.IsConfirming(version)) return Refuse(Answer::kLater);
  step_ = membership.Confirm(version, services_.deadline, [this](const absl::Status& status) { Keep(status); });
}

void ObjectKeep::Keep(const absl::Status& announced) {
  if (leaving()) return Refuse(Answer::kLeaving);
  if (!announced.ok()) return Refuse(Answer::kLater);
  // Another content may have come, or it is gone again.
  if (!services_.store.Keep(request_.version).ok()) return Refuse(Answer::kLater);
  reply_(EncodeAnswer(Answer::kKept));
}

void ObjectKeep::Refuse(Answer answer) {
  const bool for_good = answer == Answer::kLeaving || services_.dropped.Contains(request_.version);
  if (for_good || services_.loop.Now() + kPause > until_) return reply_(EncodeAnswer(answer));
  pause_ = services_.loop.RunAfter(kPause, [this] { Try(); });
}

}  // namespace tokamak::node
