#include "lib/verbs/kernel/cm/datagram_cm_id.h"

#include <infiniband/verbs.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "lib/verbs/datagrams.h"
#include "lib/verbs/kernel/program/translate.h"

namespace tokamak::verbs::kernel {
namespace {

template <size_t kSize>
std::array<uint8_t, kSize> ToServiceData(const uint8_t* bytes, size_t length) {
  std::array<uint8_t, kSize> data{};
  std::copy_n(bytes, std::min(length, kSize), data.begin());
  return data;
}

constexpr uint8_t kServiceRequestData = std::tuple_size_v<soft::ServiceData>;
constexpr uint8_t kServiceAnswerData = soft::kSidrRepPrivateData;

}  // namespace

DatagramCmId::~DatagramCmId() {
  CloseAll();
  if (device_ == nullptr) return;
  if (state_ == State::kAsked) {
    soft::SidrRepMad refusal;
    refusal.status = soft::SidrStatus::kRejected;
    Answer(refusal);
  }
  device_->nic().WithManager([this](soft::SoftConnectionManager& manager) REQUIRES_NIC_MUTEX {
    if (question != 0) manager.services().Forget(*this);
  });
}

// ---- Being asked.

DatagramCmId::Listening::Listening(DatagramCmId& id, UserDevice& device)
    : id_(id), device_(device), signal_(device.loop().MakeSignal([this] { Deliver(); })) {}

DatagramCmId::Listening::~Listening() {
  if (!open_) return;
  device_.nic().WithManager([this](soft::SoftConnectionManager& manager)
                                REQUIRES_NIC_MUTEX { manager.services().Forget(*this); });
}

int DatagramCmId::Listening::Open(uint16_t* number) {
  absl::StatusOr<uint16_t> opened = uint16_t{0};
  device_.nic().WithManager([&](soft::SoftConnectionManager& manager)
                                REQUIRES_NIC_MUTEX { opened = manager.services().Listen(*this, *number); });
  open_ = opened.ok();
  if (open_) *number = *opened;
  return ErrnoOf(opened.status());
}

void DatagramCmId::Listening::Deliver() {
  for (;;) {
    std::optional<soft::ServiceRequest> request;
    device_.nic().WithManager([&](soft::SoftConnectionManager& manager)
                                  REQUIRES_NIC_MUTEX { request = manager.services().Take(*this); });
    if (!request) return;
    id_.OnRequest(device_, *request);
  }
}

absl::StatusOr<uint16_t> DatagramCmId::ChoosePort(soft::SoftConnectionManager& manager) const {
  return manager.services().ChoosePort();
}

int DatagramCmId::Open(UserDevice& device, uint16_t* port, std::unique_ptr<Port>* opened) {
  auto listening = std::make_unique<Listening>(*this, device);
  if (const int error = listening->Open(port)) return error;
  *opened = std::move(listening);
  return 0;
}

void DatagramCmId::OnRequest(UserDevice& device, const soft::ServiceRequest& request) {
  const uint32_t handle = events_->NewHandle();
  if (handle == 0) {
    soft::SidrRepMad refusal;
    refusal.status = soft::SidrStatus::kNoQueuePair;
    device.nic().WithManager([&](soft::SoftConnectionManager& manager)
                                 REQUIRES_NIC_MUTEX { manager.services().Answer(request.key, refusal).IgnoreError(); });
    return;
  }
  auto asked = std::make_unique<DatagramCmId>(*events_, devices_, handle, 0);
  asked->BecomeAsked(device, source_.port, request.peer);
  asked->request_ = request.key;

  rdma_ucm_event_resp event = MakeEvent(CmEvent::kConnectRequest);
  event.id = handle;
  event.param.ud.private_data_len = kServiceRequestData;
  std::copy(request.private_data.begin(), request.private_data.end(), event.param.ud.private_data);
  events_->Adopt(std::move(asked));
  events_->Raise(*this, event);
}

// EINVAL: the peer was rejected meanwhile.
int DatagramCmId::Answer(const soft::SidrRepMad& answer) {
  absl::Status answered;
  device_->nic().WithManager([&](soft::SoftConnectionManager& manager)
                                 REQUIRES_NIC_MUTEX { answered = manager.services().Answer(request_, answer); });
  return answered.ok() ? 0 : EINVAL;
}

int DatagramCmId::Accept(const rdma_ucm_conn_param& parameters, uint64_t uid) {
  if (state_ != State::kAsked || parameters.valid == 0) return EINVAL;
  if (parameters.private_data_len > kServiceAnswerData) return EINVAL;
  uid_ = uid;
  soft::SidrRepMad answer;
  answer.queue_pair = parameters.qp_num & 0xffffff;
  answer.qkey = kServiceQkey;
  answer.private_data = ToServiceData<kServiceAnswerData>(parameters.private_data, parameters.private_data_len);
  if (const int error = Answer(answer)) return error;
  state_ = State::kConnected;
  return 0;
}

int DatagramCmId::Reject(const rdma_ucm_reject& rejection) {
  if (state_ != State::kAsked || rejection.private_data_len > kServiceAnswerData) return EINVAL;
  soft::SidrRepMad answer;
  answer.status = soft::SidrStatus::kRejected;
  answer.private_data = ToServiceData<kServiceAnswerData>(rejection.private_data, rejection.private_data_len);
  state_ = State::kOver;
  return Answer(answer);
}

// ---- Asking.

int DatagramCmId::Connect(const rdma_ucm_conn_param& parameters) {
  if (state_ != State::kRouteResolved || parameters.valid == 0) return EINVAL;
  if (parameters.private_data_len > kServiceRequestData) return EINVAL;
  absl::Status asked;
  device_->nic().WithManager([&](soft::SoftConnectionManager& manager) REQUIRES_NIC_MUTEX {
    asked = manager.services().Ask(
        *this, destination_, source_.port,
        ToServiceData<kServiceRequestData>(parameters.private_data, parameters.private_data_len));
  });
  if (!asked.ok()) return EINVAL;
  state_ = State::kAsking;
  return 0;
}

// There is no connection to end.
int DatagramCmId::Disconnect() { return state_ == State::kConnected ? 0 : EINVAL; }

void DatagramCmId::Tell(const soft::SidrRepMad* answer) {
  if (answer == nullptr) {
    state_ = State::kOver;
    return Raise(CmEvent::kUnreachable, -ETIMEDOUT);
  }
  const bool served = answer->status == soft::SidrStatus::kSuccess;
  state_ = served ? State::kConnected : State::kOver;
  rdma_ucm_event_resp event =
      MakeEvent(served ? CmEvent::kEstablished : CmEvent::kUnreachable, static_cast<int>(answer->status));
  rdma_ucm_ud_param& datagrams = event.param.ud;
  datagrams.private_data_len = kServiceAnswerData;
  std::copy(answer->private_data.begin(), answer->private_data.end(), datagrams.private_data);
  if (served) {
    datagrams.qp_num = answer->queue_pair;
    datagrams.qkey = answer->qkey;
    datagrams.ah_attr = Towards(destination_);
  }
  events_->Raise(*this, event);
}

// ---- Groups.

// The program's queue pair becomes a member only when the program attaches it.
int DatagramCmId::Join(const sockaddr* group, uint32_t membership, uint64_t uid) {
  Address address;
  if (device_ == nullptr || (state_ != State::kBound && state_ != State::kAddressResolved)) return EINVAL;
  if (const int error = ToAddress(group, &address)) return error;
  if (address.is_unspecified()) return EINVAL;
  rdma_ucm_event_resp event = MakeEvent(CmEvent::kMulticastJoin);
  event.uid = uid;
  event.id = membership;
  event.param.ud.qp_num = kMulticastQueuePair;
  event.param.ud.qkey = kServiceQkey;
  event.param.ud.ah_attr = Towards(address);
  events_->Raise(*this, event);
  return 0;
}

// ---- What the program asks about it.

int DatagramCmId::QueuePairAttributes(uint32_t state, ib_uverbs_qp_attr* attributes) const {
  if (device_ == nullptr) return EINVAL;
  *attributes = {};
  attributes->qp_attr_mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
  attributes->qp_state = state;
  attributes->port_num = kOnlyPort;
  attributes->qkey = kServiceQkey;
  return 0;
}

}  // namespace tokamak::verbs::kernel
