// ThreadsBackend is a world in real time: each software NIC works on a thread of its own, beside
// the owner's thread, which is the test's. Backends derive from it and say which fabric joins the
// NICs.
//
// Thread rule: see Backend; what lives on a NIC's loop is made and dropped there.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "lib/base/trace.h"
#include "lib/os/epoll_loop.h"
#include "lib/os/loop_thread.h"
#include "lib/verbs/soft/device.h"
#include "tests/verbs/conformance/backend.h"
#include "tests/verbs/conformance/backends/faulty_fabric.h"

namespace tokamak::verbs::conformance {

class ThreadsBackend : public Backend {
 public:
  size_t device_count() const final { return nics_.size(); }
  Device& device(size_t index) final { return *nics_[index]->device; }
  base::EventLoop& loop(size_t) final { return loop_; }
  bool Drive(const std::function<bool()>& done, base::Duration limit) final;
  base::Duration quiet() const final { return base::Milliseconds(20); }
  base::Duration slack() const final { return base::Seconds(3); }
  int measurements() const final { return 3; }
  ReliabilityOptions reliability() const final;
  bool Vanish(size_t index) final;
  std::string Counters() const final;

 protected:
  ThreadsBackend() = default;

  // Starts the thread of another NIC, and opens it on the fabric that `make_fabric` returns when
  // called on that thread's loop. Name, address, seed and the like of `options` are set here.
  absl::Status AddNic(const std::string& name, const Address& address,
                      const std::function<std::unique_ptr<soft::Fabric>(os::EpollLoop&)>& make_fabric,
                      soft::DeviceOptions options = {});

 private:
  struct Nic {
    explicit Nic(const std::string& name);
    ~Nic();

    os::LoopThread thread;
    base::NoTrace trace;
    std::unique_ptr<soft::Fabric> fabric;
    std::unique_ptr<FaultyFabric> faulty;
    std::unique_ptr<soft::SoftDevice> device;
  };

  void Tick();

  os::EpollLoop loop_;
  base::Timer tick_;
  std::vector<std::unique_ptr<Nic>> nics_;
};

}  // namespace tokamak::verbs::conformance
