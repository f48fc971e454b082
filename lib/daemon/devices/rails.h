// Rails are a node's devices, opened by name, with what its engines need of each: a protection
// domain and the store's registration.
//
// Thread rule: one thread, which is none of the devices' loops.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "lib/daemon/devices/device.h"
#include "lib/daemon/metrics/named_number.h"
#include "lib/transport/memory/rail.h"
#include "lib/transport/memory/registration.h"
#include "lib/verbs/verbs.h"

namespace tokamak::daemon {

class Rails final {
 public:
  // `names` as OpenDevice takes them, with commas between; the first is where the node listens. A
  // device beside it writes its packets, where that is asked for, to a file of its own, whose name
  // ends with the device's number: ".1".
  static absl::StatusOr<std::unique_ptr<Rails>> Open(absl::string_view names, const DeviceSettings& settings);

  // The name of one that is software; empty: none is.
  std::string software() const;

  // Makes `memory`, which must stay mapped, known to all devices: "arena", "on_demand" or "cached".
  absl::Status Register(absl::string_view how, absl::Span<uint8_t> memory);
  // After Register: for the engine that shares the control loop, and for those that carry bulk.
  std::vector<transport::Rail> all() const { return Of(&One::first); }
  std::vector<transport::Rail> bulk() const { return Of(&One::bulk); }

  // The processors for the thread of engine `number`: those near one of the devices, which engines
  // take in turn. Empty: any. Logs where that is.
  std::vector<int> Place(uint32_t number) const;

  // What each device counts, by its own names.
  std::vector<std::vector<NamedNumber>> NumbersOfEach() const;

 private:
  // Of one device, what its engines share.
  struct Use {
    verbs::Device* device = nullptr;
    std::unique_ptr<verbs::ProtectionDomain> domain;
    std::unique_ptr<transport::Registration> registration;
  };
  struct One {
    std::string name;
    std::unique_ptr<OpenedDevice> device;
    Use first;
    Use bulk;  // empty where it is the same device
  };

  static absl::Status Register(absl::string_view how, absl::Span<uint8_t> memory, verbs::Device& device, Use* use);
  std::vector<transport::Rail> Of(Use One::*use) const;

  std::vector<One> rails_;
};

}  // namespace tokamak::daemon
