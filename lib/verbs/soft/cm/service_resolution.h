// Service ID resolution (12.11): asks a device for the datagram queue pair that serves a port, and
// answers. It is rdma_cm's RDMA_PS_UDP; no connection is made.
//
// A question (SIDR_REQ) is repeated until its answer (SIDR_REP) comes. The service decides about
// each request, and may take time; a repeated request gets the same answer again. Its ports are
// apart from those of connections.
//
// Anybody can send a request, in anybody's name. It draws one answer, as long as itself. Requests
// that wait for the service have places, for one address and in all; one that finds none is
// dropped: its sender repeats it.
//
// Law: at most kServiceRequests.of_all requests wait, kServiceRequests.of_one from one IP address,
// each for kMaxServiceTime at most; at most kMaxServiceAnswers answers are remembered, each for
// kServiceAnswerKept. An asker has at most one question.
// Thread rule: under the NIC's mutex. Askers and listeners may not call back.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <tuple>

#include "absl/status/statusor.h"
#include "lib/verbs/soft/cm/connection_table.h"
#include "lib/verbs/soft/cm/mad.h"
#include "lib/verbs/soft/cm/management.h"
#include "lib/verbs/soft/cm/port_table.h"
#include "lib/verbs/soft/state/alarm.h"
#include "lib/verbs/soft/state/nic_mutex.h"

namespace tokamak::verbs::soft {

// Repetitions of a question: after 134 ms, then twice that each time, up to kServicePatience / 8.
// After one more such time there is no answer.
constexpr int kServiceRepeats = 15;
constexpr base::Duration kServicePatience = base::Seconds(8);

constexpr HalfOpenBounds kServiceRequests = {64, 1024};
static_assert(kServiceRequests.of_one < kServiceRequests.of_all, "one peer does not keep the others out");
constexpr size_t kMaxServiceAnswers = 1024;

// A request that the service has not answered in this time is rejected.
constexpr base::Duration kMaxServiceTime = base::Seconds(30);
// Longer than any asker waits before it repeats: ours 1 s, the kernel 4.1 s.
constexpr base::Duration kServiceAnswerKept = base::Seconds(10);

// The asker of a question.
class ServiceAsker {
 public:
  // Takes the answer. Null: there is none.
  virtual void Tell(const SidrRepMad* answer) REQUIRES_NIC_MUTEX = 0;

  uint32_t question GUARDED_BY_NIC_MUTEX = 0;  // 0: none

 protected:
  ~ServiceAsker() = default;
};

// The service at a port.
class ServiceListener {
 public:
  // Reports new requests.
  virtual void Wake() REQUIRES_NIC_MUTEX = 0;

  uint16_t port GUARDED_BY_NIC_MUTEX = 0;
  std::deque<uint64_t> waiting GUARDED_BY_NIC_MUTEX;  // keys of those requests

 protected:
  ~ServiceListener() = default;
};

// A request as the service sees it.
struct ServiceRequest {
  uint64_t key = 0;
  Address peer;  // with the port that it is seen as
  ServiceData private_data{};
};

class ServiceResolution final {
 public:
  // `nic` outlives it.
  explicit ServiceResolution(Management& nic);
  ~ServiceResolution();

  // Port 0: one is chosen; errors are those of PortTable::Choose. The listener lives until Forget,
  // which refuses the requests that it does not know of.
  absl::StatusOr<uint16_t> Listen(ServiceListener& listener, uint16_t port) REQUIRES_NIC_MUTEX;
  void Forget(ServiceListener& listener) REQUIRES_NIC_MUTEX;

  // Returns a port without a listener. kResourceExhausted: there is none.
  absl::StatusOr<uint16_t> ChoosePort() REQUIRES_NIC_MUTEX { return listeners_.ChooseFree(); }

  // Returns the oldest request that the listener does not know of. Each must be answered.
  std::optional<ServiceRequest> Take(ServiceListener& listener) REQUIRES_NIC_MUTEX;

  // Sends `answer`, with the request's fields filled in. kCancelled: the request has been rejected
  // meanwhile.
  absl::Status Answer(uint64_t request, const SidrRepMad& answer) REQUIRES_NIC_MUTEX;

  // Asks the service at `address` (a device and a port there), seen as `port`; 0 is chosen. The
  // asker, which asks nothing else, lives until Tell or Forget. kInvalidArgument: no such address.
  absl::Status Ask(ServiceAsker& asker, const Address& address, uint16_t port,
                   const ServiceData& private_data) REQUIRES_NIC_MUTEX;
  void Forget(ServiceAsker& asker) REQUIRES_NIC_MUTEX;

  // SIDR_REQ and SIDR_REP from the device `peer`.
  DatagramResult OnRequest(const Address& peer, uint64_t transaction, const SidrReqMad& req) REQUIRES_NIC_MUTEX;
  void OnAnswer(const Address& peer, uint64_t transaction, const SidrRepMad& rep) REQUIRES_NIC_MUTEX;

  size_t requests_waiting() const REQUIRES_NIC_MUTEX { return waiting_; }
  size_t answers_kept() const REQUIRES_NIC_MUTEX { return answered_.size(); }

 private:
  // Identifies repetitions: the sender's device, its transaction and ID.
  using Name = std::tuple<Address, uint64_t, uint32_t>;

  struct Request {
    Request(const Name& request_name, AlarmClock& clock, base::Task on_limit)
        : name(request_name), limit(clock, std::move(on_limit)) {}

    const Name name;
    uint64_t service_id = 0;
    ServiceRequest told;
    ServiceListener* listener = nullptr;  // until that knows of it
    std::optional<SidrRepMad> answer;
    uint64_t answered_as = 0;  // its key in answered_
    Alarm limit;
  };

  struct Question {
    Question(ServiceAsker& who, const Address& device, AlarmClock& clock, base::Task on_repeat)
        : asker(who), peer(device), repeat(clock, std::move(on_repeat)) {}

    ServiceAsker& asker;
    const Address peer;
    Mad mad;
    int repeats = 0;
    Alarm repeat;
  };

  bool HasPlace(const Address& peer) const REQUIRES_NIC_MUTEX;
  void Decide(Request& request, const SidrRepMad& answer) REQUIRES_NIC_MUTEX;
  void SendAnswer(const Request& request) REQUIRES_NIC_MUTEX;
  void OnLimit(uint64_t key) REQUIRES_NIC_MUTEX;
  void Erase(uint64_t key) REQUIRES_NIC_MUTEX;
  void OnRepeat(uint32_t id) REQUIRES_NIC_MUTEX;

  Management& nic_;
  PortTable<ServiceListener> listeners_ GUARDED_BY_NIC_MUTEX;

  uint64_t next_key_ GUARDED_BY_NIC_MUTEX = 1;
  std::map<uint64_t, std::unique_ptr<Request>> requests_ GUARDED_BY_NIC_MUTEX;
  std::map<Name, uint64_t> keys_ GUARDED_BY_NIC_MUTEX;
  size_t waiting_ GUARDED_BY_NIC_MUTEX = 0;
  std::map<std::array<uint8_t, 16>, size_t> waiting_of_ GUARDED_BY_NIC_MUTEX;  // by IP address
  uint64_t answers_ GUARDED_BY_NIC_MUTEX = 0;
  std::map<uint64_t, uint64_t> answered_ GUARDED_BY_NIC_MUTEX;  // keys, in the order of the answers

  std::map<uint32_t, std::unique_ptr<Question>> questions_ GUARDED_BY_NIC_MUTEX;  // by request ID
};

}  // namespace tokamak::verbs::soft
