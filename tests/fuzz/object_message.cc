// Messages between nodes about objects, and the answers: each is decoded as a node does it, and is
// accepted only as an encoder writes it.
//
// The first byte of an input chooses the meaning of the rest: a request, or the answer to one call.
// Law: bytes that decode encode to the same bytes, except an address, which may be written in
// several ways; that encoding is stable.
#include <algorithm>
#include <variant>
#include <vector>

#include "lib/base/check.h"
#include "lib/directory/directory.h"
#include "lib/node/calls/object_messages.h"
#include "tests/fuzz/target.h"

namespace tokamak::fuzz {
namespace {

using namespace node;  // NOLINT: its whole wire is the subject
using Bytes = std::vector<uint8_t>;

// How an address is written is free.
bool HasAddress(const ObjectRequest& request) {
  return std::holds_alternative<VouchRequest>(request) || std::holds_alternative<BringRequest>(request);
}

void CheckBounds(const ObjectRequest& request) {
  if (const auto* all = std::get_if<BringAllRequest>(&request)) {
    CHECK(!all->versions.empty() && all->versions.size() <= BringAllRequest::kMaxObjects);
  }
  if (const auto* far = std::get_if<HowFarRequest>(&request)) {
    CHECK_LE(far->versions.size(), HowFarRequest::kMaxAskedAbout);
  }
  if (const auto* push = std::get_if<PushRequest>(&request)) {
    CHECK(!push->ids.empty() && push->ids.size() <= PushRequest::kMaxPushed);
    CHECK(push->timeout >= base::Duration() && push->timeout <= base::Seconds(86'400));
  }
}

void TryRequest(const Bytes& bytes) {
  const auto request = DecodeRequest(bytes);
  if (!request.has_value()) return;
  CheckBounds(*request);
  const Bytes encoded = EncodeRequest(*request);
  if (!HasAddress(*request)) CHECK(encoded == bytes);
  const auto again = DecodeRequest(encoded);
  CHECK(again.has_value() && EncodeRequest(*again) == encoded);
}

void TryDropCopyAnswer(const Bytes& bytes) {
  const auto nodes = DecodeDropCopyAnswer(bytes);
  if (!nodes.has_value()) return;
  CHECK_LE(nodes->size(), DropCopyRequest::kMaxNamed);
  CHECK(DecodeDropCopyAnswer(EncodeDropCopyAnswer(*nodes)) == nodes);
}

void TryBringAllAnswer(const Bytes& bytes, size_t count) {
  const BringAllAnswer::Contents objects = BringAllAnswer::Decode(bytes, count);
  CHECK_EQ(objects.size(), count);
  BringAllAnswer again(count);
  for (const auto& object : objects) {
    if (!object.ok()) {
      again.LeaveOut();
      continue;
    }
    CHECK_LE(object->size(), directory::kMaxBrought);
    CHECK(object->empty() || (object->data() >= bytes.data() && object->end() <= bytes.data() + bytes.size()));
    again.Bring(*object);
  }
  const bool all = std::all_of(objects.begin(), objects.end(), [](const auto& object) { return object.ok(); });
  if (all && count > 0) CHECK(again.Take() == bytes);
}

void TryAnswer(ObjectCall call, const Bytes& bytes) {
  switch (call) {
    case ObjectCall::kDrop:
      if (const auto had_it = DecodeDropAnswer(bytes)) CHECK_EQ(EncodeDropAnswer(*had_it).size(), bytes.size());
      return;
    case ObjectCall::kKeep:
      if (const auto answer = DecodeKeepAnswer(bytes)) CHECK(EncodeKeepAnswer(*answer) == bytes);
      return;
    case ObjectCall::kVouch:
      if (const auto good_for = DecodeVouchAnswer(bytes)) CHECK(EncodeVouchAnswer(good_for) == bytes);
      return;
    case ObjectCall::kDropCopy:
      return TryDropCopyAnswer(bytes);
    case ObjectCall::kBring:
      if (const auto answer = DecodeBringAnswer(bytes)) CHECK(EncodeBringAnswer(answer) == bytes);
      return;
    case ObjectCall::kBringAll:
      for (const size_t count : {size_t{1}, size_t{2}, BringAllRequest::kMaxObjects}) TryBringAllAnswer(bytes, count);
      return;
    case ObjectCall::kPush:
      CHECK_EQ(DecodePushAnswer(bytes, bytes.size())->size(), bytes.size());
      CHECK(!DecodePushAnswer(bytes, bytes.size() + 1).has_value());
      return;
    case ObjectCall::kHowFar:
      if (const auto far = DecodeHowFarAnswer(bytes, bytes.size() / sizeof(uint64_t))) {
        CHECK(EncodeHowFarAnswer(*far) == bytes);
      }
      return;
  }
}

}  // namespace
}  // namespace tokamak::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tokamak::fuzz;  // NOLINT: in a function
  if (size == 0) return 0;
  const Bytes bytes(data + 1, data + size);  // of its exact size: a step beyond it is seen
  data[0] == 0 ? TryRequest(bytes) : TryAnswer(tokamak::node::ObjectCall{data[0]}, bytes);
  return 0;
}
