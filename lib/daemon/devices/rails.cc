#include "lib/daemon/devices/rails.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "lib/base/log.h"
#include "lib/daemon/devices/placement.h"
#include "lib/os/process/processors.h"

namespace tokamak::daemon {

absl::StatusOr<std::unique_ptr<Rails>> Rails::Open(absl::string_view names, const DeviceSettings& settings) {
  const std::vector<std::string> all = absl::StrSplit(names, ',');
  if (all.size() > transport::kMaxRails) {
    return absl::InvalidArgumentError(
        absl::StrCat(all.size(), " devices in '", names, "': at most ", transport::kMaxRails, " are possible"));
  }
  if (std::set<std::string>(all.begin(), all.end()).size() != all.size()) {
    return absl::InvalidArgumentError(absl::StrCat("a device is named twice in '", names, "'"));
  }
  auto rails = std::make_unique<Rails>();
  for (size_t i = 0; i < all.size(); ++i) {
    DeviceSettings own = settings;
    own.seed += i;
    if (i > 0 && !own.pcap_path.empty()) absl::StrAppend(&own.pcap_path, ".", i);
    auto device = OpenDevice(all[i], own);
    if (!device.ok()) return device.status();
    rails->rails_.push_back({all[i], *std::move(device), {}, {}});
  }
  return rails;
}

std::string Rails::software() const {
  for (const One& one : rails_) {
    if (!one.device->device().is_rdma()) return one.device->device().name();
  }
  return "";
}

absl::Status Rails::Register(absl::string_view how, absl::Span<uint8_t> memory) {
  for (One& one : rails_) {
    verbs::Device& device = one.device->device();
    if (absl::Status status = Register(how, memory, device, &one.first); !status.ok()) return status;
    verbs::Device& bulk = one.device->bulk_device();
    if (&bulk == &device) continue;
    if (absl::Status status = Register(how, memory, bulk, &one.bulk); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status Rails::Register(absl::string_view how, absl::Span<uint8_t> memory, verbs::Device& device, Use* use) {
  use->device = &device;
  auto domain = device.CreateProtectionDomain();
  if (!domain.ok()) return domain.status();
  use->domain = *std::move(domain);
  if (how == "on_demand") {
    use->registration = transport::RegisterOnDemand(device, *use->domain);
    return absl::OkStatus();
  }
  if (how == "cached") {
    use->registration = transport::RegisterCached(device, *use->domain, memory);
    return absl::OkStatus();
  }
  auto registration = transport::RegisterArena(device, *use->domain, memory);
  if (!registration.ok()) return registration.status();
  use->registration = *std::move(registration);
  return absl::OkStatus();
}

std::vector<transport::Rail> Rails::Of(Use One::*use) const {
  std::vector<transport::Rail> all;
  for (const One& one : rails_) {
    const Use& asked = (one.*use).device == nullptr ? one.first : one.*use;
    all.push_back({*asked.device, *asked.domain, *asked.registration});
  }
  return all;
}

std::vector<int> Rails::Place(uint32_t number) const {
  const One& one = rails_[number % rails_.size()];
  const std::vector<int> near = one.device->ProcessorsNear();
  if (near.empty()) return {};
  const std::vector<int> allowed = os::AllowedProcessors();
  std::vector<int> place = PlaceNear(near, allowed);
  if (!place.empty()) {
    LOG(INFO) << "engine " << number << " runs on processors " << absl::StrJoin(place, ",") << ", near " << one.name;
  } else if (!std::includes(near.begin(), near.end(), allowed.begin(), allowed.end())) {
    LOG(WARNING) << "engine " << number << " is far from " << one.name
                 << ": this process may run on none of processors " << absl::StrJoin(near, ",")
                 << "; allow some (taskset, cpuset) to spare each byte the way between nodes";
  }
  return place;
}

std::vector<std::vector<NamedNumber>> Rails::NumbersOfEach() const {
  std::vector<std::vector<NamedNumber>> each;
  for (const One& one : rails_) {
    each.emplace_back();
    one.device->AddNumbers(each.back());
  }
  return each;
}

}  // namespace tokamak::daemon
