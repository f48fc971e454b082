// Two queue pairs that talk: what proves that a device does not only look healthy. SENDs back and
// forth give the latency, WRITEs and READs the bandwidth, and what was written and read back is
// compared.
//
// PingPongResponder is the end that waits: it echoes messages and lends memory. RunPingPong is the
// end that calls, on the same device or from another host. Both speak verbs::Device only.
//
// Every wait has a deadline: a device, or a path, that swallows requests ends in kDeadlineExceeded
// with what did not come.
// Thread rule: one thread, that of the loop.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lib/base/time.h"
#include "lib/os/epoll_loop.h"
#include "lib/verbs/verbs.h"

namespace tokamak::cli::doctor {

constexpr uint32_t kPingBytes = 64;
constexpr uint32_t kTransferBytes = 256 * 1024;
constexpr uint32_t kTransfersInFlight = 8;
constexpr uint32_t kTransfersPerBatch = 16;  // one batch gives one figure of bandwidth

struct PingPongPlan {
  base::Duration patience = base::Seconds(5);  // for the connection, then for each completion; twice that for a batch
  base::Duration spend = base::Seconds(1);     // on each of the three measurements, which then stop with what they have
  uint32_t rounds = 500;                       // of latency, at most
  uint32_t batches = 15;                       // of bandwidth, at most; at least one is made
};

// How both ends wait: they spin for a while before they sleep, for short delays; but not on one
// processor, where who spins keeps the other end, or the software NIC, from working.
os::Detection MeasuringDetection(unsigned int processors);
unsigned int UsableProcessors();  // that this process may run on

// Medians.
struct PingPongNumbers {
  base::Duration connected_in;
  uint32_t path_mtu = 0;           // bytes
  base::Duration half_round_trip;  // of a SEND of kPingBytes
  uint32_t rounds = 0;
  double write_rate = 0;  // bytes in a second, WRITEs of kTransferBytes, kTransfersInFlight at once
  double read_rate = 0;
  uint32_t batches = 0;  // of WRITEs
};

// Told before each step begins, so that who watches knows where it hangs: "domain", "completion
// queue", "memory", "queue pair", "connect", "send", "write", "read", "compare".
using StepHandler = std::function<void(absl::string_view step)>;

class PingPongSide;

// Answers one caller at a time; the newest wins, so that one who left silently keeps nobody out.
class PingPongResponder final {
 public:
  // Listens at the device's address, on a port of the device's choice. Failing later, for one
  // caller, is that caller's to see.
  static absl::StatusOr<std::unique_ptr<PingPongResponder>> Start(base::EventLoop& loop, verbs::Device& device);
  ~PingPongResponder();

  const verbs::Address& service() const { return listener_->address(); }

 private:
  PingPongResponder(base::EventLoop& loop, verbs::Device& device);

  void Accept(std::unique_ptr<verbs::ConnectionRequest> request);
  void Echo();

  base::EventLoop& loop_;
  verbs::Device& device_;
  bool established_ = false;
  bool echo_waits_ = false;  // for that
  std::unique_ptr<verbs::Listener> listener_;
  std::unique_ptr<PingPongSide> side_;
};

// Calls a responder at `service` and measures. The loop runs inside.
absl::StatusOr<PingPongNumbers> RunPingPong(os::EpollLoop& loop, verbs::Device& device, const verbs::Address& service,
                                            const PingPongPlan& plan, const StepHandler& on_step);

}  // namespace tokamak::cli::doctor
