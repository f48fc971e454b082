// Calls of the service kObjects, which nodes make about objects, and their answers, as bytes
// (docs/directory.md has them in one table).
//
//  request   call 1 | the call's fields
//  answer    the call's fields; none if the request is malformed
//
// Both are untrusted. Integers are little-endian; texts have a 32-bit length before them, lists a
// 32-bit count.
// Law: the first byte alone decides which call a request is.
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

// A content was deleted: drops it, and answers when the copies that the peer vouches for are gone.
struct DropRequest {
  static constexpr ObjectCall kCall = ObjectCall::kDrop;

  base::ObjectVersion version;
};

// Asks the peer to keep the object, for a node that leaves (object_keep.h).
struct KeepRequest {
  static constexpr ObjectCall kCall = ObjectCall::kKeep;

  base::ObjectVersion version;
  uint64_t data_size = 0;
  uint64_t metadata_size = 0;

  uint64_t total_size() const { return data_size + metadata_size; }
};

// Asks how much has come of each of these, which the peer was asked to keep.
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

// The same before there is a copy: a small object, whose contents come with the answer.
struct BringRequest {
  static constexpr ObjectCall kCall = ObjectCall::kBring;

  base::ObjectVersion version;
  verbs::Address node;  // an engine of the asking node
};

// A content was deleted: drops a copy that the asking node has vouched for.
struct DropCopyRequest {
  static constexpr ObjectCall kCall = ObjectCall::kDropCopy;
  static constexpr size_t kMaxNamed = 128;  // nodes that an answer names

  base::ObjectVersion version;
};

// Asks for several small objects, whose contents come with the answer (bundles.h). Names at least
// one, and each once.
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

// Requires a request within its bounds.
std::vector<uint8_t> EncodeRequest(const ObjectRequest& request);
// nullopt: malformed.
std::optional<ObjectRequest> DecodeRequest(absl::Span<const uint8_t> bytes);

// ---- answers; a decoder returns nullopt for malformed bytes

// True if the peer had the content. Any single byte confirms that it is gone.
std::vector<uint8_t> EncodeDropAnswer(bool had_it);
std::optional<bool> DecodeDropAnswer(absl::Span<const uint8_t> bytes);

enum class KeepAnswer : uint8_t {
  kKept = 1,
  kNoRoom = 2,
  kInUse = 3,    // the id has another content, or a program is creating or still reading one
  kGone = 4,     // as far as the peer knows it was deleted, or nobody has it
  kLater = 5,    // the directory, or a holder, could not be asked
  kLeaving = 6,  // the peer leaves, too
};
std::vector<uint8_t> EncodeKeepAnswer(KeepAnswer answer);
std::optional<KeepAnswer> DecodeKeepAnswer(absl::Span<const uint8_t> bytes);

// Bytes that have come, of each object in the order asked; decoding: of `count` objects.
std::vector<uint8_t> EncodeHowFarAnswer(absl::Span<const uint64_t> bytes_come);
std::optional<std::vector<uint64_t>> DecodeHowFarAnswer(absl::Span<const uint8_t> bytes, size_t count);

// How long, from the request, the copy may stay unless the directory knows it by then; nullopt: the
// peer does not vouch for it.
std::vector<uint8_t> EncodeVouchAnswer(std::optional<base::Duration> good_for);
std::optional<base::Duration> DecodeVouchAnswer(absl::Span<const uint8_t> bytes);

// An engine of each node that may have a copy for which the peer vouches.
std::vector<uint8_t> EncodeDropCopyAnswer(absl::Span<const verbs::Address> nodes);
std::optional<std::vector<verbs::Address>> DecodeDropCopyAnswer(absl::Span<const uint8_t> bytes);

struct BringAnswer {
  static constexpr size_t kBesideContents = 3 * sizeof(uint64_t);  // bytes of an answer

  base::Duration good_for;  // as in a Vouch's answer
  uint64_t data_size = 0;
  uint64_t metadata_size = 0;
  absl::Span<const uint8_t> contents;  // data and then metadata; decoded: in the answer's bytes
};
// nullopt: the peer does not bring it.
std::vector<uint8_t> EncodeBringAnswer(const std::optional<BringAnswer>& answer);
std::optional<BringAnswer> DecodeBringAnswer(absl::Span<const uint8_t> bytes);

// The answer to a BringAll, written object by object in the order asked.
class BringAllAnswer final {
 public:
  static constexpr size_t kBesideObjects = 8;                      // bytes of an answer, at most
  static constexpr size_t kBesideContents = 1 + sizeof(uint32_t);  // bytes of each object

  explicit BringAllAnswer(size_t objects) { writer_.Integer(static_cast<uint32_t>(objects)); }

  // Adds an object of at most directory::kMaxBrought bytes: data and then metadata.
  void Bring(absl::Span<const uint8_t> contents) { Add(1, contents); }
  // Adds an object that is not there, or has no room.
  void LeaveOut() { Add(0, {}); }

  size_t size() const { return writer_.size(); }
  std::vector<uint8_t> Take() { return writer_.Take(); }

  // The contents of each of `count` objects, in the answer's bytes. kNotFound: the holder has left
  // it out. kUnavailable: the answer is malformed there.
  using Contents = std::vector<absl::StatusOr<absl::Span<const uint8_t>>>;
  static Contents Decode(absl::Span<const uint8_t> bytes, size_t count);

 private:
  void Add(uint8_t here, absl::Span<const uint8_t> contents) {
    writer_.Integer(here);
    writer_.Bytes(contents);
  }

  base::Writer writer_;
};

// The outcome of each object of a push, in the order asked; decoding: of `count` objects; an
// unknown code becomes kUnknown.
std::vector<uint8_t> EncodePushAnswer(absl::Span<const absl::Status> statuses);
std::optional<std::vector<absl::StatusCode>> DecodePushAnswer(absl::Span<const uint8_t> bytes, size_t count);

}  // namespace tokamak::node
