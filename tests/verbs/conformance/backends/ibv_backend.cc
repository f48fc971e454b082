// The suite over real verbs: the devices of $TOKAMAK_TEST_DEVICES ("ibv:rxe0,ibv:rxe1"), or else
// all RDMA devices of this machine whose port is up. In the lab's guest these are two Soft-RoCE or
// two Soft-iWARP devices on a veth pair.
//
// Each provider is a profile, with rdma_cm; where queue pairs may be walked by hand there is
// another one, with connections made over TCP. A provider's answers to faults that deviate from the
// specification are listed here with the reason.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "lib/daemon/devices/device.h"
#include "lib/os/epoll_loop.h"
#include "lib/verbs/ibv/translation/device_name.h"
#include "tests/faults/wire.h"
#include "tests/support/test_devices.h"
#include "tests/verbs/conformance/backend.h"

namespace tokamak::verbs::conformance {
namespace {

namespace fs = std::filesystem;

// A test that polls, instead of waiting for an event, is asked again this often. An emulated
// processor has other work, too.
constexpr base::Duration kTick = base::Microseconds(500);

// Answers of a provider that are not those of the specification.
struct OtherAnswer {
  const char* provider;
  Fault fault;
  CompletionStatus status;
};
constexpr OtherAnswer kOtherAnswers[] = {
    // rdma_rxe says "the queue pair could not" of all that goes wrong at its own end
    // (rxe_requester, rxe_completer), and "the operation failed" of all that went wrong at the
    // other but keys.
    {"rxe", Fault::kLocalKey, CompletionStatus::kLocalQpOperation},
    {"rxe", Fault::kLocalRight, CompletionStatus::kLocalQpOperation},
    {"rxe", Fault::kReceiveKey, CompletionStatus::kLocalQpOperation},
    {"rxe", Fault::kReceiveRight, CompletionStatus::kLocalQpOperation},
    {"rxe", Fault::kReceiveShort, CompletionStatus::kLocalQpOperation},
    {"rxe", Fault::kPeerReceiveShort, CompletionStatus::kRemoteOperation},
    // siw says so of every request that it was at when the connection ended, whosever fault it was.
    {"siw", Fault::kLocalKey, CompletionStatus::kLocalQpOperation},
    {"siw", Fault::kLocalRight, CompletionStatus::kLocalQpOperation},
    {"siw", Fault::kRemoteKey, CompletionStatus::kLocalQpOperation},
};

// "rxe0" -> "rxe", "mlx5_0" -> "mlx5".
std::string ProviderOf(const std::string& rdma_device) {
  std::string provider = rdma_device;
  while (!provider.empty() && absl::ascii_isdigit(static_cast<unsigned char>(provider.back()))) provider.pop_back();
  if (!provider.empty() && provider.back() == '_') provider.pop_back();
  std::replace_if(
      provider.begin(), provider.end(), [](char c) { return !absl::ascii_isalnum(static_cast<unsigned char>(c)); },
      '_');
  return provider.empty() ? "unnamed" : provider;
}

// "ibv:rxe0:1@3" -> "rxe0".
std::string RdmaDeviceOf(const std::string& name) {
  const auto parsed = ibv::ParseDeviceName(name);
  return parsed.ok() ? parsed->device : name;
}

bool IsUp(const fs::path& device) {
  std::error_code error;
  for (const auto& port : fs::directory_iterator(device / "ports", error)) {
    std::ifstream file(port.path() / "state");
    std::string state;
    if (std::getline(file, state) && absl::StrContains(state, "ACTIVE")) return true;
  }
  return false;
}

// Names as OpenDevice takes them.
std::vector<std::string> DevicesToTest() {
  std::vector<std::string> names = testing_support::TestDevices();
  if (!names.empty()) return names;
  std::error_code error;
  for (const auto& device : fs::directory_iterator("/sys/class/infiniband", error)) {
    if (IsUp(device.path())) names.push_back("ibv:" + device.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

class IbvBackend final : public Backend {
 public:
  explicit IbvBackend(std::string provider) : provider_(std::move(provider)) {}

  absl::Status Open(const std::vector<std::string>& names, daemon::ConnectBy connect_by) {
    for (const std::string& name : names) {
      auto opened = daemon::OpenDevice(name, {});
      if (opened.ok() && connect_by == daemon::ConnectBy::kTcp) {
        daemon::DeviceSettings settings;
        settings.connect_by = connect_by;
        settings.address = (*opened)->device().address();
        opened = daemon::OpenDevice(name, settings);
      }
      if (!opened.ok()) return opened.status();
      opened_.push_back(*std::move(opened));
      names_.push_back(RdmaDeviceOf(name));
    }
    // One device reaches itself.
    if (opened_.size() == 1) shared_ = true;
    return absl::OkStatus();
  }

  size_t device_count() const override { return shared_ ? 2 : opened_.size(); }
  Device& device(size_t index) override { return opened_[shared_ ? 0 : index]->device(); }
  base::EventLoop& loop(size_t) override { return loop_; }

  bool Drive(const std::function<bool()>& done, base::Duration limit) override {
    Tick();
    const bool result = loop_.RunUntil(done, loop_.Now() + limit);
    tick_.Cancel();
    return result;
  }

  base::Duration patience() const override { return base::Seconds(60); }
  base::Duration quiet() const override { return base::Milliseconds(200); }
  base::Duration slack() const override { return base::Seconds(10); }
  // Soft-RoCE counts its time-outs in the kernel's ticks, 250 in a second (nsecs_to_jiffies).
  base::Duration tick() const override { return base::Milliseconds(4); }
  int measurements() const override { return 10; }

  // Short enough for tests that wait for its end, and long enough for an emulated processor that
  // has more to do.
  ReliabilityOptions reliability() const override { return {}; }

  // In the first device's network, which is a /24 in the lab.
  Address nowhere() const override {
    Address address = opened_.front()->device().address();
    address.ip.back() = 200;
    return address;
  }

  // Cuts the wire of all devices: with two of them that is the same. Their net devices must be
  // virtual.
  bool Vanish(size_t) override {
    // A wire of TCP connections is given up after many minutes only, so nothing would be seen of
    // it.
    if (shared_ || provider_ == "siw") return false;
    std::vector<std::string> net_devices;
    for (const std::string& name : names_) {
      const auto net_device = faults::NetDeviceOf(name);
      if (!net_device.ok()) return false;
      net_devices.push_back(*net_device);
    }
    auto cut = faults::Netem::Start(net_devices, "loss 100%");
    if (!cut.ok()) return false;
    cut_ = *std::move(cut);
    return true;
  }

  bool Accepts(Fault fault, CompletionStatus status) const override {
    for (const OtherAnswer& other : kOtherAnswers) {
      if (provider_ == other.provider && fault == other.fault && status == other.status) return true;
    }
    return Backend::Accepts(fault, status);
  }

  bool HearsAnswersAfterALocalFault() const override { return provider_ != "rxe"; }

  std::string Counters() const override {
    std::string text;
    for (const auto& opened : opened_) {
      std::vector<daemon::NamedNumber> numbers;
      opened->AddNumbers(numbers);
      absl::StrAppend(&text, opened->device().name(), ":");
      for (const daemon::NamedNumber& number : numbers) {
        if (number.value != 0) absl::StrAppend(&text, " ", number.name, " ", number.value);
      }
      absl::StrAppend(&text, ". ");
    }
    return text;
  }

 private:
  void Tick() {
    tick_ = loop_.RunAfter(kTick, [this] { Tick(); });
  }

  const std::string provider_;
  os::EpollLoop loop_;
  base::Timer tick_;
  std::vector<std::string> names_;  // of the RDMA devices
  bool shared_ = false;
  std::vector<std::unique_ptr<daemon::OpenedDevice>> opened_;
  std::unique_ptr<faults::Netem> cut_;
};

Profile MakeProfile(const std::string& name, const std::string& provider, const std::vector<std::string>& devices,
                    daemon::ConnectBy connect_by) {
  Profile profile;
  profile.name = name;
  profile.make = [=]() -> absl::StatusOr<std::unique_ptr<Backend>> {
    auto backend = std::make_unique<IbvBackend>(provider);
    if (absl::Status s = backend->Open(devices, connect_by); !s.ok()) return s;
    return backend;
  };
  return profile;
}

}  // namespace

std::vector<Profile> Profiles() {
  const std::vector<std::string> devices = DevicesToTest();
  if (devices.empty()) {
    Profile none;
    none.name = "none";
    none.make = []() -> absl::StatusOr<std::unique_ptr<Backend>> {
      return absl::UnavailableError("no RDMA device here is up: run it in the lab, ci/softroce -- PROGRAM");
    };
    return {none};
  }
  const std::string provider = ProviderOf(RdmaDeviceOf(devices.front()));
  std::vector<Profile> profiles = {MakeProfile(provider, provider, devices, daemon::ConnectBy::kRdmaCm)};
  // iWARP's connections are made by its own manager only.
  if (provider != "siw") profiles.push_back(MakeProfile(provider + "_tcp", provider, devices, daemon::ConnectBy::kTcp));
  return profiles;
}

}  // namespace tokamak::verbs::conformance
