// The client protocol's frames: each kind is decoded as daemon and clients do it, and is accepted
// only as an encoder writes it.
#include <type_traits>
#include <vector>

#include "lib/base/check.h"
#include "lib/client/protocol/frame.h"
#include "tests/fuzz/target.h"

namespace tokamak::fuzz {
namespace {

using namespace client;  // NOLINT: its whole wire is the subject

using Frame = std::vector<uint8_t>;

template <typename M>
void TryBody(const Header& header, const Frame& frame) {
  if (header.kind != M::kKind) return;
  const absl::StatusOr<M> message = DecodeBody<M>(frame);
  if (message.ok()) CHECK(Encode(header.request_id, *message) == frame) << "kind " << header.kind;
}

// A request and its reply.
template <typename... Requests>
void TryAll(const Header& header, const Frame& frame) {
  (TryBody<Requests>(header, frame), ...);
  (TryBody<typename Requests::Reply>(header, frame), ...);
}

void Try(absl::Span<const uint8_t> given) {
  const Frame frame(given.begin(), given.end());  // of its exact size: a step beyond it is seen
  const absl::StatusOr<Header> header = DecodeHeader(frame);
  if (!header.ok()) return;
  CHECK_LE(header->length, kMaxBody);
  CHECK_EQ(header->length, BodyOf(frame).size());
  const absl::Status status = StatusOf(*header, frame);
  if (!status.ok()) {
    CHECK_EQ(static_cast<uint32_t>(status.code()), header->status);
    EncodeError(*header, status);
    return;
  }
  if (header->version != kVersion) return;
  TryAll<HelloRequest, CreateRequest, CreateAndSealRequest, SealRequest, AbortRequest, GetRequest, CancelRequest,
         ReleaseRequest, DeleteRequest, ContainsRequest, ListRequest, StatRequest, TouchRequest, EvictRequest,
         HashRequest, ProgressRequest, WaitRequest, SubscribeRequest, NodesRequest, NodeStatsRequest, ClusterRequest>(
      *header, frame);
  TryBody<EventsNotification>(*header, frame);
}

}  // namespace
}  // namespace tokamak::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tokamak::fuzz::Try({data, size});
  return 0;
}
