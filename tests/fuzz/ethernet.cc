// One Ethernet frame of a host outside: reading it stays within its bytes, and so does every change
// that the fabric makes to a frame of its kind.
#include <vector>

#include "lib/base/bytes.h"
#include "lib/base/check.h"
#include "sim/emulation/frame_edits.h"
#include "sim/emulation/frame_head.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/target.h"

namespace tokamak::fuzz {
namespace {

using namespace sim;  // NOLINT: its whole format is the subject

void CheckEdits(const FrameHead& head, std::vector<uint8_t> bytes) {
  const std::vector<uint8_t> before = bytes;
  MarkCongestion(absl::MakeSpan(bytes));
  const FrameHead marked = ReadFrameHead(bytes);
  CHECK(marked.kind == head.kind && marked.frame.ecn == verbs::soft::Ecn::kMarked);
  CHECK(marked.frame.flow == head.frame.flow && marked.frame.dscp == head.frame.dscp);
  if (head.kind != FrameKind::kRoce) return;
  bytes = before;
  DamageRoce(absl::MakeSpan(bytes));
  CHECK(bytes != before && ReadFrameHead(bytes).kind == FrameKind::kRoce);
}

// Two numbers for the check sum, then the frame.
void Try(Input input) {
  const auto start = input.Take<uint16_t>();
  const auto offset = input.Take<uint16_t>();
  const absl::Span<const uint8_t> rest = input.Rest();
  std::vector<uint8_t> bytes(rest.begin(), rest.end());  // of its exact size: a step beyond it is seen
  const FrameHead head = ReadFrameHead(bytes);
  CHECK_EQ(head.frame.bytes.size(), bytes.size());
  if (head.kind == FrameKind::kRoce || head.kind == FrameKind::kIpv4) CheckEdits(head, bytes);
  const bool fits = size_t{start} + offset + 2 <= bytes.size();
  CHECK_EQ(CompleteChecksum(absl::MakeSpan(bytes), start, offset), fits);
}

}  // namespace
}  // namespace tokamak::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tokamak::fuzz::Try({data, size});
  return 0;
}
