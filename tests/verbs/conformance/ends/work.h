// Work requests written in one line, and what their completions should be.
//
//   active.Post({Write(1, {from.whole()}, to.remote(), to.rkey()),
//                Send(2, {from.piece(0, 8)}).Unsignaled()});
//   EXPECT_THAT(active.AwaitSends(1), ElementsAre(Done(1, CompletionOpcode::kWrite)));
#pragma once

#include <cstdint>
#include <ostream>
#include <vector>

#include "gmock/gmock.h"
#include "lib/verbs/verbs.h"

namespace tokamak::verbs {

// For GoogleTest's failure texts.
void PrintTo(const Completion& completion, std::ostream* out);
void PrintTo(CompletionStatus status, std::ostream* out);
void PrintTo(CompletionOpcode opcode, std::ostream* out);
void PrintTo(QueuePairState state, std::ostream* out);

namespace conformance {

using Completions = std::vector<Completion>;

// A SendRequest that owns its list of pieces. Signaled unless said otherwise.
struct Work {
  SendRequest request;
  std::vector<Sge> pieces;

  Work& With(SendFlags flag) {
    request.flags = request.flags | flag;
    return *this;
  }
  Work& Unsignaled() {
    request.flags = static_cast<SendFlags>(request.flags & ~static_cast<uint32_t>(kSignaled));
    return *this;
  }
};

struct Receive {
  uint64_t id = 0;
  std::vector<Sge> pieces;
};

Work Send(uint64_t id, std::vector<Sge> pieces);
Work SendWithImm(uint64_t id, std::vector<Sge> pieces, uint32_t immediate);
Work Write(uint64_t id, std::vector<Sge> pieces, uint64_t remote_address, uint32_t rkey);
Work WriteWithImm(uint64_t id, std::vector<Sge> pieces, uint64_t remote_address, uint32_t rkey, uint32_t immediate);
Work Read(uint64_t id, std::vector<Sge> pieces, uint64_t remote_address, uint32_t rkey);
Work CompareSwap(uint64_t id, Sge result, uint64_t remote_address, uint32_t rkey, uint64_t compare, uint64_t swap);
Work FetchAdd(uint64_t id, Sge result, uint64_t remote_address, uint32_t rkey, uint64_t add);

// Posts them as one batch.
PostResult Post(QueuePair& queue_pair, std::vector<Work> batch);
PostResult PostReceives(QueuePair& queue_pair, const std::vector<Receive>& batch);

using CompletionMatcher = testing::Matcher<const Completion&>;

// A success of request `id`.
CompletionMatcher Done(uint64_t id, CompletionOpcode opcode);
// A message of `bytes` bytes without immediate data in receive `id`.
CompletionMatcher Received(uint64_t id, uint32_t bytes);
CompletionMatcher ReceivedImm(uint64_t id, uint32_t bytes, uint32_t immediate,
                              CompletionOpcode opcode = CompletionOpcode::kReceive);
CompletionMatcher Flushed(uint64_t id);

}  // namespace conformance
}  // namespace tokamak::verbs
