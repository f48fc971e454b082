// BulkJob is the one-sided requests of one transfer: chunks, dealt out to shares, each over one
// bulk queue pair.
//
// Chunk c is of share c % shares, posted in order. When a share's queue pair drops out, a READ goes
// on over another, and a WRITE begins anew: only a note behind all of it on one queue pair proves
// that it is in place.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "lib/base/containers/intrusive_list.h"
#include "lib/transport/messages/hello.h"
#include "lib/transport/messages/message.h"
#include "lib/verbs/types.h"

namespace tokamak::transport {

// Filled by Add's caller; the memory is the device's while the job is busy.
struct BulkJob {
  class Owner {
   public:
    virtual ~Owner() = default;
    virtual void OnJobProgress() = 0;
    // Nothing is in flight any more: done or stopped. The channel has forgotten the job.
    virtual void OnJobOver() = 0;
  };

  struct Share {
    enum class State : uint8_t {
      kOpen,
      kParked,    // queue pair gone; the puller has yet to report what it misses
      kComplete,  // note included
    };
    State state = State::kOpen;
    uint8_t queue = 0;
    uint32_t in_flight = 0;  // requests
    uint64_t chunks = 0;
    uint64_t posted = 0;  // chunks
    uint64_t done = 0;    // chunks
  };

  Owner* owner = nullptr;
  verbs::Opcode opcode = verbs::Opcode::kRead;  // or kWrite
  uint8_t* local = nullptr;
  uint64_t remote = 0;
  uint64_t size = 0;      // bytes, not 0
  uint64_t transfer = 0;  // kWrite: number for the notes
  uint32_t rails = 0;     // bits: rails with both keys
  std::array<uint32_t, kMaxRails> lkeys = {};
  std::array<uint32_t, kMaxRails> rkeys = {};

  // The channel's.
  uint64_t chunk = 0;  // bytes
  std::array<Share, kMaxBulkQueuePairs> shares = {};
  uint32_t share_count = 0;
  uint32_t next_share = 0;      // in turn
  uint32_t shares_open = 0;     // not complete
  uint64_t chunks_to_post = 0;  // without parked shares
  uint64_t requests_done = 0;   // repeated ones included
  uint64_t bytes_done = 0;      // of shares' present lives
  uint32_t in_flight = 0;       // requests
  bool stopped = false;
  base::Link<BulkJob> link;      // with chunks to post
  base::Link<BulkJob> all_link;  // all

  // Bytes done from the start without a gap.
  uint64_t Beginning() const {
    uint64_t first = (size + chunk - 1) / chunk;  // not done
    for (uint32_t s = 0; s < share_count; ++s) {
      const Share& share = shares[s];
      if (share.state == Share::State::kComplete || share.done == share.chunks) continue;
      first = std::min(first, share.done * share_count + s);
    }
    return std::min(size, first * chunk);
  }

  bool over() const { return in_flight == 0 && (stopped || shares_open == 0); }
};
static_assert(kMaxBulkQueuePairs <= Note::kMaxShares, "a note can name every share");

}  // namespace tokamak::transport
