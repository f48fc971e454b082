// Congestion decides how fast a queue pair may send: how many packets may be unacknowledged (a
// window), when the next one may leave (a rate), or both; and when answers are overdue. No other
// place knows how.
//
// A requester reports what the network did and asks for the window once per turn. READs count by
// the responses that they ask for, which the sending side paces. An algorithm is one file,
// congestion_*.cc, and a line of the table in congestion.cc.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lib/base/time.h"
#include "lib/verbs/soft/congestion/congestion_dcqcn.h"

namespace tokamak::verbs::soft {

// The algorithm of a NIC, for all of its queue pairs.
enum class CongestionControl : uint8_t {
  kAdditive,  // a window that finds out what the network can carry
  kFixed,     // a window of one size
  kNone,      // no bound: losses and pauses are the network's business
  kDcqcn,     // a rate, by the network's marks
};

enum class Loss : uint8_t {
  kGap,      // the peer, or a later answer, shows that something is missing
  kOverdue,  // no answer for longer than Overdue(): lost, or the peer or the path is slow for once
  kTimeout,  // no answer for the time-out that was agreed
};

// Time that threads and timers may add to a round trip in real time: with less, every pause of a
// busy machine would count as a loss.
constexpr base::Duration kPause = base::Milliseconds(1);

class Congestion {
 public:
  virtual ~Congestion() = default;

  // Begins a new connection, on an unknown path.
  virtual void Reset() = 0;

  // Reports how many more packets were acknowledged.
  virtual void OnAck(uint32_t) {}

  // Reports the time until a packet that was sent once was answered.
  virtual void OnRoundTrip(base::Duration) {}

  // Reports a loss: gaps and time-outs at most once for each window of packets.
  virtual void OnLoss(Loss) {}

  // Reports that the network marked a packet of ours; at most once for each of the peer's
  // notification intervals.
  virtual void OnNotification(base::Time) {}

  // Packets, at least 1.
  virtual uint32_t Window() const = 0;

  // How long after the last answer the next is overdue; nothing while that is unknown.
  virtual std::optional<base::Duration> Overdue() const { return std::nullopt; }

  // Fixed for life. Packets that may be marked are sent as ECN-capable.
  virtual bool reacts_to_marks() const { return false; }

  // Fixed for life: true if the following are called at all.
  virtual bool paces() const { return false; }

  // Reports a packet that left, by its bytes on the link.
  virtual void OnSend(base::Time, uint32_t) {}

  // The time from which the next packet may leave; `now` or before: at once.
  virtual base::Time NextSend(base::Time now) { return now; }

  // Bits per second, as of the last call; 0: no bound.
  virtual uint64_t rate() const { return 0; }
};

// The path that an algorithm is made for.
struct CongestionPath {
  uint32_t packets = 1;           // the largest window
  uint64_t line_rate = 0;         // bits per second; 0: not known
  base::Duration pause = kPause;  // see DeviceOptions::pause
  DcqcnParameters dcqcn;
};

std::unique_ptr<Congestion> MakeCongestion(CongestionControl control, const CongestionPath& path);

// "additive", "fixed", "none", "dcqcn"; an error lists them.
absl::StatusOr<CongestionControl> ParseCongestionControl(absl::string_view name);

// A person's choice for a NIC in real time: an algorithm and, if it paces, the rate of the host's
// link, which a port in software does not know.
struct CongestionChoice {
  CongestionControl control = CongestionControl::kAdditive;
  uint64_t line_rate = 0;  // bits per second; of kDcqcn

  // "additive", "fixed", "none", or "dcqcn:10Gb/s"; errors name the remedy.
  static absl::StatusOr<CongestionChoice> Parse(absl::string_view text);
};
const char* ToString(CongestionControl control);

// Always `packets`: for networks that lose no packet for want of room.
std::unique_ptr<Congestion> MakeFixedWindow(uint32_t packets);

// As many packets as sequence numbers allow.
std::unique_ptr<Congestion> MakeNoCongestionControl();
constexpr uint32_t kUnboundedWindow = 1 << 22;  // packets; half of all PSNs

// Doubles each round trip until the first loss, then grows by a packet each round trip. A gap
// halves it; after a time-out it starts again, doubling up to half of what it was, and after an
// overdue answer, doubling up to what it was. At most `max_packets`.
std::unique_ptr<Congestion> MakeAdditiveWindow(uint32_t max_packets, base::Duration pause = kPause);

}  // namespace tokamak::verbs::soft
