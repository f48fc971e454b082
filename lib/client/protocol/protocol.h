// The rules between a client and its daemon on the Unix socket: the header, the kinds, the bounds.
//
// A frame is one Header and one body, little-endian, drawn in docs/client-protocol.md. A request is
// answered by one reply of its own kind, in any order, matched by request id; with id 0 it is not
// answered (Release and Abort of a dropped buffer, Cancel). messages.h has the bodies, frame.h the
// encoding.
//
// Object bytes do not travel: both sides map the arena. Bounds are part of the format: a frame that
// breaks one is malformed, and the daemon ends its client's connection.
#pragma once

#include <cstdint>

#include "lib/base/object_id.h"
#include "lib/base/text/object_name.h"
#include "tokamak/types.h"

namespace tokamak::client {

constexpr uint32_t kMagic = 0x4b414d54;  // "TMAK"
constexpr uint16_t kVersion = 5;

constexpr size_t kMaxBody = 1024 * 1024;       // bytes behind a header
constexpr size_t kMaxInlineBytes = 64 * 1024;  // data and metadata of a CreateAndSeal's objects together
constexpr size_t kMaxIds = 2048;               // objects of a request
constexpr size_t kMaxPushed = 256;             // objects of a Push
constexpr size_t kMaxListed = 1024;            // objects of a List reply
constexpr size_t kMaxEvents = 1024;            // events of a notification
constexpr size_t kMaxNodes = 1024;             // in a Nodes reply
constexpr size_t kMaxHolders = 64;             // of one object
constexpr size_t kMaxNumbers = 1024;           // in a NodeStats reply
constexpr size_t kMaxViewed = 128;             // nodes in a Cluster reply
constexpr size_t kMaxNumbersOfNode = 48;       // of each of these
constexpr size_t kMaxName = 128;               // bytes of a node's, device's or number's name
constexpr size_t kMaxObjectName = 255;         // bytes
constexpr size_t kMaxAddress = 128;            // bytes of a node's address
constexpr size_t kMaxErrorText = 400;          // bytes; a longer one is cut
constexpr uint64_t kMaxTimeoutMicroseconds = uint64_t{24} * 3600 * 1'000'000;

static_assert(kMaxObjectName == base::ObjectName::kMaxSize, "the store keeps what a message takes");
static_assert(kMaxInlineBytes + kMaxIds * (base::ObjectId::kSize + 12 + kMaxObjectName) < kMaxBody,
              "a full batch fits into a frame");
static_assert(kMaxListed * (kMaxObjectName + 128) < kMaxBody, "a full list fits into a frame");
static_assert(kMaxEvents * (kMaxObjectName + 128) < kMaxBody, "many events fit into a frame");
static_assert(kMaxIds * (kMaxErrorText + 32) < kMaxBody, "a Get in which everything fails fits into a frame");
static_assert(kMaxNodes * (3 * kMaxName + 32) < kMaxBody, "all nodes fit into a frame");
static_assert(kMaxViewed * (4 * kMaxName + 64 + kMaxNumbersOfNode * (kMaxName + 12)) < kMaxBody,
              "a page fits into a frame");

enum class Kind : uint16_t {
  kHello = 1,
  kCreate = 2,
  kCreateAndSeal = 3,
  kSeal = 4,
  kAbort = 5,
  kGet = 6,
  kRelease = 7,
  kDelete = 8,
  kContains = 9,
  kList = 10,
  kStat = 11,
  kTouch = 12,
  kEvict = 13,
  kHash = 14,
  kWait = 15,
  kSubscribe = 16,
  kEvents = 17,  // to the client, unasked, with the Subscribe's request id
  kNodes = 18,
  kNodeStats = 19,
  kCancel = 20,
  kPrefetch = 21,
  kUnpin = 22,
  kPush = 23,
  kProgress = 24,
  kCluster = 25,
};
constexpr uint16_t kReplyBit = 0x8000;  // in a reply's kind

struct Header {
  uint32_t magic = kMagic;
  uint16_t version = kVersion;
  uint16_t kind = 0;  // a Kind, with kReplyBit in replies
  uint64_t request_id = 0;
  uint32_t length = 0;  // of the body
  uint32_t status = 0;  // an absl::StatusCode; an error reply's body is its text, without a length
};
constexpr size_t kHeaderSize = 24;
static_assert(sizeof(Header) == kHeaderSize, "the wire format has no holes");

// Programs see these enums as they are on the wire. The values are those of transport::Protocol,
// store::State, store::Origin, store::Event::Kind and node::NodeState.
using tokamak::Access;
using tokamak::EventKind;
using tokamak::NodeState;
using tokamak::ObjectState;
using tokamak::Origin;
using tokamak::Protocol;
using tokamak::Scope;

// Highest values.
constexpr Access Last(Access) { return Access::kReadAndCreate; }
constexpr EventKind Last(EventKind) { return EventKind::kRefused; }
constexpr NodeState Last(NodeState) { return NodeState::kSilent; }
constexpr ObjectState Last(ObjectState) { return ObjectState::kAborted; }
constexpr Origin Last(Origin) { return Origin::kPulled; }
constexpr Protocol Last(Protocol) { return Protocol::kWrite; }
constexpr Scope Last(Scope) { return Scope::kAnywhere; }

}  // namespace tokamak::client
