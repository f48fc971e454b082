// LoopbackFabric joins software NICs of one process: in order, without loss, each NIC on any loop
// and thread.
//
// A batch is copied once for each port, and wakes the receiver once.
// Thread rule: Open from any thread; a port from the thread of its loop. The fabric may be dropped
// before its ports.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "lib/base/event_loop.h"
#include "lib/verbs/soft/fabric.h"
#include "lib/verbs/types.h"

namespace tokamak::sim {

struct LoopbackOptions {
  uint32_t max_mtu = verbs::kMaxMtu;
  uint64_t receive_window = 16 << 20;   // bytes, see Port::receive_window
  uint64_t receive_buffer = 256 << 20;  // bytes that wait at a port; the rest is dropped
};

class LoopbackFabric final : public verbs::soft::Fabric {
 public:
  explicit LoopbackFabric(const LoopbackOptions& options = {});
  ~LoopbackFabric() override;

  absl::StatusOr<std::unique_ptr<verbs::soft::Port>> Open(base::EventLoop& loop, const verbs::Address& address,
                                                          verbs::soft::PortCallbacks callbacks) override;

 private:
  class Exchange;
  class Inbox;
  class LoopbackPort;

  const LoopbackOptions options_;
  const std::shared_ptr<Exchange> exchange_;
};

}  // namespace tokamak::sim
