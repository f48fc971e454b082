// PortTable finds the listeners at the ports of one port space of a device.
//
// Port::Serve makes a port one NIC's alone where several share the address.
// Bound: 65535 ports; chosen ones are of kChosenPorts.
// Thread rule: the NIC's mutex.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "lib/verbs/soft/cm/mad.h"
#include "lib/verbs/soft/cm/management.h"
#include "lib/verbs/soft/state/nic_mutex.h"

namespace tokamak::verbs::soft {

constexpr uint16_t kFirstChosenPort = 32768;
constexpr uint16_t kChosenPorts = 28232;

inline uint16_t AnyPort(SecretNumbers& numbers) {
  return static_cast<uint16_t>(kFirstChosenPort + numbers.Below(kChosenPorts));
}

template <typename Listener>
class PortTable final {
 public:
  // `nic` outlives it.
  PortTable(Management& nic, PortSpace space) : nic_(nic), space_(space) {}

  // Returns a port without a listener of this NIC. kResourceExhausted: none.
  absl::StatusOr<uint16_t> ChooseFree() const REQUIRES_NIC_MUTEX {
    if (listeners_.size() >= kChosenPorts) return absl::ResourceExhaustedError("no port is free");
    for (;;) {
      const uint16_t chosen = AnyPort(nic_.numbers());
      if (Find(chosen) == nullptr) return chosen;
    }
  }

  // Takes `port` (0: a chosen one) for this NIC until Erase; Add follows. kAlreadyExists: it has a
  // listener; kResourceExhausted: all ports that could be chosen have one.
  absl::StatusOr<uint16_t> Choose(uint16_t port) const REQUIRES_NIC_MUTEX {
    if (port != 0) return Take(port);
    for (int tries = 0; tries < kTries; ++tries) {
      const absl::StatusOr<uint16_t> chosen = ChooseFree();
      if (!chosen.ok()) return chosen;
      const absl::StatusOr<uint16_t> taken = Take(*chosen);
      if (!absl::IsAlreadyExists(taken.status())) return taken;
    }
    return absl::ResourceExhaustedError("no port is free");
  }

  void Add(uint16_t port, Listener& listener) { listeners_.emplace(port, &listener); }
  void Erase(uint16_t port) REQUIRES_NIC_MUTEX {
    if (listeners_.erase(port) > 0) nic_.Withdraw(ServiceId(space_, port));
  }

  // Returns null if there is none.
  Listener* Find(uint16_t port) const {
    const auto found = listeners_.find(port);
    return found == listeners_.end() ? nullptr : found->second;
  }

 private:
  static constexpr int kTries = 64;

  absl::StatusOr<uint16_t> Take(uint16_t port) const REQUIRES_NIC_MUTEX {
    const auto taken = [port] {
      return absl::AlreadyExistsError(absl::StrCat("somebody listens at port ", port, " of this device already"));
    };
    if (Find(port) != nullptr) return taken();
    const absl::Status served = nic_.Serve(ServiceId(space_, port));
    if (absl::IsAlreadyExists(served)) return taken();
    if (!served.ok()) return served;
    return port;
  }

  Management& nic_;
  const PortSpace space_;
  std::map<uint16_t, Listener*> listeners_;
};

}  // namespace tokamak::verbs::soft
