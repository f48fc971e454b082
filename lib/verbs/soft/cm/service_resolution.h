// Service ID resolution (12.11): asks a device for the datagram queue pair that serves a port, and
// answers. It is rdma_cm's RDMA_PS_UDP, with ports apart from those of connections.
//
// A SIDR_REQ is repeated until its SIDR_REP comes; a repeated request gets the same answer again.
// Its sender may be forged, so it draws one answer, as long as itself. Requests that wait for the
// service are bounded, for one address and in all; one beyond is dropped, and its sender repeats
// it.
//
// Law: at most kServiceRequests.of_all requests wait, kServiceRequests.of_one from one IP address,
// each for kMaxServiceTime at most; at most kMaxServiceAnswers answers are remembered, each for
// kServiceAnswerKept. An asker has at most one question.
// Thread rule: the NIC's mutex. Askers and listeners may not call back.
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

// Repetitions of a question: the first after 134 ms, then after twice that each time, up to
// kServicePatience / 8. After one more such wait there is no answer.
constexpr int kServiceRepeats = 15;
constexpr base::Duration kServicePatience = base::Seconds(8);

constexpr HalfOpenBounds kServiceRequests = {64, 1024};
static_assert(kServiceRequests.of_one < kServiceRequests.of_all, "one peer does not keep the others out");
constexpr size_t kMaxServiceAnswers = 1024;

// A request not answered in this time is rejected.
constexpr base::Duration kMaxServiceTime = base::Seconds(30);
// Longer than any asker waits before it repeats: ours 1 s, the kernel 4.1 s.
constexpr base::Duration kServiceAnswerKept = base::Seconds(10);

class ServiceAsker {
 public:
  // Takes the answer; null: there is none.
  virtual void Tell(const SidrRepMad* answer) REQUIRES_NIC_MUTEX = 0;

  uint32_t question GUARDED_BY_NIC_MUTEX = 0;  // 0: none

 protected:
  ~ServiceAsker() = default;
};

class ServiceListener {
 public:
  // Reports new requests.
  virtual void Wake() REQUIRES_NIC_MUTEX = 0;

  uint16_t port GUARDED_BY_NIC_MUTEX = 0;
  std::deque<uint64_t> waiting GUARDED_BY_NIC_MUTEX;  // keys of requests not yet taken

 protected:
  ~ServiceListener() = default;
};

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

  // Serves `port` (0: a chosen one). Errors are those of PortTable::Choose. The listener lives
  // until Forget, which refuses requests that it has not taken.
  absl::StatusOr<uint16_t> Listen(ServiceListener& listener, uint16_t port) REQUIRES_NIC_MUTEX;
  void Forget(ServiceListener& listener) REQUIRES_NIC_MUTEX;

  // Returns a port without a listener. kResourceExhausted: there is none.
  absl::StatusOr<uint16_t> ChoosePort() REQUIRES_NIC_MUTEX { return listeners_.ChooseFree(); }

  // Returns the oldest request not yet taken. Each must be answered.
  std::optional<ServiceRequest> Take(ServiceListener& listener) REQUIRES_NIC_MUTEX;

  // Sends `answer`, with the request's fields filled in. kCancelled: the request was rejected
  // meanwhile.
  absl::Status Answer(uint64_t request, const SidrRepMad& answer) REQUIRES_NIC_MUTEX;

  // Asks the service at `address` (device and port), seen as `port` (0: chosen). The asker, which
  // asks nothing else, lives until Tell or Forget. kInvalidArgument: no such address.
  absl::Status Ask(ServiceAsker& asker, const Address& address, uint16_t port,
                   const ServiceData& private_data) REQUIRES_NIC_MUTEX;
  void Forget(ServiceAsker& asker) REQUIRES_NIC_MUTEX;

  // Take messages from the device `peer`.
  DatagramResult OnRequest(const Address& peer, uint64_t transaction, const SidrReqMad& req) REQUIRES_NIC_MUTEX;
  void OnAnswer(const Address& peer, uint64_t transaction, const SidrRepMad& rep) REQUIRES_NIC_MUTEX;

  size_t requests_waiting() const REQUIRES_NIC_MUTEX { return waiting_; }
  size_t answers_kept() const REQUIRES_NIC_MUTEX { return answered_.size(); }

 private:
  // The sender's device, transaction and ID.
  using Name = std::tuple<Address, uint64_t, uint32_t>;

  struct Request {
    Request(const Name& request_name, AlarmClock& clock, base::Task on_limit)
        : name(request_name), limit(clock, std::move(on_limit)) {}

    const Name name;
    uint64_t service_id = 0;
    ServiceRequest told;
    ServiceListener* listener = nullptr;  // until taken
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
  std::map<std::array<uint8_t, 16>, size_t> waiting_of_ GUARDED_BY_NIC_MUTEX;
  uint64_t answers_ GUARDED_BY_NIC_MUTEX = 0;
  std::map<uint64_t, uint64_t> answered_ GUARDED_BY_NIC_MUTEX;  // keys, oldest answer first

  std::map<uint32_t, std::unique_ptr<Question>> questions_ GUARDED_BY_NIC_MUTEX;
};

}  // namespace tokamak::verbs::soft
