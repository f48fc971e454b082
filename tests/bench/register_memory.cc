#include "tests/bench/register_memory.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/types/span.h"
#include "lib/daemon/devices/device.h"
#include "lib/os/shared_memory.h"
#include "lib/verbs/verbs.h"

namespace tokamak::bench {
namespace {

class Registration final : public Contender {
 public:
  Registration(std::unique_ptr<daemon::OpenedDevice> device, std::unique_ptr<verbs::ProtectionDomain> domain)
      : device_(std::move(device)), domain_(std::move(domain)) {}

  std::string name() const override { return "register"; }

  absl::Status Prepare(uint64_t size) override {
    auto memory = os::SharedMemory::Create("bench-register", size);
    if (!memory.ok()) return memory.status();
    memory_ = std::make_unique<os::SharedMemory>(*std::move(memory));
    size_ = size;
    std::fill_n(memory_->bytes().data(), size, 0x5a);
    return absl::OkStatus();
  }

  absl::StatusOr<double> Fetch() override {
    const auto begin = std::chrono::steady_clock::now();
    auto region = domain_->RegisterMemory(memory_->bytes().first(size_),
                                          verbs::kLocalWrite | verbs::kRemoteWrite | verbs::kRemoteRead);
    if (!region.ok()) return region.status();
    region->reset();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }

 private:
  const std::unique_ptr<daemon::OpenedDevice> device_;
  const std::unique_ptr<verbs::ProtectionDomain> domain_;
  std::unique_ptr<os::SharedMemory> memory_;
  uint64_t size_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Contender>> OpenRegistration(const std::string& device) {
  auto opened = daemon::OpenDevice(device, {});
  if (!opened.ok()) return opened.status();
  auto domain = (*opened)->device().CreateProtectionDomain();
  if (!domain.ok()) return domain.status();
  return std::make_unique<Registration>(*std::move(opened), *std::move(domain));
}

}  // namespace tokamak::bench
