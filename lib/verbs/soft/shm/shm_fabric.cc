#include "lib/verbs/soft/shm/shm_fabric.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/check.h"
#include "lib/verbs/soft/packets/datagram.h"
#include "lib/verbs/soft/shm/endpoint.h"
#include "lib/verbs/soft/shm/names.h"

namespace tokamak::verbs::soft {
namespace {

constexpr int kMostWaiting = 256;  // connected, but not accepted yet

class EndpointPort final : public ShmPort {
 public:
  explicit EndpointPort(std::shared_ptr<ShmEndpoint> endpoint) : endpoint_(std::move(endpoint)) { endpoint_->Start(); }
  ~EndpointPort() override { endpoint_->Close(); }

  size_t Send(absl::Span<const Packet> packets) override { return endpoint_->Send(packets); }
  bool HandOn(const Packet& packet) override { return endpoint_->HandOn(packet); }
  void Publish() override { endpoint_->Publish(); }
  const Address& address() const override { return endpoint_->address(); }
  NumberShare numbers() const override { return endpoint_->share(); }
  absl::Status Serve(uint64_t service_id) override { return endpoint_->Serve(service_id); }
  void Withdraw(uint64_t service_id) override { endpoint_->Withdraw(service_id); }
  uint32_t max_mtu() const override { return kMaxMtu; }
  uint64_t receive_window() const override { return kRingBytes / 2; }

 private:
  const std::shared_ptr<ShmEndpoint> endpoint_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Port>> ShmFabric::Open(base::EventLoop& loop, const Address& address,
                                                      PortCallbacks callbacks) {
  CHECK(&loop == &loop_) << "a ShmFabric belongs to one loop";
  return OpenShm(address, std::move(callbacks));
}

absl::StatusOr<std::unique_ptr<ShmPort>> ShmFabric::OpenShm(const Address& address, PortCallbacks callbacks) {
  const Address local = WithRocePort(address);
  for (uint32_t share = 0; share < NumberShare::kShares; ++share) {
    os::FileDescriptor listener = BindName(SOCK_SEQPACKET, NicName(local, share));
    if (!listener.valid() && errno == EADDRINUSE) continue;
    if (!listener.valid() || listen(listener.get(), kMostWaiting) != 0) {
      return absl::UnavailableError(absl::StrCat("cannot make a Unix socket: ", std::strerror(errno)));
    }
    return std::make_unique<EndpointPort>(
        std::make_shared<ShmEndpoint>(loop_, local, NumberShare(share), std::move(listener), std::move(callbacks)));
  }
  if (!ConnectName(SOCK_SEQPACKET, NicName(local, 0)).valid() && errno == EACCES) {
    return absl::PermissionDeniedError(
        absl::StrCat("programs of another user have all names of address ", address.ToString(), ": choose another"));
  }
  return absl::ResourceExhaustedError(
      absl::StrCat(NumberShare::kShares, " programs have the address ", address.ToString(), " already"));
}

}  // namespace tokamak::verbs::soft
