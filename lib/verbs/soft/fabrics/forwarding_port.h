// ForwardingPort does all that another port does, by that port; subclasses change some of it.
//
// Thread rule: as Port.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lib/verbs/soft/fabric.h"

namespace tokamak::verbs::soft {

class ForwardingPort : public Port {
 public:
  // Opens the inner port, before all else. `callbacks` run as long as it lives, beyond the members
  // of subclasses, on the loop on which this is dropped.
  absl::Status OpenInner(Fabric& fabric, base::EventLoop& loop, const Address& address, PortCallbacks callbacks) {
    absl::StatusOr<std::unique_ptr<Port>> port = fabric.Open(loop, address, std::move(callbacks));
    if (port.ok()) inner_ = *std::move(port);
    return port.status();
  }

  size_t Send(absl::Span<const Packet> packets) override { return inner_->Send(packets); }
  size_t room() const override { return inner_->room(); }
  uint64_t line_rate() const override { return inner_->line_rate(); }
  const Address& address() const override { return inner_->address(); }
  absl::Status Join(const Address& group) override { return inner_->Join(group); }
  void Leave(const Address& group) override { inner_->Leave(group); }
  NumberShare numbers() const override { return inner_->numbers(); }
  absl::Status Serve(uint64_t service_id) override { return inner_->Serve(service_id); }
  void Withdraw(uint64_t service_id) override { inner_->Withdraw(service_id); }
  uint32_t max_mtu() const override { return inner_->max_mtu(); }
  uint64_t receive_window() const override { return inner_->receive_window(); }

 protected:
  Port& inner() const { return *inner_; }

 private:
  std::unique_ptr<Port> inner_;
};

}  // namespace tokamak::verbs::soft
