// A node's numbers for others: decoded as other nodes do it, and accepted only as a node writes
// them.
#include "lib/node/calls/node_numbers.h"

#include <vector>

#include "lib/base/check.h"
#include "tests/fuzz/target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using tokamak::node::NodeNumbers;
  const std::vector<uint8_t> answer(data, data + size);  // of its exact size: a step beyond it is seen
  const auto numbers = NodeNumbers::Decode(answer);
  if (!numbers.has_value()) return 0;
  CHECK_LE(numbers->numbers.size(), NodeNumbers::kMaxNumbers);
  CHECK(NodeNumbers::Encode(*numbers) == answer);
  return 0;
}
