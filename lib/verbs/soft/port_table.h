// PortTable knows who listens at which ports of one port space of a device.
//
// Bound: a port space has 65535 ports; one that is chosen is of kChosenPorts.
// Thread rule: the NIC's mutex.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "lib/verbs/soft/secret_numbers.h"

namespace tokamak::verbs::soft {

constexpr uint16_t kFirstChosenPort = 32768;
constexpr uint16_t kChosenPorts = 28232;

// A port to be seen as.
inline uint16_t AnyPort(SecretNumbers& numbers) {
  return static_cast<uint16_t>(kFirstChosenPort + numbers.Below(kChosenPorts));
}

template <typename Listener>
class PortTable final {
 public:
  // `port`, or one that is chosen where it is 0: nobody listens there. kAlreadyExists: somebody does;
  // kResourceExhausted: at all that could be chosen.
  absl::StatusOr<uint16_t> Choose(uint16_t port, SecretNumbers& numbers) const {
    if (port != 0 && Find(port) != nullptr) {
      return absl::AlreadyExistsError(absl::StrCat("somebody listens at port ", port, " of this device already"));
    }
    if (port != 0) return port;
    if (listeners_.size() >= kChosenPorts) return absl::ResourceExhaustedError("no port is free");
    for (;;) {
      const uint16_t chosen = AnyPort(numbers);
      if (Find(chosen) == nullptr) return chosen;
    }
  }

  void Add(uint16_t port, Listener& listener) { listeners_.emplace(port, &listener); }
  void Erase(uint16_t port) { listeners_.erase(port); }

  // Null: nobody.
  Listener* Find(uint16_t port) const {
    const auto found = listeners_.find(port);
    return found == listeners_.end() ? nullptr : found->second;
  }

 private:
  std::map<uint16_t, Listener*> listeners_;
};

}  // namespace tokamak::verbs::soft
