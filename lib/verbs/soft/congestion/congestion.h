// Congestion decides how fast a queue pair may send: how many packets may be unacknowledged (a
// window), when the next one may leave (a rate), or both; and how long answers may take. It is the
// one place that knows how.
//
// A requester tells it what the network did and asks for the window once per turn. READs count by
// the responses that they ask for; these are paced at the side that sends them. An algorithm is one
// file, named congestion_*.cc, and a line of the table in congestion.cc.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lib/base/time.h"
#include "lib/verbs/soft/congestion/congestion_dcqcn.h"

namespace tokamak::verbs::soft {

// Which of them a NIC uses, for all of its queue pairs.
enum class CongestionControl : uint8_t {
  kAdditive,  // a window that finds out what the network can take
  kFixed,     // a window of one size
  kNone,      // nothing is held back: what is lost, or pauses the sender, is the network's business
  kDcqcn,     // a rate, by the network's marks
};

enum class Loss : uint8_t {
  kGap,      // the peer, or a later answer, said that something is missing
  kOverdue,  // nothing came back for longer than Overdue(): lost, or the peer or the path is slow for once
  kTimeout,  // nothing came back at all, for the time-out that was agreed
};

// What threads and timers may add to a round trip in real time: less would take every pause of a
// busy machine for a loss.
constexpr base::Duration kPause = base::Milliseconds(1);

class Congestion {
 public:
  virtual ~Congestion() = default;

  // A new connection begins: what is known is of another path.
  virtual void Reset() = 0;

  // `packets` more were acknowledged.
  virtual void OnAck(uint32_t) {}

  // A packet that was sent once was answered after this long.
  virtual void OnRoundTrip(base::Duration) {}

  // Gaps and time-outs at most once for each window of packets.
  virtual void OnLoss(Loss) {}

  // The peer says that the network marked a packet of ours; at most once for each of its
  // notification intervals.
  virtual void OnNotification(base::Time) {}

  // Packets, at least 1.
  virtual uint32_t Window() const = 0;

  // How long after the last answer the next should have come; nothing while that is not known.
  virtual std::optional<base::Duration> Overdue() const { return std::nullopt; }

  // Fixed for life. Packets that may be marked are sent as ECN-capable.
  virtual bool reacts_to_marks() const { return false; }

  // Fixed for life: whether the following are asked at all.
  virtual bool paces() const { return false; }

  // A packet left that takes this many bytes of the link.
  virtual void OnSend(base::Time, uint32_t) {}

  // The next packet may leave from then on; `now`, or what is before it: at once.
  virtual base::Time NextSend(base::Time now) { return now; }

  // Bits per second, when it was last looked at; 0: not limited.
  virtual uint64_t rate() const { return 0; }
};

// What an algorithm is made for.
struct CongestionPath {
  uint32_t packets = 1;           // the largest window
  uint64_t line_rate = 0;         // bits per second; 0: not known
  base::Duration pause = kPause;  // see DeviceOptions::pause
  DcqcnParameters dcqcn;
};

std::unique_ptr<Congestion> MakeCongestion(CongestionControl control, const CongestionPath& path);

// "additive", "fixed", "none", "dcqcn"; an error lists them.
absl::StatusOr<CongestionControl> ParseCongestionControl(absl::string_view name);

// What a person chooses for a NIC in real time: an algorithm and, for one that paces, the rate of
// the host's link, which a port in software cannot tell.
struct CongestionChoice {
  CongestionControl control = CongestionControl::kAdditive;
  uint64_t line_rate = 0;  // bits per second; of kDcqcn

  // "additive", "fixed", "none", or "dcqcn:10Gb/s"; errors name the remedy.
  static absl::StatusOr<CongestionChoice> Parse(absl::string_view text);
};
const char* ToString(CongestionControl control);

// Always `packets`: where nothing is lost for want of room.
std::unique_ptr<Congestion> MakeFixedWindow(uint32_t packets);

// As much as sequence numbers allow.
std::unique_ptr<Congestion> MakeNoCongestionControl();
constexpr uint32_t kUnboundedWindow = 1 << 22;  // packets; half of what a PSN can tell apart

// Doubles each round trip until the first loss, then grows by a packet each round trip; halves at a
// gap and starts again after a time-out, up to half of what it was. After an overdue answer it
// starts again, too, but up to what it was. Never more than `max_packets`.
std::unique_ptr<Congestion> MakeAdditiveWindow(uint32_t max_packets, base::Duration pause = kPause);

}  // namespace tokamak::verbs::soft
