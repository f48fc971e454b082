#include "lib/node/calls/object_messages.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "lib/directory/directory.h"

namespace tokamak::node {

namespace {

constexpr size_t kMaxAddress = 64;                // bytes
constexpr uint64_t kMaxGoodFor = 86'400'000'000;  // microseconds: a day
constexpr uint64_t kMaxTimeout = 86'400'000'000;  // microseconds: a day
constexpr auto kLastKeepAnswer = static_cast<uint8_t>(KeepAnswer::kLeaving);
constexpr auto kLastCode = static_cast<uint8_t>(absl::StatusCode::kUnauthenticated);

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

// False: no content has this generation.
bool ReadContent(base::Reader& reader, base::ObjectVersion* version) {
  *version = ReadVersion(reader);
  return version->generation != base::kNoGeneration;
}

void WriteVersions(base::Writer& writer, const std::vector<base::ObjectVersion>& versions) {
  writer.Integer(static_cast<uint32_t>(versions.size()));
  for (const base::ObjectVersion& version : versions) WriteVersion(writer, version);
}

std::vector<base::ObjectVersion> ReadVersions(base::Reader& reader, size_t most) {
  std::vector<base::ObjectVersion> versions(reader.Count(most, kVersionSize));
  for (base::ObjectVersion& version : versions) version = ReadVersion(reader);
  return versions;
}

bool ReadAddress(base::Reader& reader, verbs::Address* address) {
  const absl::StatusOr<verbs::Address> parsed = verbs::Address::Parse(reader.Text(kMaxAddress));
  if (parsed.ok()) *address = *parsed;
  return parsed.ok();
}

void WriteGoodFor(base::Writer& writer, base::Duration good_for) {
  writer.Integer(std::min(static_cast<uint64_t>(good_for.microseconds()), kMaxGoodFor));
}

// Zero: out of bounds.
base::Duration ReadGoodFor(base::Reader& reader) {
  const auto microseconds = reader.Integer<uint64_t>();
  return microseconds > kMaxGoodFor ? base::Duration() : base::Microseconds(static_cast<int64_t>(microseconds));
}

// ---- the fields of each request; false: malformed

void Write(base::Writer& writer, const DropRequest& request) { WriteVersion(writer, request.version); }
bool Read(base::Reader& reader, DropRequest* request) { return ReadContent(reader, &request->version); }

void Write(base::Writer& writer, const KeepRequest& request) {
  WriteVersion(writer, request.version);
  writer.Integer(request.data_size);
  writer.Integer(request.metadata_size);
}
bool Read(base::Reader& reader, KeepRequest* request) {
  const bool content = ReadContent(reader, &request->version);
  request->data_size = reader.Integer<uint64_t>();
  request->metadata_size = reader.Integer<uint64_t>();
  return content;
}

void Write(base::Writer& writer, const VouchRequest& request) {
  WriteVersion(writer, request.version);
  writer.Text(request.node.ToString());
}
bool Read(base::Reader& reader, VouchRequest* request) {
  return ReadContent(reader, &request->version) && ReadAddress(reader, &request->node);
}

void Write(base::Writer& writer, const BringRequest& request) {
  WriteVersion(writer, request.version);
  writer.Text(request.node.ToString());
}
bool Read(base::Reader& reader, BringRequest* request) {
  return ReadContent(reader, &request->version) && ReadAddress(reader, &request->node);
}

void Write(base::Writer& writer, const DropCopyRequest& request) { WriteVersion(writer, request.version); }
bool Read(base::Reader& reader, DropCopyRequest* request) { return ReadContent(reader, &request->version); }

void Write(base::Writer& writer, const BringAllRequest& request) { WriteVersions(writer, request.versions); }
bool Read(base::Reader& reader, BringAllRequest* request) {
  request->versions = ReadVersions(reader, BringAllRequest::kMaxObjects);
  const std::vector<base::ObjectVersion>& versions = request->versions;
  const auto is_none = [](const base::ObjectVersion& one) { return one.generation == base::kNoGeneration; };
  if (versions.empty() || std::any_of(versions.begin(), versions.end(), is_none)) return false;
  return absl::flat_hash_set<base::ObjectVersion>(versions.begin(), versions.end()).size() == versions.size();
}

void Write(base::Writer& writer, const PushRequest& request) {
  writer.Integer(static_cast<uint64_t>(request.timeout.microseconds()));
  writer.Integer(static_cast<uint32_t>(request.ids.size()));
  for (const base::ObjectId& id : request.ids) writer.Id(id);
}
bool Read(base::Reader& reader, PushRequest* request) {
  const auto timeout = reader.Integer<uint64_t>();
  request->ids.resize(reader.Count(PushRequest::kMaxPushed, base::ObjectId::kSize));
  for (base::ObjectId& id : request->ids) id = reader.Id();
  if (timeout > kMaxTimeout) return false;
  request->timeout = base::Microseconds(static_cast<int64_t>(timeout));
  return !request->ids.empty();
}

void Write(base::Writer& writer, const HowFarRequest& request) { WriteVersions(writer, request.versions); }
bool Read(base::Reader& reader, HowFarRequest* request) {
  request->versions = ReadVersions(reader, HowFarRequest::kMaxAskedAbout);
  return true;
}

template <typename Request>
std::optional<ObjectRequest> ReadAll(base::Reader& reader) {
  Request request;
  if (!Read(reader, &request) || !reader.Complete()) return std::nullopt;
  return request;
}

}  // namespace

std::vector<uint8_t> EncodeRequest(const ObjectRequest& request) {
  base::Writer writer;
  std::visit(
      [&writer](const auto& one) {
        writer.Integer(static_cast<uint8_t>(one.kCall));
        Write(writer, one);
      },
      request);
  return writer.Take();
}

std::optional<ObjectRequest> DecodeRequest(absl::Span<const uint8_t> bytes) {
  base::Reader reader(bytes);
  switch (ObjectCall{reader.Integer<uint8_t>()}) {
    case ObjectCall::kDrop:
      return ReadAll<DropRequest>(reader);
    case ObjectCall::kKeep:
      return ReadAll<KeepRequest>(reader);
    case ObjectCall::kVouch:
      return ReadAll<VouchRequest>(reader);
    case ObjectCall::kDropCopy:
      return ReadAll<DropCopyRequest>(reader);
    case ObjectCall::kBring:
      return ReadAll<BringRequest>(reader);
    case ObjectCall::kBringAll:
      return ReadAll<BringAllRequest>(reader);
    case ObjectCall::kPush:
      return ReadAll<PushRequest>(reader);
    case ObjectCall::kHowFar:
      return ReadAll<HowFarRequest>(reader);
  }
  return std::nullopt;  // unknown, or of a later release
}

std::vector<uint8_t> EncodeDropAnswer(bool had_it) { return {static_cast<uint8_t>(had_it ? 2 : 1)}; }

std::optional<bool> DecodeDropAnswer(absl::Span<const uint8_t> bytes) {
  if (bytes.size() != 1) return std::nullopt;
  return bytes[0] == 2;
}

std::vector<uint8_t> EncodeKeepAnswer(KeepAnswer answer) { return {static_cast<uint8_t>(answer)}; }

std::optional<KeepAnswer> DecodeKeepAnswer(absl::Span<const uint8_t> bytes) {
  if (bytes.size() != 1 || bytes[0] == 0 || bytes[0] > kLastKeepAnswer) return std::nullopt;
  return static_cast<KeepAnswer>(bytes[0]);
}

std::vector<uint8_t> EncodeHowFarAnswer(absl::Span<const uint64_t> bytes_come) {
  base::Writer writer;
  for (const uint64_t bytes : bytes_come) writer.Integer(bytes);
  return writer.Take();
}

std::optional<std::vector<uint64_t>> DecodeHowFarAnswer(absl::Span<const uint8_t> bytes, size_t count) {
  if (bytes.size() != count * sizeof(uint64_t)) return std::nullopt;
  base::Reader reader(bytes);
  std::vector<uint64_t> far(count);
  for (uint64_t& one : far) one = reader.Integer<uint64_t>();
  return far;
}

std::vector<uint8_t> EncodeVouchAnswer(std::optional<base::Duration> good_for) {
  base::Writer writer;
  if (good_for.has_value()) WriteGoodFor(writer, *good_for);
  return writer.Take();
}

std::optional<base::Duration> DecodeVouchAnswer(absl::Span<const uint8_t> bytes) {
  base::Reader reader(bytes);
  const base::Duration good_for = ReadGoodFor(reader);
  if (!reader.Complete() || good_for == base::Duration()) return std::nullopt;
  return good_for;
}

std::vector<uint8_t> EncodeDropCopyAnswer(absl::Span<const verbs::Address> nodes) {
  base::Writer writer;
  writer.Integer(static_cast<uint32_t>(nodes.size()));
  for (const verbs::Address& node : nodes) writer.Text(node.ToString());
  return writer.Take();
}

std::optional<std::vector<verbs::Address>> DecodeDropCopyAnswer(absl::Span<const uint8_t> bytes) {
  base::Reader reader(bytes);
  std::vector<verbs::Address> nodes(reader.Count(DropCopyRequest::kMaxNamed, sizeof(uint32_t)));
  for (verbs::Address& node : nodes) {
    if (!ReadAddress(reader, &node)) return std::nullopt;
  }
  if (!reader.Complete()) return std::nullopt;
  return nodes;
}

std::vector<uint8_t> EncodeBringAnswer(const std::optional<BringAnswer>& answer) {
  base::Writer writer;
  if (!answer.has_value()) return writer.Take();
  WriteGoodFor(writer, answer->good_for);
  writer.Integer(answer->data_size);
  writer.Integer(answer->metadata_size);
  writer.Raw(answer->contents);
  return writer.Take();
}

std::optional<BringAnswer> DecodeBringAnswer(absl::Span<const uint8_t> bytes) {
  base::Reader reader(bytes);
  BringAnswer answer;
  answer.good_for = ReadGoodFor(reader);
  answer.data_size = reader.Integer<uint64_t>();
  answer.metadata_size = reader.Integer<uint64_t>();
  const bool small = directory::IsSmallEnoughToBring(answer.data_size, answer.metadata_size);
  if (!reader.ok() || answer.good_for == base::Duration() || !small) return std::nullopt;
  if (answer.data_size + answer.metadata_size != reader.rest()) return std::nullopt;
  answer.contents = bytes.last(reader.rest());
  return answer;
}

BringAllAnswer::Contents BringAllAnswer::Decode(absl::Span<const uint8_t> bytes, size_t count) {
  Contents objects(count, absl::UnavailableError("the holder's answer is malformed"));
  base::Reader reader(bytes);
  if (reader.Count(count, kBesideContents) != count) return objects;
  for (auto& object : objects) {
    const auto here = reader.Integer<uint8_t>();
    const absl::Span<const uint8_t> contents = reader.Bytes(directory::kMaxBrought);
    const bool last = &object == &objects.back();
    if (!reader.ok() || here > 1 || (last && !reader.Complete())) continue;
    object = contents;
    if (here == 0) object = absl::NotFoundError("the holder does not have it any more");
  }
  return objects;
}

std::vector<uint8_t> EncodePushAnswer(absl::Span<const absl::Status> statuses) {
  std::vector<uint8_t> bytes;
  for (const absl::Status& status : statuses) bytes.push_back(static_cast<uint8_t>(status.code()));
  return bytes;
}

std::optional<std::vector<absl::StatusCode>> DecodePushAnswer(absl::Span<const uint8_t> bytes, size_t count) {
  if (bytes.size() != count) return std::nullopt;
  std::vector<absl::StatusCode> codes;
  for (const uint8_t code : bytes) {
    codes.push_back(code <= kLastCode ? static_cast<absl::StatusCode>(code) : absl::StatusCode::kUnknown);
  }
  return codes;
}

}  // namespace tokamak::node
