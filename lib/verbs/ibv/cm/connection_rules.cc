#include "lib/verbs/ibv/cm/connection_rules.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "lib/base/check.h"
#include "lib/verbs/ibv/translation/attributes.h"

namespace tokamak::verbs::ibv {
namespace {

constexpr uint8_t kTailMark[2] = {0x54, 0x4b};
constexpr uint8_t kTailVersion = 1;

absl::Status TooLargeForUs(uint32_t theirs, uint32_t own) {
  return absl::FailedPreconditionError(
      absl::StrCat("the peer's packets have path MTU ", theirs, " and ours may have ", own,
                   " at most: give both ports the same MTU, or lower that of the peer's net device"));
}

}  // namespace

CarriedData Carry(absl::Span<const uint8_t> private_data, uint32_t path_mtu) {
  CHECK_LE(private_data.size(), kRdmaCmPrivateData);
  CarriedData bytes{};
  std::copy(private_data.begin(), private_data.end(), bytes.begin());
  uint8_t* const tail = bytes.data() + kRdmaCmPrivateData;
  tail[0] = kTailMark[0];
  tail[1] = kTailMark[1];
  tail[2] = kTailVersion;
  tail[3] = static_cast<uint8_t>(MtuCode(path_mtu));
  return bytes;
}

Carried ReadCarried(absl::Span<const uint8_t> bytes) {
  Carried carried;
  const size_t size = std::min(bytes.size(), carried.private_data.size());
  std::copy_n(bytes.begin(), size, carried.private_data.begin());
  if (bytes.size() < kCarriedPrivateData) return carried;
  const uint8_t* const tail = bytes.data() + kRdmaCmPrivateData;
  if (tail[0] != kTailMark[0] || tail[1] != kTailMark[1] || tail[2] != kTailVersion) return carried;
  if (tail[3] >= IBV_MTU_256 && tail[3] <= IBV_MTU_4096) carried.path_mtu = MtuBytes(static_cast<ibv_mtu>(tail[3]));
  return carried;
}

absl::Status CheckConnectOptions(const ConnectOptions& options, size_t max_private_data) {
  if (options.private_data.size() > max_private_data) {
    return absl::InvalidArgumentError(
        absl::StrCat(options.private_data.size(), " bytes of private data, more than ", max_private_data));
  }
  if (MtuBytes(MtuCode(options.max_path_mtu)) == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("max_path_mtu ", options.max_path_mtu, " is none of 256, 512, 1024, 2048, 4096"));
  }
  if (options.reliability.retry_count > kMaxRetryCount || options.reliability.rnr_retry_count > kMaxRetryCount) {
    return absl::InvalidArgumentError(absl::StrCat("retry counts end at ", kMaxRetryCount));
  }
  if (options.deadline <= base::Duration()) return absl::InvalidArgumentError("the deadline has passed already");
  return absl::OkStatus();
}

absl::Status CheckService(const Address& service, const Address& own) {
  if (service.port != 0 && service.is_ipv4() == own.is_ipv4()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("cannot connect to ", service.ToString(), " from ", own.ToString(),
                                                 ": an address of the same family and a port are needed"));
}

absl::StatusOr<uint32_t> AgreeOnPathMtu(uint32_t own, std::optional<uint32_t> told, uint32_t route) {
  if (!told && route > own) return TooLargeForUs(route, own);
  return std::min({own, told.value_or(route), route});
}

absl::StatusOr<uint32_t> KeepPathMtu(uint32_t own, std::optional<uint32_t> told, uint32_t route) {
  const uint32_t decided = told.value_or(route);
  if (decided > std::min(own, route)) return TooLargeForUs(decided, std::min(own, route));
  return decided;
}

ReliabilityOptions AgreeOnReads(ReliabilityOptions ours, uint32_t max_reads, uint8_t peer_serves, uint8_t peer_asks) {
  const auto most = static_cast<uint8_t>(std::min<uint32_t>(max_reads, 255));
  ours.reads_outstanding = std::min({ours.reads_outstanding, most, peer_serves});
  ours.reads_served = std::min({ours.reads_served, most, peer_asks});
  return ours;
}

absl::StatusOr<HeldQueuePair> HeldQueuePair::Take(QueuePair& queue_pair) {
  auto* const connectable = dynamic_cast<Connectable*>(&queue_pair);
  if (connectable == nullptr) return absl::InvalidArgumentError("the queue pair is none of this kind of device");
  if (connectable->connection_state() != QueuePairState::kInit) {
    return absl::FailedPreconditionError(absl::StrCat("queue pair ", connectable->connection_number(), " is in state ",
                                                      ToString(connectable->connection_state()),
                                                      ": a connection starts in Init"));
  }
  if (!connectable->Hold()) {
    return absl::FailedPreconditionError(
        absl::StrCat("queue pair ", connectable->connection_number(), " has a connection"));
  }
  return HeldQueuePair(connectable);
}

}  // namespace tokamak::verbs::ibv
