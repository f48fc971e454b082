// The suite in real time over real sockets: three software NICs, each on a thread of its own, on addresses of 127/8.
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/base/trace.h"
#include "lib/os/epoll_loop.h"
#include "lib/os/loop_thread.h"
#include "lib/verbs/soft/device.h"
#include "lib/verbs/soft/udp/udp_fabric.h"
#include "tests/verbs/conformance/backend.h"
#include "tests/verbs/conformance/backends/faulty_fabric.h"

namespace tokamak::verbs::conformance {
namespace {

constexpr size_t kDevices = 2;

// What polls instead of waiting for an event is asked again this often.
constexpr base::Duration kTick = base::Microseconds(100);

class UdpBackend final : public Backend {
 public:
  absl::Status Open() {
    for (size_t i = 0; i < kDevices; ++i) {
      nodes_.push_back(std::make_unique<Node>(i));
      if (absl::Status status = nodes_.back()->Open(AddressOf(i), i + 1); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

  size_t device_count() const override { return kDevices; }
  Device& device(size_t index) override { return *nodes_[index]->device; }
  base::EventLoop& loop(size_t) override { return loop_; }

  bool Drive(const std::function<bool()>& done, base::Duration limit) override {
    Tick();
    const bool result = loop_.RunUntil(done, loop_.Now() + limit);
    tick_.Cancel();
    return result;
  }

  base::Duration quiet() const override { return base::Milliseconds(20); }
  base::Duration slack() const override { return base::Seconds(2); }

  ReliabilityOptions reliability() const override {
    ReliabilityOptions options;
    options.ack_timeout = base::Milliseconds(30);
    options.rnr_delay = base::Microseconds(640);
    return options;
  }

  Address nowhere() const override { return AddressOf(200); }

  bool Vanish(size_t index) override {
    nodes_[index]->faulty.Vanish(0);
    return true;
  }

  std::string Counters() const override {
    std::string text;
    for (const auto& node : nodes_) {
      const soft::UdpCounters& counters = node->fabric.counters();
      absl::StrAppend(&text, "Port: ", counters.packets_sent.value(), " packets sent, ",
                      counters.packets_received.value(), " received, ", counters.Dropped(soft::UdpDrop::kSocketBuffer),
                      " dropped by the socket, ", counters.Dropped(soft::UdpDrop::kIcrc), " damaged. ");
    }
    return text;
  }

 private:
  // A NIC and its thread. What lives on the thread's loop is made and dropped there.
  struct Node {
    explicit Node(size_t index) : thread({absl::StrCat("nic", index)}), fabric(thread.loop()), faulty(fabric) {}
    ~Node() {
      device.reset();
      thread.Stop();
    }

    absl::Status Open(const Address& address, uint64_t seed) {
      absl::Status status;
      thread.CallOn([&] {
        soft::DeviceOptions options;
        options.name = absl::StrCat("soft:udp@", address.ToString());
        options.address = address;
        options.seed = seed;
        auto opened = soft::OpenSoftDevice(thread.loop(), faulty, trace, options);
        status = opened.status();
        if (opened.ok()) device = *std::move(opened);
      });
      return status;
    }

    os::LoopThread thread;
    base::NoTrace trace;
    soft::UdpFabric fabric;
    FaultyFabric faulty;
    std::unique_ptr<Device> device;
  };

  // Tests that run beside this one, outside of a network namespace of their own, have other addresses.
  static Address AddressOf(size_t index) {
    const int process = getpid();
    return *Address::Parse(absl::StrCat("127.", 1 + process / 250 % 250, ".", process % 250, ".", index + 1));
  }

  void Tick() {
    tick_ = loop_.RunAfter(kTick, [this] { Tick(); });
  }

  os::EpollLoop loop_;
  base::Timer tick_;
  std::vector<std::unique_ptr<Node>> nodes_;
};

}  // namespace

std::vector<Profile> Profiles() {
  Profile udp;
  udp.name = "udp";
  udp.make = []() -> absl::StatusOr<std::unique_ptr<Backend>> {
    auto backend = std::make_unique<UdpBackend>();
    if (absl::Status status = backend->Open(); !status.ok()) return status;
    return backend;
  };
  return {udp};
}

}  // namespace tokamak::verbs::conformance
