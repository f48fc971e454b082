#include "lib/verbs/soft/cm/service_resolution.h"

#include <algorithm>
#include <utility>

#include "lib/base/check.h"
#include "lib/verbs/soft/cm/connection_rules.h"

namespace tokamak::verbs::soft {
namespace {

SidrRepMad Refusal(SidrStatus status) {
  SidrRepMad rep;
  rep.status = status;
  return rep;
}

}  // namespace

ServiceResolution::ServiceResolution(Management& nic) : nic_(nic), listeners_(nic, PortSpace::kUdp) {}

ServiceResolution::~ServiceResolution() = default;

// ---- Serving.

absl::StatusOr<uint16_t> ServiceResolution::Listen(ServiceListener& listener, uint16_t port) {
  const absl::StatusOr<uint16_t> chosen = listeners_.Choose(port);
  if (!chosen.ok()) return chosen;
  listener.port = *chosen;
  listeners_.Add(*chosen, listener);
  return chosen;
}

void ServiceResolution::Forget(ServiceListener& listener) {
  listeners_.Erase(listener.port);
  for (const uint64_t key : std::exchange(listener.waiting, {})) {
    Request& request = *requests_.at(key);
    request.listener = nullptr;
    Decide(request, Refusal(SidrStatus::kUnsupportedService));
  }
}

std::optional<ServiceRequest> ServiceResolution::Take(ServiceListener& listener) {
  if (listener.waiting.empty()) return std::nullopt;
  Request& request = *requests_.at(listener.waiting.front());
  listener.waiting.pop_front();
  request.listener = nullptr;
  return request.told;
}

absl::Status ServiceResolution::Answer(uint64_t request, const SidrRepMad& answer) {
  const auto found = requests_.find(request);
  if (found == requests_.end() || found->second->answer) {
    return absl::CancelledError("the peer does not wait for this answer any more");
  }
  Decide(*found->second, answer);
  return absl::OkStatus();
}

// Sends the answer, and remembers it for repetitions of the request.
void ServiceResolution::Decide(Request& request, const SidrRepMad& answer) {
  request.answer = answer;
  request.answer->request_id = std::get<uint32_t>(request.name);
  request.answer->service_id = request.service_id;
  SendAnswer(request);

  --waiting_;
  const auto of_peer = waiting_of_.find(request.told.peer.ip);
  if (--of_peer->second == 0) waiting_of_.erase(of_peer);
  request.answered_as = ++answers_;
  answered_.emplace(request.answered_as, request.told.key);
  request.limit.Set(kServiceAnswerKept);
  if (answered_.size() > kMaxServiceAnswers) Erase(answered_.begin()->second);
}

void ServiceResolution::SendAnswer(const Request& request) {
  nic_.SendMad(std::get<Address>(request.name), EncodeMad({std::get<uint64_t>(request.name), *request.answer}));
}

void ServiceResolution::OnLimit(uint64_t key) {
  Request& request = *requests_.at(key);
  if (request.answer) return Erase(key);
  if (request.listener != nullptr) {
    std::deque<uint64_t>& waiting = request.listener->waiting;
    waiting.erase(std::find(waiting.begin(), waiting.end(), key));
    request.listener = nullptr;
  }
  Decide(request, Refusal(SidrStatus::kRejected));
}

// Forgets a request that has been answered.
void ServiceResolution::Erase(uint64_t key) {
  const auto found = requests_.find(key);
  answered_.erase(found->second->answered_as);
  keys_.erase(found->second->name);
  requests_.erase(found);
}

bool ServiceResolution::HasPlace(const Address& peer) const {
  const auto of_peer = waiting_of_.find(peer.ip);
  return waiting_ < kServiceRequests.of_all &&
         (of_peer == waiting_of_.end() || of_peer->second < kServiceRequests.of_one);
}

DatagramResult ServiceResolution::OnRequest(const Address& peer, uint64_t transaction, const SidrReqMad& req) {
  const Name name(peer, transaction, req.request_id);
  if (const auto known = keys_.find(name); known != keys_.end()) {
    const Request& request = *requests_.at(known->second);
    if (request.answer) SendAnswer(request);
    return DatagramResult::kTaken;
  }
  const auto refuse = [&](SidrStatus status) REQUIRES_NIC_MUTEX {
    SidrRepMad rep = Refusal(status);
    rep.request_id = req.request_id;
    rep.service_id = req.service_id;
    nic_.SendMad(peer, EncodeMad({transaction, rep}));
    return DatagramResult::kTaken;
  };
  const absl::StatusOr<uint16_t> port = ServicePort(PortSpace::kUdp, req.service_id);
  ServiceListener* const listener = port.ok() ? listeners_.Find(*port) : nullptr;
  if (listener == nullptr) return refuse(SidrStatus::kUnsupportedService);
  // The service may send to the header's address, so that must be the sender's.
  ServiceRequest told;
  const absl::StatusOr<IpHeader> header = SplitPrivateData(req.private_data, &told.private_data);
  if (!IsDefaultPkey(req.pkey) || !header.ok() || header->source.ip != peer.ip) return refuse(SidrStatus::kRejected);
  if (!HasPlace(peer)) return DatagramResult::kRefused;

  told.key = next_key_++;
  told.peer = peer;
  told.peer.port = header->source.port;
  auto request =
      std::make_unique<Request>(name, nic_.alarms(), [this, key = told.key]() REQUIRES_NIC_MUTEX { OnLimit(key); });
  request->service_id = req.service_id;
  request->told = told;
  request->listener = listener;
  request->limit.Set(kMaxServiceTime);
  keys_.emplace(name, told.key);
  requests_.emplace(told.key, std::move(request));
  ++waiting_;
  ++waiting_of_[peer.ip];
  listener->waiting.push_back(told.key);
  listener->Wake();
  return DatagramResult::kTaken;
}

// ---- Asking.

absl::Status ServiceResolution::Ask(ServiceAsker& asker, const Address& address, uint16_t port,
                                    const ServiceData& private_data) {
  CHECK_EQ(asker.question, 0u);
  if (absl::Status status = CheckPeer(address, nic_.address()); !status.ok()) return status;
  Address source = nic_.address();
  source.port = port != 0 ? port : AnyPort(nic_.numbers());
  SidrReqMad req;
  while (req.request_id == 0 || questions_.count(req.request_id) > 0) {
    req.request_id = nic_.share().Place(static_cast<uint32_t>(nic_.numbers().Next()), kCommunicationIdBits);
  }
  req.service_id = ServiceId(PortSpace::kUdp, address.port);
  req.private_data = JoinPrivateData({source, address}, private_data);

  auto question = std::make_unique<Question>(asker, DeviceAt(address, nic_.address()), nic_.alarms(),
                                             [this, id = req.request_id]() REQUIRES_NIC_MUTEX { OnRepeat(id); });
  question->mad = {nic_.numbers().Next(), req};
  nic_.SendMad(question->peer, EncodeMad(question->mad));
  question->repeat.Set(RepeatDelay(0, kServicePatience));
  asker.question = req.request_id;
  questions_.emplace(req.request_id, std::move(question));
  return absl::OkStatus();
}

void ServiceResolution::Forget(ServiceAsker& asker) { questions_.erase(std::exchange(asker.question, 0)); }

void ServiceResolution::OnRepeat(uint32_t id) {
  Question& question = *questions_.at(id);
  if (question.repeats == kServiceRepeats) {
    ServiceAsker& asker = question.asker;
    Forget(asker);
    return asker.Tell(nullptr);
  }
  nic_.SendMad(question.peer, EncodeMad(question.mad));
  question.repeat.Set(RepeatDelay(++question.repeats, kServicePatience));
}

// Ignores a SIDR_REP that was not asked for, or is repeated.
void ServiceResolution::OnAnswer(const Address& peer, uint64_t transaction, const SidrRepMad& rep) {
  const auto found = questions_.find(rep.request_id);
  if (found == questions_.end() || found->second->peer != peer || found->second->mad.transaction != transaction) return;
  ServiceAsker& asker = found->second->asker;
  Forget(asker);
  asker.Tell(&rep);
}

}  // namespace tokamak::verbs::soft
