// One management datagram: what DecodeMad takes is what EncodeMad writes, and what is made of it
// stays within bounds.
#include "lib/verbs/soft/cm/mad.h"

#include <optional>
#include <variant>
#include <vector>

#include "lib/base/check.h"
#include "lib/verbs/soft/cm/connection_rules.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/target.h"

namespace tokamak::fuzz {
namespace {

using namespace verbs::soft;  // NOLINT: its whole wire is the subject

void CheckReq(const ReqMad& req) {
  const verbs::Address local = *verbs::Address::Parse("10.0.0.2");
  const verbs::Address sender = *verbs::Address::Parse("10.0.0.9");
  UserData user;
  const absl::StatusOr<IpHeader> header = SplitPrivateData(req.private_data, &user);
  if (header.ok()) {
    UserData user_again;
    const absl::StatusOr<IpHeader> again = SplitPrivateData(JoinPrivateData(*header, user), &user_again);
    CHECK(again.ok() && again->source == header->source && again->destination.ip == header->destination.ip);
    CHECK(user == user_again);
  }
  const std::optional<RejMad> refusal = Refuse(req, local, sender, 1024);
  if (refusal) {
    EncodeMad({1, *refusal});
    return;
  }
  // A request that is not refused can become a connection.
  CHECK(header.ok());
  CHECK(ServicePort(PortSpace::kTcp, req.service_id).ok());
  CHECK(MtuOf(req.mtu_code) >= verbs::kMinMtu && MtuOf(req.mtu_code) <= 1024u);
  CHECK(req.queue_pair > 1u);
}

void CheckSidrReq(const SidrReqMad& req) {
  ServiceData user;
  const absl::StatusOr<IpHeader> header = SplitPrivateData(req.private_data, &user);
  if (!header.ok()) return;
  ServiceData user_again;
  const absl::StatusOr<IpHeader> again = SplitPrivateData(JoinPrivateData(*header, user), &user_again);
  CHECK(again.ok() && again->source == header->source && again->destination.ip == header->destination.ip);
  CHECK(user == user_again);
}

void CheckRej(const RejMad& rej) {
  StatusOf(rej, verbs::Address()).ok();
  for (uint32_t mtu = verbs::kMinMtu; mtu <= verbs::kMaxMtu; mtu *= 2) {
    const uint32_t smaller = SmallerMtu(rej, mtu);
    CHECK(smaller == 0 || (smaller >= verbs::kMinMtu && smaller < mtu));
  }
}

void Try(absl::Span<const uint8_t> given) {
  const std::vector<uint8_t> bytes(given.begin(), given.end());  // of its exact size: a step beyond it is seen
  const absl::StatusOr<Mad> mad = DecodeMad(bytes);
  if (!mad.ok()) return;
  const MadBytes encoded = EncodeMad(*mad);
  const absl::StatusOr<Mad> again = DecodeMad(encoded);
  CHECK(again.ok() && again->transaction == mad->transaction);
  CHECK(EncodeMad(*again) == encoded) << NameOf(*mad);
  if (const auto* req = std::get_if<ReqMad>(&mad->body)) CheckReq(*req);
  if (const auto* rej = std::get_if<RejMad>(&mad->body)) CheckRej(*rej);
  if (const auto* sidr_req = std::get_if<SidrReqMad>(&mad->body)) CheckSidrReq(*sidr_req);
  if (const std::optional<Mad> answer = AnswerForUnknown(*mad)) {
    CHECK(!AnswerForUnknown(*answer)) << "two managers could answer each other for ever";
    EncodeMad(*answer);
  }
}

}  // namespace
}  // namespace tokamak::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tokamak::fuzz::Try({data, size});
  return 0;
}
