// The doctor's pulls: two endpoints of lib/transport, on one device or on two hosts, move objects
// by each protocol, as stores do. That tries connections, credits, registration, messages, READ and
// WRITE.
//
// A Station is an endpoint with its memory. One lends objects, and answers calls with what its host
// says of its device; TryPulls has another one call and pull from it, step by step. An endpoint's
// error at its deadline does not say what is broken, but the step does: each needs one thing more
// than those before it.
//
// Law: every wait has a deadline.
// Thread rule: one thread, that of the loop.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lib/base/answers.h"
#include "lib/base/time.h"
#include "lib/base/trace.h"
#include "lib/os/epoll_loop.h"
#include "lib/transport/endpoint.h"
#include "lib/verbs/verbs.h"

namespace tokamak::cli::doctor {

constexpr uint32_t kCallBytes = 64;
constexpr uint32_t kObjectBytes = 256 * 1024;
constexpr uint32_t kObjectsAtOnce = 8;

struct PullPlan {
  base::Duration patience = base::Seconds(5);  // for the connection and each answer; twice that for a batch of objects
  base::Duration spend = base::Seconds(1);     // on each measurement, which then stops with what it has
  uint32_t calls = 500;                        // at most
  uint32_t batches = 15;                       // of objects by each protocol, at most; at least one is pulled
};

// A step by protocol and size, in the order in which they are taken, after "connect" and "call".
struct PullStep {
  const char* name;
  transport::Protocol protocol;
  uint32_t size;       // bytes of an object
  uint32_t at_once;    // objects of a batch
  const char* figure;  // the measured rate's name; null: not measured
};
constexpr PullStep kPullSteps[] = {
    {"eager of 64 B", transport::Protocol::kEager, 64, 1, nullptr},  // one packet
    {"eager of 256 KiB", transport::Protocol::kEager, kObjectBytes, kObjectsAtOnce, "eager"},
    {"read of 256 KiB", transport::Protocol::kRead, kObjectBytes, kObjectsAtOnce, "read"},
    {"write of 256 KiB", transport::Protocol::kWrite, kObjectBytes, kObjectsAtOnce, "write"},
};

// A host's words about its device.
struct DeviceWords {
  std::string device;       // "ibv:rxe1"; empty: nothing was heard
  uint32_t active_mtu = 0;  // bytes
  uint32_t netdev_mtu = 0;  // bytes; 0: not known

  std::string Encode() const;
  // kFailedPrecondition: these are no words of a doctor of this version.
  static absl::StatusOr<DeviceWords> Decode(absl::string_view bytes);
};

// Medians.
struct PullFigures {
  DeviceWords peer;
  int64_t connected_ns = 0;
  int64_t half_round_trip_ns = 0;  // of a call of kCallBytes
  uint32_t calls = 0;
  std::map<std::string, double> rates;  // bytes in a second by PullStep::figure
};

// Returns how both ends wait: they spin for a while before they sleep, for short delays; but not on
// one processor, where a spinning end keeps the other, or the software NIC, from working.
os::Detection MeasuringDetection(unsigned int processors);
unsigned int UsableProcessors();  // those that this thread may run on

// Runs before each step begins: "domain", "memory", "endpoint", "connect", "call of 64 B", and
// PullStep::name.
using StepHandler = std::function<void(absl::string_view step)>;

class Station final : public transport::Source {
 public:
  // `objects`: of kObjectBytes, in its memory. `loop` and `device` must outlive it.
  static absl::StatusOr<std::unique_ptr<Station>> Make(os::EpollLoop& loop, verbs::Device& device, uint32_t objects,
                                                       base::Duration patience, const StepHandler& on_step);

  // Serves pulls of objects, named by PulledId, and answers calls with `words`.
  absl::Status Lend(const verbs::Address& address, const DeviceWords& words);

  transport::Endpoint& endpoint() { return *endpoint_; }
  absl::Span<uint8_t> memory() { return absl::MakeSpan(memory_); }

  void Pin(const base::ObjectVersion& version, transport::PinId pin, PinCallback done) override;
  void Unpin(transport::PinId pin) override { pins_.erase(pin); }

 private:
  Station(os::EpollLoop& loop, uint32_t objects);

  os::EpollLoop& loop_;
  base::Answers answers_;
  base::NoTrace trace_;
  std::vector<uint8_t> memory_;
  std::unique_ptr<verbs::ProtectionDomain> domain_;
  std::unique_ptr<transport::Registration> registration_;
  std::map<transport::PinId, base::Pending> pins_;
  std::unique_ptr<transport::Endpoint> endpoint_;
};

// Calls and pulls from the station that lends at `lender`. Runs the loop inside. `figures` has what
// was learned until then after an error, too.
absl::Status TryPulls(os::EpollLoop& loop, Station& station, const verbs::Address& lender, const PullPlan& plan,
                      const StepHandler& on_step, PullFigures& figures);

}  // namespace tokamak::cli::doctor
