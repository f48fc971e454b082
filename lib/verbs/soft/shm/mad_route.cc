#include "lib/verbs/soft/shm/mad_route.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <variant>

#include "lib/verbs/soft/cm/mad.h"
#include "lib/verbs/soft/number_share.h"

namespace tokamak::verbs::soft {
namespace {

MadRoute ToShareOf(uint32_t id) {
  MadRoute route;
  if (id != 0) route.share = NumberShare::IndexOf(id, kCommunicationIdBits);
  return route;
}

}  // namespace

MadRoute RouteOf(const Packet& packet) {
  if (packet.payload_length() != kMadLength) return {};
  std::array<uint8_t, kMadLength> bytes{};
  size_t at = 0;
  for (const PayloadSlice& slice : packet.pieces()) {
    if (slice.data != nullptr) std::memcpy(&bytes[at], slice.data, slice.length);
    at += slice.length;
  }
  const absl::StatusOr<Mad> mad = DecodeMad(bytes);
  if (!mad.ok()) return {};
  MadRoute route;
  if (const auto* req = std::get_if<ReqMad>(&mad->body)) {
    route.service_id = req->service_id;
  } else if (const auto* question = std::get_if<SidrReqMad>(&mad->body)) {
    route.service_id = question->service_id;
  } else if (const auto* answer = std::get_if<SidrRepMad>(&mad->body)) {
    route = ToShareOf(answer->request_id);
  } else if (const std::optional<ConnectionIds> ids = IdsOf(*mad)) {
    route = ToShareOf(ids->remote);
  }
  return route;
}

}  // namespace tokamak::verbs::soft
