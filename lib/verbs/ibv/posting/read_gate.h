// ReadGate holds the requests of a send queue until the READs before them have come, for a provider
// with broken fences (Quirks::breaks_fences): a READ passes while fewer are on their way than the
// peer serves, any other request while there is none. So all requests that the provider holds may
// start at once, and they complete in order.
//
// Copies requests, Sges and inline bytes into memory allocated once.
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

// Returns true for a READ of no byte.
bool IsEmptyRead(const SendRequest& request);

class ReadGate final {
 public:
  struct Waiting {
    uint64_t position = 0;  // in the queue pair's ring
    SendRequest request;    // its Sges are the gate's, until the place is reused
  };

  ReadGate(uint32_t depth, const QueueBounds& bounds);
  ReadGate(const ReadGate&) = delete;
  ReadGate& operator=(const ReadGate&) = delete;

  // Lets requests pass, with at most `reads` READs on their way; 0 counts as 1. Starts closed.
  void Open(uint32_t reads);

  // Drops the waiting requests; nothing passes any more.
  void Close();

  // Takes a checked request (CheckSend); fewer than depth wait.
  void Add(const SendRequest& request, uint64_t position);

  // Returns the first, if it may pass now, or null. Valid until depth more were added.
  const Waiting* Next() const;

  void Pass();

  // A READ that had passed has come. Not for empty READs.
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
