#include "lib/verbs/ibv/cm/rdma_cm.h"

#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/log.h"
#include "lib/verbs/ibv/cm/connection_rules.h"
#include "lib/verbs/ibv/cm/rdma_connection.h"
#include "lib/verbs/ibv/cm/rdma_core.h"
#include "lib/verbs/ibv/cm/rdma_listener.h"
#include "lib/verbs/ibv/loops.h"
#include "lib/verbs/ibv/translation/errors.h"

namespace tokamak::verbs::ibv {

absl::StatusOr<std::shared_ptr<CmChannel>> RdmaCmCore::ChannelOf(os::EpollLoop& loop) {
  const base::MutexLock lock(mutex_);
  for (auto it = channels_.begin(); it != channels_.end();) it = it->second.expired() ? channels_.erase(it) : ++it;
  const auto it = channels_.find(&loop);
  if (it != channels_.end()) {
    if (auto channel = it->second.lock()) return channel;
  }
  auto channel = CmChannel::Open(loop);
  if (channel.ok()) channels_[&loop] = *channel;
  return channel;
}

// RoCE's kernel derives the priority from it; InfiniBand's subnet manager is asked for a path of
// this QoS class; iWARP's sets it on the TCP socket.
absl::Status RdmaCmCore::SetTrafficClass(rdma_cm_id* id) const {
  std::optional<uint8_t> traffic_class = options_.traffic_class;
  if (!traffic_class.has_value()) return absl::OkStatus();
  if (rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &*traffic_class, sizeof(*traffic_class)) == 0) {
    return absl::OkStatus();
  }
  return ErrnoStatus(errno, absl::StrCat("rdma_set_option: traffic class ", *traffic_class));
}

absl::Status RdmaCmCore::CheckDevice(const rdma_cm_id* id) const {
  const uint8_t port = options_.port_number;
  if (id->verbs == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("rdma_cm knows no device for this address: use ", options_.address.ToString()));
  }
  const char* const device = ibv_get_device_name(id->verbs->device);
  if (options_.device == device && port == id->port_num) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("this address leads to port ", id->port_num, " of ", device,
                                                    ", not to port ", port, " of ", options_.device));
}

void RdmaCmCore::NoteOwnAddress(const absl::Status& found) {
  const bool gone = !found.ok();
  if (address_gone_.load() == gone || address_gone_.exchange(gone) == gone) return;
  const std::string address = options_.address.ToString();
  if (!gone) {
    LOG(INFO) << address << " is back at device " << options_.device << ": connections can be made again";
    return;
  }
  LOG(WARNING) << address << " is not at device " << options_.device << " any more (" << found.message()
               << "): no connection can be made from here until it is back: ip link set NET_DEVICE up; ip address add "
               << address << "/LENGTH dev NET_DEVICE; or a restart, which takes the address that there is";
}

void RdmaCmCore::AwaitData(uint32_t queue_pair_number, rdma_cm_id* id) {
  const base::MutexLock lock(mutex_);
  awaiting_[queue_pair_number] = id;
}

void RdmaCmCore::StopAwaiting(uint32_t queue_pair_number) {
  const base::MutexLock lock(mutex_);
  awaiting_.erase(queue_pair_number);
}

void RdmaCmCore::OnFirstData(uint32_t queue_pair_number) {
  const base::MutexLock lock(mutex_);
  const auto it = awaiting_.find(queue_pair_number);
  if (it == awaiting_.end()) return;
  if (rdma_notify(it->second, IBV_EVENT_COMM_EST) != 0) LOG(DEBUG) << "rdma_notify: " << std::strerror(errno);
}

absl::StatusOr<std::unique_ptr<RdmaConnectionManager>> RdmaConnectionManager::Make(const RdmaCmOptions& options) {
  auto departures = Departures::Start();
  if (!departures.ok()) return departures.status();
  return std::unique_ptr<RdmaConnectionManager>(
      new RdmaConnectionManager(std::make_shared<RdmaCmCore>(options, *std::move(departures))));
}

RdmaConnectionManager::RdmaConnectionManager(std::shared_ptr<RdmaCmCore> core) : core_(std::move(core)) {}
RdmaConnectionManager::~RdmaConnectionManager() = default;

absl::StatusOr<std::unique_ptr<Listener>> RdmaConnectionManager::Listen(base::EventLoop& loop, const Address& address,
                                                                        RequestHandler handler) {
  auto channel = core_->ChannelOf(RealLoop(loop));
  if (!channel.ok()) return channel.status();
  return RdmaListener::Listen(core_, *std::move(channel), address, std::move(handler));
}

absl::StatusOr<std::unique_ptr<Connection>> RdmaConnectionManager::Connect(QueuePair& queue_pair,
                                                                           const Address& address,
                                                                           const ConnectOptions& options,
                                                                           ConnectionHandler handler) {
  if (absl::Status status = CheckConnectOptions(options, kRdmaCmPrivateData); !status.ok()) return status;
  if (absl::Status status = CheckService(address, core_->options().address); !status.ok()) return status;
  auto held = HeldQueuePair::Take(queue_pair);
  if (!held.ok()) return held.status();
  auto channel = core_->ChannelOf((*held)->loop());
  if (!channel.ok()) return channel.status();
  auto connection = std::make_unique<RdmaConnection>(core_, *std::move(channel), *std::move(held), address, options,
                                                     std::move(handler));
  connection->Start();
  return connection;
}

void RdmaConnectionManager::OnFirstData(uint32_t queue_pair_number) { core_->OnFirstData(queue_pair_number); }

void RdmaConnectionManager::OnPathsChanged() { core_->paths().Clear(); }

}  // namespace tokamak::verbs::ibv
