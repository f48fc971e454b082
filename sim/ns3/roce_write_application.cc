// SPDX-License-Identifier: GPL-2.0-only
#include "sim/ns3/roce_write_application.h"

#include <cstring>

#include "ns3/abort.h"
#include "ns3/boolean.h"
#include "ns3/simulator.h"
#include "ns3/trace-source-accessor.h"
#include "ns3/uinteger.h"

namespace tokamak::sim {
namespace {

// Phantom memory, never accessed.
constexpr uintptr_t kNowhere = uintptr_t{1} << 40;

uint8_t ByteOf(size_t i) { return static_cast<uint8_t>(i * 7 + (i >> 9)); }

}  // namespace

NS_OBJECT_ENSURE_REGISTERED(RoceWriteApplication);

ns3::TypeId RoceWriteApplication::GetTypeId() {
  using Self = RoceWriteApplication;
  static ns3::TypeId id =
      ns3::TypeId("tokamak::RoceWriteApplication")
          .SetParent<ns3::Application>()
          .SetGroupName("Roce")
          .AddConstructor<RoceWriteApplication>()
          .AddAttribute("Bytes", "Of each WRITE.", ns3::UintegerValue(1 << 20),
                        ns3::MakeUintegerAccessor(&Self::bytes_), ns3::MakeUintegerChecker<uint32_t>(1, 1 << 30))
          .AddAttribute("Count", "WRITEs, one after the other; 0: until the application stops.", ns3::UintegerValue(1),
                        ns3::MakeUintegerAccessor(&Self::count_), ns3::MakeUintegerChecker<uint32_t>())
          .AddAttribute("Mtu", "Bytes of payload of a packet: 256, 512, 1024, 2048 or 4096.", ns3::UintegerValue(4096),
                        ns3::MakeUintegerAccessor(&Self::mtu_),
                        ns3::MakeUintegerChecker<uint32_t>(verbs::kMinMtu, verbs::kMaxMtu))
          .AddAttribute("Phantom", "Whether bytes are only counted, and there is no memory for them.",
                        ns3::BooleanValue(false), ns3::MakeBooleanAccessor(&Self::phantom_), ns3::MakeBooleanChecker())
          .AddTraceSource("Completed", "A WRITE was acknowledged: its number, when it was posted, and now.",
                          ns3::MakeTraceSourceAccessor(&Self::completed_),
                          "tokamak::sim::RoceWriteApplication::CompletedCallback");
  return id;
}

RoceWriteApplication::RoceWriteApplication() = default;
RoceWriteApplication::~RoceWriteApplication() = default;

void RoceWriteApplication::SetNics(const ns3::Ptr<RoceNic>& from, const ns3::Ptr<RoceNic>& to) {
  sides_[0].nic = from;
  sides_[1].nic = to;
}

void RoceWriteApplication::StartApplication() {
  NS_ABORT_MSG_IF(sides_[0].nic == nullptr || sides_[1].nic == nullptr,
                  "a RoceWriteApplication needs two NICs: call SetNics");
  for (Side& side : sides_) Open(&side);
  for (size_t i = 0; i < sides_[0].bytes.size(); ++i) sides_[0].bytes[i] = ByteOf(i);
  Connect(sides_[0], sides_[1]);
  Connect(sides_[1], sides_[0]);
  sides_[0].nic->WatchRate(sides_[0].queue_pair->number());
  PostNext();
}

void RoceWriteApplication::Open(Side* side) {
  verbs::soft::SoftDevice& device = side->nic->device();
  if (!phantom_) side->bytes.resize(bytes_);
  const auto memory =
      phantom_ ? absl::MakeSpan(reinterpret_cast<uint8_t*>(kNowhere), bytes_) : absl::MakeSpan(side->bytes);
  const verbs::Access access =
      verbs::kLocalWrite | verbs::kRemoteWrite | (phantom_ ? verbs::kPhantom : verbs::kLocalRead);
  side->domain = *device.CreateProtectionDomain();
  side->completions = *device.CreateCompletionQueue(side->nic->loop(), 4, [this] { Poll(); });
  auto region = side->domain->RegisterMemory(memory, access);
  NS_ABORT_MSG_UNLESS(region.ok(), "memory of a RoceWriteApplication: " << region.status().message());
  side->region = *std::move(region);
  verbs::QueuePairOptions options;
  options.send_queue = options.receive_queue = side->completions.get();
  options.max_send_requests = options.max_receive_requests = 1;
  options.remote_access = verbs::kRemoteWrite;
  side->queue_pair = *side->domain->CreateQueuePair(options);
}

// No handshake: both ends are here.
void RoceWriteApplication::Connect(const Side& side, const Side& peer) const {
  verbs::QueuePairAttributes attributes;
  attributes.peer = peer.nic->device().address();
  attributes.peer_number = peer.queue_pair->number();
  attributes.path_mtu = mtu_;
  for (const auto state : {verbs::QueuePairState::kReadyToReceive, verbs::QueuePairState::kReadyToSend}) {
    const absl::Status status = side.queue_pair->Modify(state, attributes);
    NS_ABORT_MSG_UNLESS(status.ok(), "a RoceWriteApplication cannot connect: " << status.message());
  }
}

void RoceWriteApplication::PostNext() {
  const Side& from = sides_[0];
  const verbs::Sge sge{from.region->address(), bytes_, from.region->lkey()};
  verbs::SendRequest request;
  request.opcode = verbs::Opcode::kWrite;
  request.flags = verbs::kSignaled;
  request.sges = absl::MakeConstSpan(&sge, 1);
  request.remote_address = reinterpret_cast<uint64_t>(sides_[1].region->address());
  request.rkey = sides_[1].region->rkey();
  started_ = ns3::Simulator::Now();
  from.completions->RequestNotify(false);
  const verbs::PostResult result = from.queue_pair->PostSend(absl::MakeConstSpan(&request, 1));
  NS_ABORT_MSG_UNLESS(result.ok(), "a RoceWriteApplication cannot post: " << result.status.message());
}

void RoceWriteApplication::Poll() {
  verbs::Completion completion;
  sides_[0].completions->RequestNotify(false);
  if (sides_[0].completions->Poll(absl::MakeSpan(&completion, 1)) == 0) return;
  // A path down for too long ends the connection.
  if (completion.status != verbs::CompletionStatus::kSuccess) return;
  completed_(completed_count_++, started_, ns3::Simulator::Now());
  if (sides_[0].queue_pair != nullptr && (count_ == 0 || completed_count_ < count_)) PostNext();
}

bool RoceWriteApplication::Arrived() const { return completed_count_ > 0 && sides_[0].bytes == sides_[1].bytes; }

void RoceWriteApplication::Side::Close() {
  queue_pair.reset();
  region.reset();
  completions.reset();
  domain.reset();
}

void RoceWriteApplication::StopApplication() {
  for (Side& side : sides_) side.Close();
}

void RoceWriteApplication::DoDispose() {
  for (Side& side : sides_) {
    side.Close();
    side.nic = nullptr;
  }
  ns3::Application::DoDispose();
}

}  // namespace tokamak::sim
