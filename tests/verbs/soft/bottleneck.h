// Bottleneck is a link that many flows share: it carries a given number of bytes a second, lets a
// few packets wait, and drops the rest.
//
// Packets offered while others wait queue behind them, whoever sent them. It works in virtual and
// in real time.
// Thread rule: one loop.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <utility>
#include <vector>

#include "lib/base/event_loop.h"
#include "lib/base/random.h"
#include "lib/base/time.h"
#include "lib/verbs/soft/packets/packet.h"
#include "lib/verbs/soft/packets/wire.h"

namespace tokamak::verbs::soft {

struct BottleneckOptions {
  int64_t picoseconds_per_byte = 0;               // 8000: 1 Gb/s; 0: no bound
  uint64_t queue_bytes = 1 << 30;                 // that may wait to leave
  base::Duration delay = base::Microseconds(20);  // of every packet, after it has left
  uint64_t mark_bytes = 1 << 30;                  // more than this many wait: what is ECN-capable is marked
  double loss = 0;                                // by chance, for each packet
  uint64_t seed = 1;
};

struct BottleneckCounters {
  uint64_t offered = 0;  // packets
  uint64_t lost = 0;     // by chance
  uint64_t dropped = 0;  // for want of room
  uint64_t passed = 0;
  uint64_t marked = 0;
};

class Bottleneck final {
 public:
  // A packet, whose payload lies in `bytes`, and where it was sent from. Its peer is where it was
  // sent to.
  struct Flight {
    Packet packet;
    Address from;
    std::vector<uint8_t> bytes;
    base::Time arrives;
  };
  using Deliver = std::function<void(Flight)>;

  Bottleneck(base::EventLoop& loop, const BottleneckOptions& options, Deliver deliver)
      : loop_(loop), options_(options), random_(options.seed), deliver_(std::move(deliver)), free_at_(loop.Now()) {}

  // Takes a copy of what it lets in.
  void Offer(const Packet& packet, const Address& from) {
    ++counters_.offered;
    if (random_.Chance(options_.loss)) {
      ++counters_.lost;
      return;
    }
    const base::Time now = loop_.Now();
    const int64_t bytes = DatagramLength(packet) + kHeaders;
    if (free_at_ - now >
        base::Duration::Picoseconds(options_.picoseconds_per_byte * static_cast<int64_t>(options_.queue_bytes))) {
      ++counters_.dropped;
      return;
    }
    const bool marks = free_at_ - now > base::Duration::Picoseconds(options_.picoseconds_per_byte *
                                                                    static_cast<int64_t>(options_.mark_bytes)) &&
                       packet.ecn != Ecn::kNotCapable;
    free_at_ = std::max(free_at_, now) + base::Duration::Picoseconds(options_.picoseconds_per_byte * bytes);
    Flight& flight = flights_.emplace_back();
    flight.packet = packet;
    if (marks) {
      flight.packet.ecn = Ecn::kMarked;
      ++counters_.marked;
    }
    flight.from = from;
    flight.bytes.reserve(packet.payload_length());
    for (uint32_t i = 0; i < packet.slices; ++i) {
      const PayloadSlice& slice = packet.payload[i];
      flight.bytes.insert(flight.bytes.end(), slice.data, slice.data + slice.length);
    }
    flight.packet.slices = flight.bytes.empty() ? 0 : 1;
    flight.packet.payload[0] = {flight.bytes.data(), static_cast<uint32_t>(flight.bytes.size())};
    flight.arrives = free_at_ + options_.delay;
    if (flights_.size() == 1) Arm();
  }

  const BottleneckCounters& counters() const { return counters_; }

 private:
  static constexpr int64_t kHeaders = 66;  // Ethernet, IP, UDP

  void Arm() {
    timer_ = loop_.RunAt(flights_.front().arrives, [this] { Arrive(); });
  }

  void Arrive() {
    while (!flights_.empty() && flights_.front().arrives <= loop_.Now()) {
      Flight flight = std::move(flights_.front());
      flights_.pop_front();
      ++counters_.passed;
      deliver_(std::move(flight));
    }
    if (!flights_.empty()) Arm();
  }

  base::EventLoop& loop_;
  const BottleneckOptions options_;
  base::Random random_;
  const Deliver deliver_;
  base::Time free_at_;
  std::deque<Flight> flights_;
  BottleneckCounters counters_;
  base::Timer timer_;
};

}  // namespace tokamak::verbs::soft
