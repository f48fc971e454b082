#include "lib/verbs/kernel/kernel.h"

#include <fcntl.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_cm.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/random.h"
#include "lib/base/units.h"
#include "lib/os/calendar.h"
#include "lib/os/secret_seed.h"
#include "lib/verbs/kernel/port_outage.h"
#include "lib/verbs/kernel/program/command.h"
#include "lib/verbs/kernel/program/explain.h"
#include "lib/verbs/kernel/program/translate.h"
#include "lib/verbs/soft/shared/shared_address_fabric.h"
#include "lib/verbs/soft/shm/names.h"
#include "lib/verbs/soft/shm/shm_fabric.h"
#include "lib/verbs/soft/udp/udp_socket.h"

namespace tokamak::verbs::kernel {
namespace {

// Longest wait for an event thread that stays away.
constexpr std::chrono::milliseconds kComesBack(10);

// A thread that waits for an event when its descriptor is closed gets no answer, as from a kernel:
// it ends with the process.
[[noreturn]] void WaitForTheEnd() {
  for (;;) pause();
}

// Returns the number of a command to the connection manager. One that is too short is refused
// later.
uint32_t NumberOf(const void* buffer, size_t size) {
  rdma_ucm_cmd_hdr header{};
  if (size >= sizeof(header)) std::memcpy(&header, buffer, sizeof(header));
  return header.cmd;
}

bool AsksForEvent(const void* buffer, size_t size) { return NumberOf(buffer, size) == RDMA_USER_CM_CMD_GET_EVENT; }

}  // namespace

struct Kernel::Device {
  std::unique_ptr<soft::PcapWriter> pcap;
  std::unique_ptr<soft::Fabric> network;
  std::unique_ptr<soft::TapFabric> tapped;     // null without a capture
  std::unique_ptr<soft::FaultyFabric> faulty;  // null without faults
  std::unique_ptr<soft::SoftDevice> nic;
  std::unique_ptr<UserDevice> device;
  std::unique_ptr<PortOutage> outage;  // null without an outage
};

std::vector<Identity> Kernel::IdentitiesOf(const Options& options) {
  std::vector<Address> addresses = options.addresses;
  if (addresses.empty()) addresses.push_back(DefaultAddress());
  std::vector<Identity> identities;
  for (const Address& address : addresses) {
    identities.push_back(MakeIdentity(static_cast<uint32_t>(identities.size()), address, InterfaceOf(address)));
  }
  return identities;
}

Kernel::Kernel(const Options& options, std::vector<Identity> identities)
    : options_(options),
      identities_(std::move(identities)),
      failing_(options.request_fault),
      event_takers_(kComesBack) {
  devices_.resize(identities_.size());
  open_devices_.resize(identities_.size());
  progress_ = std::make_unique<Progress>(loop_, [this] {
    for (const std::unique_ptr<Device>& device : devices_) {
      if (device != nullptr) device->device->PullAll();
    }
  });
}

Kernel::~Kernel() { Depart(); }

void Kernel::Depart() {
  progress_->Stop();
  const Progress::Hold hold(*progress_);
  if (!departed_ && options_.counters) SayCounters();
  departed_ = true;
  managers_.clear();
  contexts_.clear();
  for (std::unique_ptr<Device>& device : devices_) device.reset();
}

absl::Status Kernel::MakeDevice(size_t index) {
  auto made = std::make_unique<Device>();
  if (options_.shared_memory) {
    made->network = std::make_unique<soft::ShmFabric>(loop_);
  } else {
    made->network = std::make_unique<soft::SharedAddressFabric>(loop_);
  }
  soft::Fabric* fabric = made->network.get();
  if (!options_.pcap.empty()) {
    soft::PcapOptions pcap_options;
    pcap_options.epoch_nanoseconds = os::UnixNanosecondsAtZero(loop_.Now());
    auto pcap = soft::PcapWriter::Create(loop_, absl::StrCat(options_.pcap, ".", getpid()), pcap_options);
    if (!pcap.ok()) return pcap.status();
    made->pcap = *std::move(pcap);
    made->tapped = std::make_unique<soft::TapFabric>(*fabric, *made->pcap, soft::TapFabric::Shows::kBoth);
    fabric = made->tapped.get();
  }
  const bool goes_down = options_.port_fault.any() && index == 0;
  if (options_.faults.any() || goes_down) {
    soft::FabricFaults faults = options_.faults;
    faults.seed = base::Random(faults.seed).Fork(index).Next();
    made->faulty = std::make_unique<soft::FaultyFabric>(*fabric, faults);
    fabric = made->faulty.get();
  }
  soft::DeviceOptions device_options;
  device_options.name = identities_[index].name;
  device_options.address = identities_[index].address;
  device_options.seed = os::SecretSeed();
  ProgramPages::TakeFaults();
  device_options.host_memory = &program_pages_;
  // A full ring reports that itself, and no other user's packets suffer.
  if (options_.shared_memory) device_options.congestion = soft::CongestionControl::kNone;
  auto nic = soft::OpenSoftDevice(loop_, *fabric, trace_, device_options);
  if (!nic.ok()) return nic.status();
  made->nic = *std::move(nic);
  made->device = std::make_unique<UserDevice>(identities_[index], *made->nic, loop_, failing_, &neighbours_);
  if (goes_down) made->outage = std::make_unique<PortOutage>(*made->device, *made->faulty, options_.port_fault);
  open_devices_[index] = made->device.get();
  devices_[index] = std::move(made);
  return absl::OkStatus();
}

void Kernel::SayCounters() {
  for (const std::unique_ptr<Device>& device : devices_) {
    if (device == nullptr) continue;
    const soft::DeviceCounters counters = device->nic->counters();
    const soft::QueuePairCounters& sums = counters.queue_pairs;
    std::string line =
        absl::StrCat(device->device->identity().name, " of process ", getpid(), ": sent ", sums.packets_sent,
                     " packets with ", base::FormatSize(sums.bytes_sent), ", received ", sums.packets_received,
                     " with ", base::FormatSize(sums.bytes_received), ", retransmitted ", sums.packets_retransmitted,
                     ", received damaged ", counters.dropped_corrupt);
    if (device->faulty != nullptr) {
      const soft::FaultCounters& faults = device->faulty->counters();
      absl::StrAppend(&line, "; of those sent, faults lost ", faults.lost, " and damaged ", faults.damaged);
      if (device->outage != nullptr)
        absl::StrAppend(&line, "; while the port was down, ", faults.while_down, " more were lost");
    }
    on_line_(line);
  }
  const RequestFault& fault = options_.request_fault;
  if (fault.number == 0) return;
  on_line_(absl::StrCat("request ", fault.number, " of process ", getpid(),
                        failing_.has_failed() ? " failed as asked for" : " was not posted: nothing failed"));
}

int Kernel::OpenDeviceHeld(size_t index) {
  if (departed_ || index >= devices_.size()) return ENODEV;
  if (devices_[index] != nullptr) return 0;
  const absl::Status made = MakeDevice(index);
  if (!made.ok()) trouble_ = absl::StrCat("RDMA device ", identities_[index].name, ": ", made.message());
  return ErrnoOf(made);
}

int Kernel::OpenDevice(size_t index, int* descriptor) {
  const Progress::Hold hold(*progress_);
  if (const int error = OpenDeviceHeld(index)) return error;
  std::unique_ptr<UserContext> context = UserContext::Open(*devices_[index]->device, on_channel_);
  if (context == nullptr) return ENOMEM;
  *descriptor = context->MakeDescriptor();
  if (*descriptor < 0) return EMFILE;
  contexts_[*descriptor] = std::move(context);
  return 0;
}

int Kernel::OpenManager(int* descriptor) {
  const Progress::Hold hold(*progress_);
  for (size_t index = 0; index < devices_.size(); ++index) {
    if (const int error = OpenDeviceHeld(index)) return error;
  }
  auto manager = std::make_unique<CmContext>(open_devices_, [this](int other) {
    const auto found = managers_.find(other);
    return found == managers_.end() ? nullptr : found->second.get();
  });
  *descriptor = manager->MakeDescriptor();
  if (*descriptor < 0) return EMFILE;
  managers_[*descriptor] = std::move(manager);
  return 0;
}

size_t Kernel::DeviceOf(int descriptor) {
  const Progress::Hold hold(*progress_);
  const auto context = contexts_.find(descriptor);
  return context == contexts_.end() ? 0 : context->second->device_index();
}

uint32_t Kernel::CompletionsIn(int descriptor, uint32_t handle) {
  const Progress::Hold hold(*progress_);
  const auto context = contexts_.find(descriptor);
  return context == contexts_.end() ? 0 : context->second->CompletionsIn(handle);
}

int Kernel::Write(int descriptor, const void* buffer, size_t size) {
  Command command;
  if (const int error = Command::Decode(buffer, size, &command)) return error;
  const int error = Run(descriptor, command);
  if (options_.explain) on_line_(absl::StrCat(identities_[DeviceOf(descriptor)].name, ": ", Explain(command, error)));
  return error;
}

int Kernel::Run(int descriptor, const Command& command) {
  if (const int error = UserContext::Prepare(command)) return error;
  if (!command.extended() && command.number() == IB_USER_VERBS_CMD_POST_SEND) {
    const Progress::Doorbell doorbell(*progress_);
    return RunHeld(descriptor, command);
  }
  int error = 0;
  {
    const Progress::Hold hold(*progress_);
    error = RunHeld(descriptor, command);
  }
  if (!command.extended() && command.number() == IB_USER_VERBS_CMD_REQ_NOTIFY_CQ) progress_->ExpectSleep();
  return error;
}

int Kernel::RunHeld(int descriptor, const Command& command) {
  const auto context = contexts_.find(descriptor);
  return context == contexts_.end() ? EIO : context->second->Execute(command);
}

// Only asking for an event may wait. A thread that asked before the channel was closed keeps
// waiting.
int Kernel::WriteToManager(int descriptor, const void* buffer, size_t size) {
  const bool asks = AsksForEvent(buffer, size);
  int error = RunManager(descriptor, buffer, size, /*asks_first=*/asks);
  while (error == EAGAIN && asks && (fcntl(descriptor, F_GETFL) & O_NONBLOCK) == 0) {
    error = WaitForEvent(descriptor);
    if (error == 0) error = RunManager(descriptor, buffer, size, /*asks_first=*/false);
  }
  if (error == EBADF && asks) WaitForTheEnd();
  if (options_.explain) ExplainToUser(buffer, size, error);
  return error;
}

int Kernel::RunManager(int descriptor, const void* buffer, size_t size, bool asks_first) {
  if (asks_first) event_takers_.Asks(descriptor);
  int error = EBADF;
  {
    const Progress::Hold hold(*progress_);
    const auto manager = managers_.find(descriptor);
    if (manager != managers_.end()) error = manager->second->Execute(buffer, size);
    if (error == 0 && AsksForEvent(buffer, size)) event_takers_.IsTold(descriptor);
  }
  if (NumberOf(buffer, size) == RDMA_USER_CM_CMD_DESTROY_ID) event_takers_.AwaitOthers(descriptor);
  return error;
}

void Kernel::ExplainToUser(const void* buffer, size_t size, int error) {
  on_line_(absl::StrCat("rdma_cm: ", ExplainManager(buffer, size, error)));
}

void Kernel::Close(int descriptor) {
  event_takers_.Forget(descriptor);
  const Progress::Hold hold(*progress_);
  managers_.erase(descriptor);
  contexts_.erase(descriptor);
  for (const auto& [number, context] : contexts_) context->OnClosed(descriptor);
}

bool Kernel::IsPort(int socket) const {
  if (soft::HasNicName(socket)) return true;
  sockaddr_storage name{};
  socklen_t length = sizeof(name);
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&name), &length) != 0) return false;
  if (name.ss_family != AF_INET && name.ss_family != AF_INET6) return false;
  const Address bound = soft::FromSocketAddress(name);
  for (const Identity& identity : identities_) {
    if (bound.ip == identity.address.ip && bound.port == soft::kRoceUdpPort) return true;
  }
  return false;
}

void Kernel::Poll() { progress_->Poll(); }

// No frame to clean up, see cancellable_sleep.h.
int Kernel::WaitForEvent(int descriptor) {
  const bool departed_before = departed_;
  const int error = progress_->WaitReadable(descriptor);
  if (departed_ && !departed_before) WaitForTheEnd();
  return error;
}

}  // namespace tokamak::verbs::kernel
