// HostPort is a NIC's plug in a HostInterface.
#pragma once

#include "lib/verbs/soft/fabric.h"
#include "sim/fabric/host_interface.h"

namespace tokamak::sim {

class HostPort final : public verbs::soft::Port {
 public:
  explicit HostPort(HostInterface& host) : host_(host) {}
  ~HostPort() override { host_.Unplug(); }

  size_t Send(absl::Span<const verbs::soft::Packet> packets) override { return host_.Send(packets); }
  size_t room() const override { return host_.Room(); }
  uint64_t line_rate() const override { return host_.egress_.link().parameters().rate.bits_per_second(); }
  const verbs::Address& address() const override { return host_.address_; }
  uint32_t max_mtu() const override { return host_.options_.max_mtu; }
  uint64_t receive_window() const override { return host_.options_.receive_buffer / 2; }

 private:
  HostInterface& host_;
};

}  // namespace tokamak::sim
