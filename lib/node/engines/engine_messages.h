// Messages between the two ends of an engine with a loop of its own: ThreadedEngine on the node's
// control loop, EngineHost on the engine's.
//
// The store, the directory and the clients live on the control loop, the transport endpoint on its
// engine's. They talk through two bounded mailboxes, and share only the memory of pulls and the
// count of bytes that each pull has moved:
//
//   control loop               mailboxes                 engine loop
//   ThreadedEngine    --  EngineCommand  -->             EngineHost, transport::Endpoint
//   (the node)        <--  EngineReport  --              (a Source and Sinks for the endpoint)
//
// Pulls and our calls are named by the node's tokens, pins by the endpoint's PinId, calls of peers
// by the host's tokens.
// Bounds: those of engine.h for pulls and our calls; peers' pins and calls are refused while
// kMaxReportsWaiting reports wait for the control loop, but not what a node says of its own life.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <variant>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lib/base/time.h"
#include "lib/transport/endpoint.h"

namespace tokamak::node {

constexpr size_t kEngineMailbox = 256;  // a burst; more waits in an Outbox

struct DrainCommand {};
struct PullCommand {
  uint64_t pull;
  transport::PullRequest request;
  absl::Span<uint8_t> memory;
  std::atomic<uint64_t>* moved;
};
struct CancelPullCommand {
  uint64_t pull;
};
struct PinnedCommand {
  transport::PinId pin;
  absl::StatusOr<transport::PinnedObject> object;
};
struct CallCommand {
  uint64_t call;
  bool own;  // of this node's life
  verbs::Address peer;
  base::Duration deadline;
  std::vector<uint8_t> request;
};
struct CancelCallCommand {
  uint64_t call;
};
struct ReplyCommand {
  uint64_t called;
  absl::StatusOr<std::vector<uint8_t>> reply;
};

// From the control loop to the engine.
using EngineCommand = std::variant<DrainCommand, PullCommand, CancelPullCommand, PinnedCommand, CallCommand,
                                   CancelCallCommand, ReplyCommand>;

// A reply as short as most are needs no memory of its own.
using ReplyBytes = absl::InlinedVector<uint8_t, 64>;

struct DrainedReport {};
struct PullDoneReport {
  uint64_t pull;
  absl::Status status;
  transport::TransferReport transfer;
};
struct PinReport {
  transport::PinId pin;
  base::ObjectVersion version;
};
struct UnpinReport {
  transport::PinId pin;
};
struct CallDoneReport {
  uint64_t call;
  absl::StatusOr<ReplyBytes> reply;
};
struct CalledReport {
  uint64_t called;
  std::vector<uint8_t> request;
  verbs::Address peer;
};
struct CallCancelledReport {
  uint64_t called;
};

// From the engine to the control loop.
using EngineReport = std::variant<DrainedReport, PullDoneReport, PinReport, UnpinReport, CallDoneReport, CalledReport,
                                  CallCancelledReport>;

}  // namespace tokamak::node
