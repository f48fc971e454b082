// Congestion decides how many packets of a queue pair may be unacknowledged, and how long answers
// may take. It is the one place that knows how.
//
// A requester tells it what the network did and asks for the window once per turn. READs count by
// the responses that they ask for.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "lib/base/time.h"

namespace tokamak::verbs::soft {

// Which of them a NIC uses, for all of its queue pairs.
enum class CongestionControl : uint8_t {
  kAdditive,  // a window that finds out what the network can take
  kFixed,     // a window of one size
};

enum class Loss : uint8_t {
  kGap,      // the peer, or a later answer, said that something is missing
  kOverdue,  // nothing came back for longer than Overdue(): lost, or the peer or the path is slow for once
  kTimeout,  // nothing came back at all, for the time-out that was agreed
};

// What threads and timers may add to a round trip: less would take every pause of a busy machine
// for a loss.
constexpr base::Duration kPause = base::Milliseconds(1);

class Congestion {
 public:
  virtual ~Congestion() = default;

  // A new connection begins: what is known is of another path.
  virtual void Reset() = 0;

  // `packets` more were acknowledged.
  virtual void OnAck(uint32_t packets) = 0;

  // A packet that was sent once was answered after this long.
  virtual void OnRoundTrip(base::Duration time) = 0;

  // Gaps and time-outs at most once for each window of packets.
  virtual void OnLoss(Loss loss) = 0;

  // Packets, at least 1.
  virtual uint32_t Window() const = 0;

  // How long after the last answer the next should have come; nothing while that is not known.
  virtual std::optional<base::Duration> Overdue() const = 0;
};

// Always `packets`: where nothing is lost for want of room.
std::unique_ptr<Congestion> MakeFixedWindow(uint32_t packets);

// Doubles each round trip until the first loss, then grows by a packet each round trip; halves at a
// gap and starts again after a time-out, up to half of what it was. After an overdue answer it
// starts again, too, but up to what it was. Never more than `max_packets`.
std::unique_ptr<Congestion> MakeAdditiveWindow(uint32_t max_packets);

}  // namespace tokamak::verbs::soft
