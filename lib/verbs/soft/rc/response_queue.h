// ResponseQueue holds READs and atomics that are not yet answered, in the order of their packets.
//
// While a READ's answer waits for the port, the peer may ask again for a lost part, cut
// differently: the later request replaces the earlier, packet by packet.
// Law: responses are in order of sequence and do not overlap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tokamak::verbs::soft {

struct Response {
  bool atomic = false;
  bool replay = false;  // true if asked for again
  uint64_t first = 0;   // sequences [first, end): the answer's packets
  uint64_t end = 0;
  uint64_t position = 0;  // next to be sent
  uint32_t msn = 0;
  // READ: byte 0 of these is in packet `base`.
  uint64_t base = 0;
  uint64_t address = 0;
  uint32_t length = 0;
  uint32_t key = 0;
  // Atomic.
  uint64_t original = 0;
};

class ResponseQueue final {
 public:
  // At most `capacity` responses may wait.
  void Reserve(size_t capacity) {
    capacity_ = capacity;
    responses_.reserve(capacity);
  }

  bool empty() const { return responses_.empty(); }
  Response& front() { return responses_.front(); }
  Response& back() { return responses_.back(); }
  void PopFront();
  void Clear();

  // Adds the response to a new request. Returns false if there is no room.
  bool Append(const Response& response);

  // Adds the response to a request that was, or is being, answered. Returns false, changing
  // nothing, if there is no room.
  bool Replay(const Response& response);

  // Counts responses that were appended, not replayed.
  size_t fresh() const { return fresh_; }

 private:
  void Erase(size_t at);

  size_t capacity_ = 0;
  std::vector<Response> responses_;
  size_t fresh_ = 0;
};

}  // namespace tokamak::verbs::soft
