// Calls between nodes about objects, service kObjects, and their answers, as bytes
// (docs/directory.md has the table).
//
//  request   call 1 | the call's fields
//  answer    the call's fields; none if the request is malformed
//
// Untrusted. Integers are little-endian; texts have a 32-bit length before them, lists a 32-bit
// count.
// Law: the first byte alone decides the call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lib/base/codec.h"
#include "lib/base/generation.h"
#include "lib/base/object_id.h"
#include "lib/base/time.h"
#include "lib/verbs/types.h"

namespace tokamak::node {

enum class ObjectCall : uint8_t {
  kDrop = 1,
  kKeep = 2,
  kVouch = 3,
  kDropCopy = 4,
  kBring = 5,
  kBringAll = 6,
  kPush = 7,
  kHowFar = 8,
};

constexpr size_t kVersionSize = base::ObjectId::kSize + sizeof(base::Generation);  // bytes

// ---- requests

// Drops a deleted content; answers when the copies that the peer vouches for are gone.
struct DropRequest {
  static constexpr ObjectCall kCall = ObjectCall::kDrop;

  base::ObjectVersion version;
};

// Asks the peer to keep the object, for a leaving node (object_keep.h).
struct KeepRequest {
  static constexpr ObjectCall kCall = ObjectCall::kKeep;

  base::ObjectVersion version;
  uint64_t data_size = 0;
  uint64_t metadata_size = 0;

  uint64_t total_size() const { return data_size + metadata_size; }
};

// Asks how much has come of each object that the peer was asked to keep.
struct HowFarRequest {
  static constexpr ObjectCall kCall = ObjectCall::kHowFar;
  static constexpr size_t kMaxAskedAbout = 64;

  std::vector<base::ObjectVersion> versions;
};

// Asks the peer to vouch for a copy of the asking node (vouched_copies.h).
struct VouchRequest {
  static constexpr ObjectCall kCall = ObjectCall::kVouch;

  base::ObjectVersion version;
  verbs::Address node;  // an engine of the asking node
};

// The same without a copy yet: a small object, whose contents come with the answer.
struct BringRequest {
  static constexpr ObjectCall kCall = ObjectCall::kBring;

  base::ObjectVersion version;
  verbs::Address node;
};

// Drops a copy of a deleted content that the asking node has vouched for.
struct DropCopyRequest {
  static constexpr ObjectCall kCall = ObjectCall::kDropCopy;
  static constexpr size_t kMaxNamed = 128;  // nodes that an answer names

  base::ObjectVersion version;
};

// Asks for several small objects, at least one, each once; the answer holds their contents
// (bundles.h).
struct BringAllRequest {
  static constexpr ObjectCall kCall = ObjectCall::kBringAll;
  static constexpr size_t kMaxObjects = 256;
  static constexpr size_t kBesideVersions = 8;  // bytes of a request, at most

  std::vector<base::ObjectVersion> versions;
};

// Asks the peer to bring at least one object to itself (object_push.h).
struct PushRequest {
  static constexpr ObjectCall kCall = ObjectCall::kPush;
  static constexpr size_t kMaxPushed = 256;

  base::Duration timeout;  // of each object, on the other node
  std::vector<base::ObjectId> ids;
};

using ObjectRequest = std::variant<DropRequest, KeepRequest, VouchRequest, DropCopyRequest, BringRequest,
                                   BringAllRequest, PushRequest, HowFarRequest>;

// Requires bounds kept.
std::vector<uint8_t> EncodeRequest(const ObjectRequest& request);
std::optional<ObjectRequest> DecodeRequest(absl::Span<const uint8_t> bytes);

// ---- answers; nullopt: malformed

// True if the peer had the content; any single byte confirms that it is gone.
std::vector<uint8_t> EncodeDropAnswer(bool had_it);
std::optional<bool> DecodeDropAnswer(absl::Span<const uint8_t> bytes);

enum class KeepAnswer : uint8_t {
  kKept = 1,
  kNoRoom = 2,
  kInUse = 3,  // the id has another content, or a program creates or still reads one
  kGone = 4,   // known as deleted, or without a holder
  kLater = 5,  // the directory, or a holder, could not be asked
  kLeaving = 6,
};
std::vector<uint8_t> EncodeKeepAnswer(KeepAnswer answer);
std::optional<KeepAnswer> DecodeKeepAnswer(absl::Span<const uint8_t> bytes);

// Bytes come of each object in the order asked; decoding: of `count`.
std::vector<uint8_t> EncodeHowFarAnswer(absl::Span<const uint64_t> bytes_come);
std::optional<std::vector<uint64_t>> DecodeHowFarAnswer(absl::Span<const uint8_t> bytes, size_t count);

// Time from the request that the copy may stay unentered in the directory; nullopt: not vouched
// for.
std::vector<uint8_t> EncodeVouchAnswer(std::optional<base::Duration> good_for);
std::optional<base::Duration> DecodeVouchAnswer(absl::Span<const uint8_t> bytes);

// One engine of each node with a vouched copy.
std::vector<uint8_t> EncodeDropCopyAnswer(absl::Span<const verbs::Address> nodes);
std::optional<std::vector<verbs::Address>> DecodeDropCopyAnswer(absl::Span<const uint8_t> bytes);

struct BringAnswer {
  static constexpr size_t kBesideContents = 3 * sizeof(uint64_t);  // bytes of an answer

  base::Duration good_for;  // as in a Vouch's answer
  uint64_t data_size = 0;
  uint64_t metadata_size = 0;
  absl::Span<const uint8_t> contents;  // data, then metadata; decoded: in the answer
};
// nullopt: not brought.
std::vector<uint8_t> EncodeBringAnswer(const std::optional<BringAnswer>& answer);
std::optional<BringAnswer> DecodeBringAnswer(absl::Span<const uint8_t> bytes);

// Answer to a BringAll, written in the order asked.
class BringAllAnswer final {
 public:
  static constexpr size_t kBesideObjects = 8;                      // bytes of an answer, at most
  static constexpr size_t kBesideContents = 1 + sizeof(uint32_t);  // bytes of each object

  explicit BringAllAnswer(size_t objects) { writer_.Integer(static_cast<uint32_t>(objects)); }

  // Adds an object of at most directory::kMaxBrought bytes: data, then metadata.
  void Bring(absl::Span<const uint8_t> contents) { Add(1, contents); }
  // Skips an object that is not here, or has no room.
  void LeaveOut() { Add(0, {}); }

  size_t size() const { return writer_.size(); }
  std::vector<uint8_t> Take() { return writer_.Take(); }

  // Contents of each of `count` objects, within the answer's bytes. kNotFound: left out.
  // kUnavailable: malformed.
  using Contents = std::vector<absl::StatusOr<absl::Span<const uint8_t>>>;
  static Contents Decode(absl::Span<const uint8_t> bytes, size_t count);

 private:
  void Add(uint8_t here, absl::Span<const uint8_t> contents) {
    writer_.Integer(here);
    writer_.Bytes(contents);
  }

  base::Writer writer_;
};

// Outcomes in the order asked; decoding: of `count` objects, an unknown code as kUnknown.
std::vector<uint8_t> EncodePushAnswer(absl::Span<const absl::Status> statuses);
std::optional<std::vector<absl::StatusCode>> DecodePushAnswer(absl::Span<const uint8_t> bytes, size_t count);

}  // namespace tokamak::node
