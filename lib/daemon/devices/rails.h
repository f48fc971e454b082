// Rails are a node's devices, opened by name, with a protection domain and the store's registration
// of each.
//
// Thread rule: one thread, outside the devices' loops.
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
  // Opens `names`, comma-separated, as OpenDevice; the node listens on the first. Packet traces of
  // the others have ".1", ".2" appended.
  static absl::StatusOr<std::unique_ptr<Rails>> Open(absl::string_view names, const DeviceSettings& settings);

  // A software device's name; empty: none.
  std::string software() const;

  // Registers `memory`, which must stay mapped: "arena", "on_demand" or "cached".
  absl::Status Register(absl::string_view how, absl::Span<uint8_t> memory);
  // After Register: of the control loop's engine, and of those for bulk.
  std::vector<transport::Rail> all() const { return Of(&One::first); }
  std::vector<transport::Rail> bulk() const { return Of(&One::bulk); }

  // Returns the processors near the device of engine `number`, in turn. Empty: any. Logs the place.
  std::vector<int> Place(uint32_t number) const;

  std::vector<std::vector<NamedNumber>> NumbersOfEach() const;

 private:
  struct Use {
    verbs::Device* device = nullptr;
    std::unique_ptr<verbs::ProtectionDomain> domain;
    std::unique_ptr<transport::Registration> registration;
  };
  struct One {
    std::string name;
    std::unique_ptr<OpenedDevice> device;
    Use first;
    Use bulk;  // empty: the same device
  };

  static absl::Status Register(absl::string_view how, absl::Span<uint8_t> memory, verbs::Device& device, Use* use);
  std::vector<transport::Rail> Of(Use One::*use) const;

  std::vector<One> rails_;
};

}  // namespace tokamak::daemon
