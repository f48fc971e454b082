// Congestion decides how many packets of a queue pair may be unacknowledged. It is the one place that knows how.
//
// A requester tells it what the network did and asks for the window once per turn. READs count by the responses that they
// ask for.
#pragma once

#include <cstdint>
#include <memory>

namespace tokamak::verbs::soft {

enum class Loss : uint8_t {
  kGap,      // the peer, or a later answer, said that something is missing
  kTimeout,  // nothing came back at all
};

class Congestion {
 public:
  virtual ~Congestion() = default;

  // `packets` more were acknowledged.
  virtual void OnAck(uint32_t packets) = 0;

  // At most once for each window of packets.
  virtual void OnLoss(Loss loss) = 0;

  // Packets, at least 1.
  virtual uint32_t Window() const = 0;
};

// Always `packets`: where nothing is lost for want of room.
std::unique_ptr<Congestion> MakeFixedWindow(uint32_t packets);

// Doubles each round trip until the first loss, then grows by a packet each round trip; halves at a gap and starts again
// after a time-out. Never more than `max_packets`.
std::unique_ptr<Congestion> MakeAdditiveWindow(uint32_t max_packets);

}  // namespace tokamak::verbs::soft
