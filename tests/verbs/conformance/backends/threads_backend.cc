#include "tests/verbs/conformance/backends/threads_backend.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace tokamak::verbs::conformance {
namespace {

// A test that polls, instead of waiting for an event, is asked again this often.
constexpr base::Duration kTick = base::Microseconds(100);

}  // namespace

ThreadsBackend::Nic::Nic(const std::string& name) : thread({name}) {}

ThreadsBackend::Nic::~Nic() {
  device.reset();
  thread.CallOn([this] {
    faulty.reset();
    fabric.reset();
  });
  thread.Stop();
}

bool ThreadsBackend::Drive(const std::function<bool()>& done, base::Duration limit) {
  Tick();
  const bool result = loop_.RunUntil(done, loop_.Now() + limit);
  tick_.Cancel();
  return result;
}

void ThreadsBackend::Tick() {
  tick_ = loop_.RunAfter(kTick, [this] { Tick(); });
}

ReliabilityOptions ThreadsBackend::reliability() const {
  // The default is short enough for tests that wait for its end, and long enough for a machine that
  // has more to do.
  return {};
}

bool ThreadsBackend::Vanish(size_t index) {
  nics_[index]->faulty->Vanish(0);
  return true;
}

std::string ThreadsBackend::Counters() const {
  std::string text;
  for (const auto& nic : nics_) {
    const soft::DeviceCounters counters = nic->device->counters();
    const soft::QueuePairCounters& sum = counters.queue_pairs;
    absl::StrAppend(&text, nic->device->name(), ": ", sum.packets_sent, " packets sent, ", sum.packets_received,
                    " received, ", sum.packets_retransmitted, " again, ", sum.timeouts, " time-outs, ",
                    counters.datagrams_sent, " datagrams sent, ", counters.datagrams_received, " received. ");
  }
  return text;
}

absl::Status ThreadsBackend::AddNic(const std::string& name, const Address& address,
                                    const std::function<std::unique_ptr<soft::Fabric>(os::EpollLoop&)>& make_fabric,
                                    soft::DeviceOptions options) {
  auto nic = std::make_unique<Nic>(absl::StrCat("nic", nics_.size()));
  absl::Status status;
  nic->thread.CallOn([&] {
    nic->fabric = make_fabric(nic->thread.loop());
    nic->faulty = std::make_unique<FaultyFabric>(*nic->fabric);
    options.name = name;
    options.address = address;
    options.seed = nics_.size() + 1;
    options.run_on_nic_loop = [&thread = nic->thread](const std::function<void()>& call) { thread.CallOn(call); };
    auto opened = soft::OpenSoftDevice(nic->thread.loop(), *nic->faulty, nic->trace, options);
    status = opened.status();
    if (opened.ok()) nic->device = *std::move(opened);
  });
  if (status.ok()) nics_.push_back(std::move(nic));
  return status;
}

}  // namespace tokamak::verbs::conformance
