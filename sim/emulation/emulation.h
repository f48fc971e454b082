// Emulation is a simulated fabric in real time with hosts outside, and reports each second what it
// did and how late it was.
//
// Thread rule: the loop's thread; it stands still before Start and after Stop.
#pragma once

#include <cstdint>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lib/base/event_loop.h"
#include "lib/base/time.h"
#include "lib/os/loop_thread.h"
#include "nlohmann/json.hpp"
#include "sim/emulation/attach_point.h"
#include "sim/emulation/attachment.h"
#include "sim/emulation/fabric_totals.h"
#include "sim/emulation/lag_meter.h"
#include "sim/emulation/real_time.h"
#include "sim/fabric/switched_fabric.h"

namespace tokamak::sim {

struct EmulationOptions {
  uint64_t seed = 1;
  uint64_t queue = 1 << 20;                           // bytes at a host's link, of each priority
  base::Duration lag_bound = base::Milliseconds(10);  // beyond: late, and reported
};

class Emulation final {
 public:
  // `time` and `out` must outlive it. Errors name a remedy.
  static absl::StatusOr<std::unique_ptr<Emulation>> Build(RealTime& time, const Topology& topology,
                                                          absl::Span<const AttachPoint> points,
                                                          const EmulationOptions& options, std::ostream& out);
  ~Emulation();

  void Start();
  void Stop();

  nlohmann::json Summary();

  void PrintSummary();

 private:
  Emulation(RealTime& time, const EmulationOptions& options, std::ostream& out)
      : time_(time), options_(options), out_(out), io_({"emulate-io"}) {}

  absl::Status Attach(const AttachPoint& point);
  void Report();
  uint64_t DeliveredBytes() const;

  RealTime& time_;
  const EmulationOptions options_;
  std::ostream& out_;
  std::unique_ptr<SwitchedFabric> fabric_;
  LagMeter lag_;
  std::vector<std::unique_ptr<Attachment>> attachments_;
  os::LoopThread io_;
  bool started_ = false;
  base::Time began_;
  base::Timer report_;
  FabricTotals reported_;
  uint64_t reported_bytes_ = 0;
};

}  // namespace tokamak::sim
