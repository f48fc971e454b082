// Congestion decides how fast a queue pair may send, by a window of unacknowledged packets, a rate,
// or both; and when answers are overdue.
//
// A requester reports events and asks for the window once per turn. READs count by the responses
// asked for, which the other side paces. An algorithm is a file congestion_*.cc and a line of the
// table in congestion.cc.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lib/base/time.h"
#include "lib/verbs/soft/congestion/congestion_dcqcn.h"

namespace tokamak::verbs::soft {

// A NIC's algorithm, for all of its queue pairs.
enum class CongestionControl : uint8_t {
  kAdditive,  // a window that finds the network's capacity
  kFixed,
  kNone,   // no bound
  kDcqcn,  // a rate, by ECN marks
};

enum class Loss : uint8_t {
  kGap,      // the peer, or a later answer, shows that something is missing
  kOverdue,  // no answer within Overdue(): lost, or slow for once
  kTimeout,  // no answer within the agreed time-out
};

// Time that threads and timers may add to a round trip in real time: a busy machine's pause is not
// a loss.
constexpr base::Duration kPause = base::Milliseconds(1);

class Congestion {
 public:
  virtual ~Congestion() = default;

  // Begins a connection, on an unknown path.
  virtual void Reset() = 0;

  // Reports how many more packets were acknowledged.
  virtual void OnAck(uint32_t) {}

  // Reports the time from a packet, sent once, to its answer.
  virtual void OnRoundTrip(base::Duration) {}

  // Reports a loss; gaps and time-outs at most once for each window of packets.
  virtual void OnLoss(Loss) {}

  // Reports that the network marked a packet of ours; at most once in each notification interval of
  // the peer.
  virtual void OnNotification(base::Time) {}

  // Returns how many packets may be unacknowledged, at least 1.
  virtual uint32_t Window() const = 0;

  // Returns the time from the last answer until the next is overdue; nothing: unknown.
  virtual std::optional<base::Duration> Overdue() const { return std::nullopt; }

  // True if packets are sent as ECN-capable; fixed for life.
  virtual bool reacts_to_marks() const { return false; }

  // True if the following are called; fixed for life.
  virtual bool paces() const { return false; }

  // Reports a packet that left, with its bytes on the link.
  virtual void OnSend(base::Time, uint32_t) {}

  // Returns when the next packet may leave; `now` or before: at once.
  virtual base::Time NextSend(base::Time now) { return now; }

  // Returns the rate in bits per second, as of the last call; 0: no bound.
  virtual uint64_t rate() const { return 0; }
};

struct CongestionPath {
  uint32_t packets = 1;           // largest window
  uint64_t line_rate = 0;         // bits per second; 0: unknown
  base::Duration pause = kPause;  // DeviceOptions::pause
  DcqcnParameters dcqcn;
};

std::unique_ptr<Congestion> MakeCongestion(CongestionControl control, const CongestionPath& path);

// Parses "additive", "fixed", "none" or "dcqcn"; an error lists them.
absl::StatusOr<CongestionControl> ParseCongestionControl(absl::string_view name);

// A person's choice of algorithm and, if it paces, the link's rate, which a software port does not
// know.
struct CongestionChoice {
  CongestionControl control = CongestionControl::kAdditive;
  uint64_t line_rate = 0;  // bits per second; kDcqcn's

  // Parses "additive", "fixed", "none" or "dcqcn:10Gb/s"; errors name the remedy.
  static absl::StatusOr<CongestionChoice> Parse(absl::string_view text);
};
const char* ToString(CongestionControl control);

// A window of always `packets`, for networks that drop nothing for want of room.
std::unique_ptr<Congestion> MakeFixedWindow(uint32_t packets);

std::unique_ptr<Congestion> MakeNoCongestionControl();
constexpr uint32_t kUnboundedWindow = 1 << 22;  // packets; half of all PSNs

// The window doubles each round trip until the first loss, then grows by a packet each round trip.
// A gap halves it; a time-out restarts it, doubling up to half of its former size, and an overdue
// answer restarts it, doubling up to its former size. At most `max_packets`.
std::unique_ptr<Congestion> MakeAdditiveWindow(uint32_t max_packets, base::Duration pause = kPause);

}  // namespace tokamak::verbs::soft
