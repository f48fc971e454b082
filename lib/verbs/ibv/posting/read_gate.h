// ReadGate holds the requests of a send queue until the READs before them have come, for a provider
// that cannot be left to do so (Quirks::breaks_fences): a READ passes while fewer are on their way
// than the peer serves, all else while there is none. So whatever the provider holds may start at
// once, and completes in order.
//
// Requests are copied with their pieces and, if they are inline, with their bytes. The memory for
// that is taken once.
//
// Laws: requests pass in the order of Add; READs on their way <= those given to Open; waiting
// requests <= depth.
// Thread rule: the queue pair's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lib/verbs/ibv/posting/posting.h"
#include "lib/verbs/types.h"

namespace tokamak::verbs::ibv {

// A READ that brings no byte.
bool IsEmptyRead(const SendRequest& request);

class ReadGate final {
 public:
  struct Waiting {
    uint64_t position = 0;  // in the queue pair's ring
    SendRequest request;    // its pieces are the gate's, until the place is taken again
  };

  ReadGate(uint32_t depth, const QueueBounds& bounds);
  ReadGate(const ReadGate&) = delete;
  ReadGate& operator=(const ReadGate&) = delete;

  // From now on requests may pass, and `reads` of them that are READs be on their way at once; 0
  // counts as 1. Before, none passes.
  void Open(uint32_t reads);

  // What waits is forgotten; nothing passes any more.
  void Close();

  // Takes a request that was checked (CheckSend); fewer than depth wait.
  void Add(const SendRequest& request, uint64_t position);

  // The first that waits, if it may pass now; otherwise null. It stays valid until as many more as
  // the gate is deep were added.
  const Waiting* Next() const;

  // Next has passed.
  void Pass();

  // A READ that had passed has come. One that is empty never counts.
  void ReadCame();

  bool empty() const { return added_ == passed_; }

 private:
  const size_t depth_;
  const size_t max_sges_;
  const size_t max_inline_;
  std::vector<Waiting> places_;
  std::vector<Sge> pieces_;            // max_sges_ for each place
  std::vector<uint8_t> inline_bytes_;  // max_inline_ for each place
  uint64_t added_ = 0;
  uint64_t passed_ = 0;
  uint32_t most_reads_ = 0;  // 0: closed
  uint32_t reads_ = 0;       // on their way
};

}  // namespace tokamak::verbs::ibv
