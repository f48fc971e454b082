#include "lib/daemon/daemon.h"

#include <fcntl.h>
#include <sys/random.h>

#include <algorithm>
#include <ctime>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "glog/logging.h"
#include "lib/base/units.h"

namespace tokamak::daemon {

namespace {

constexpr base::Duration kDrainStep = base::Milliseconds(20);
constexpr absl::Duration kTouchStep = absl::Seconds(1);  // between two words of how far it is
constexpr base::Duration kTouchLimit = base::Seconds(120);

// A later life of a node has a higher number, also after a restart of the machine: microseconds of the calendar.
uint64_t NewIncarnation() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000 + static_cast<uint64_t>(now.tv_nsec) / 1000;
}

// Daemons that are started at one moment draw generations that differ all the same.
base::Random UnlikeAnyOther() {
  uint64_t seed = 0;
  CHECK_EQ(getrandom(&seed, sizeof(seed), 0), static_cast<ssize_t>(sizeof(seed)));
  return base::Random(seed);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Daemon>> Daemon::Start(os::EpollLoop& loop, const DaemonOptions& options,
                                                      const std::function<bool()>& stop_asked) {
  auto daemon = std::unique_ptr<Daemon>(new Daemon(loop, options));
  if (absl::Status status = daemon->Open(stop_asked); !status.ok()) return status;
  return daemon;
}

absl::Status Daemon::Open(const std::function<bool()>& stop_asked) {
  incarnation_ = NewIncarnation();
  // What may be taken already is found out before the memory is touched, which takes seconds; peers find us only after that.
  if (absl::Status status = OpenDevices(); !status.ok()) return status;
  auto clients = ClientServer::Listen(loop_, options_.socket);
  if (!clients.ok()) return clients.status();
  clients_ = *std::move(clients);
  if (absl::Status status = OpenStore(); !status.ok()) return status;
  if (options_.prefault) {
    if (absl::Status status = TouchMemory(stop_asked); !status.ok()) return status;
  }
  if (absl::Status status = OpenTransport(); !status.ok()) return status;
  auto directory = OpenDirectory(loop_, *engines_->links().front(), options_.directory);
  if (!directory.ok()) return directory.status();
  directory_ = *std::move(directory);
  OpenNode();
  return ServeClients();
}

absl::Status Daemon::OpenDevices() {
  DeviceSettings settings;
  settings.detection = options_.detection;
  settings.seed = incarnation_;
  settings.pcap_path = options_.pcap;
  settings.connect_by = options_.connect_by;
  settings.address = options_.listen;
  settings.fabric = options_.fabric;
  auto rails = Rails::Open(options_.device, settings);
  if (!rails.ok()) return rails.status();
  rails_ = *std::move(rails);
  if (const std::string software = rails_->software(); options_.require_rdma && !software.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("--require-rdma: ", software, " is software; name an RDMA device or leave the flag out"));
  }
  return absl::OkStatus();
}

absl::Status Daemon::OpenStore() {
  os::SharedMemoryOptions memory_options;
  memory_options.huge_pages = options_.huge_pages;
  auto memory = os::SharedMemory::Create("tokamak", options_.memory, memory_options);
  if (!memory.ok()) return memory.status();
  memory_ = std::make_unique<os::SharedMemory>(*std::move(memory));
  store::Options store_options;
  store_options.cache = options_.cache;
  store_options.quota_bytes = options_.quota;
  store_options.random = UnlikeAnyOther();
  store_ = std::make_unique<store::Store>(memory_->bytes(), store_options, loop_, trace_);
  return absl::OkStatus();
}

absl::Status Daemon::TouchMemory(const std::function<bool()>& stop_asked) {
  const base::Time limit = loop_.Now() + kTouchLimit;
  size_t done = 0;
  while (done < memory_->size() && loop_.Now() < limit) {
    if (stop_asked()) return absl::CancelledError("stopped while it started");
    const auto reached = memory_->mapping().Prefault(done, kTouchStep);
    if (!reached.ok()) return reached.status();
    done = *reached;
    LOG_IF(INFO, done < memory_->size()) << "touching memory: " << base::FormatSize(done) << " of "
                                         << base::FormatSize(memory_->size());
  }
  LOG_IF(WARNING, done < memory_->size()) << "the rest of the memory is touched when it is first used, which is slower";
  return absl::OkStatus();
}

absl::Status Daemon::OpenTransport() {
  if (absl::Status status = rails_->Register(options_.registration, memory_->bytes()); !status.ok()) return status;
  EngineSettings settings;
  settings.count = options_.engines;
  settings.detection = options_.detection;
  settings.listen = options_.listen;
  settings.seed = incarnation_;
  settings.endpoint.policy = options_.policy;
  settings.endpoint.bulk_queue_pairs = options_.bulk_queue_pairs;
  settings.endpoint.reliability.ack_timeout = AckTimeout();
  auto engines = Engines::Start(loop_, rails_->all(), settings);
  if (!engines.ok()) return engines.status();
  engines_ = *std::move(engines);
  return absl::OkStatus();
}

base::Duration Daemon::AckTimeout() const {
  if (options_.ack_timeout.has_value()) return *options_.ack_timeout;
  base::Duration suitable;
  for (const transport::Rail& rail : rails_->all()) {
    suitable = std::max(suitable, transport::SuitableAckTimeout(rail.device.limits()));
  }
  return std::min(suitable, kMaxAckTimeout);
}

void Daemon::OpenNode() {
  node::NodeOptions node_options;
  node_options.id = options_.name;
  node_options.incarnation = incarnation_;
  node_options.device = options_.device;
  node_ = std::make_unique<node::Node>(loop_, *store_, directory_->directory(), engines_->links(),
                                       base::Random(incarnation_), node_options);
  directory_->Serve(node_->services());
  node_->Start([](const absl::Status& status) {
    LOG_IF(WARNING, !status.ok()) << "the directory is out of reach, trying again: " << status;
  });
}

absl::Status Daemon::ServeClients() {
  session_context_.reset(new SessionContext{loop_, *node_, memory_->size(), options_.device,
                                            [this](std::vector<client::NumberEntry>& numbers) {
                                              rails_->AddNumbers(numbers);
                                              engines_->AddNumbers(numbers);
                                            }});
  os::FileDescriptor read_only(
      open(absl::StrCat("/proc/self/fd/", memory_->descriptor()).c_str(), O_RDONLY | O_CLOEXEC));
  if (!read_only.valid())
    return absl::InternalError("cannot open the store's memory for reading only: is /proc mounted?");
  clients_->Serve(*session_context_, memory_->descriptor(), std::move(read_only));
  return absl::OkStatus();
}

Daemon::~Daemon() {
  clients_.reset();
  if (engines_ != nullptr) engines_->Stop();  // no peer touches the store any more; then those who use the links may go
  node_.reset();
  directory_.reset();
}

void Daemon::Drain(std::function<void()> done) {
  drained_ = std::move(done);
  drain_until_ = loop_.Now() + options_.drain;
  clients_->StopListening();
  node_->Leave([this](const absl::Status& status) {
    LOG_IF(WARNING, !status.ok()) << "could not leave the directory: " << status;
    CheckDrained();
  });
}

void Daemon::CheckDrained() {
  if (loop_.Now() >= drain_until_) return drained_();
  if (node_->pins_of_peers() == 0) return SettleEngines();
  drain_timer_ = loop_.RunAfter(kDrainStep, [this] { CheckDrained(); });
}

// What was copied into messages is pinned no more, but the peers may not have it yet.
void Daemon::SettleEngines() {
  drain_timer_ = loop_.RunAt(drain_until_, [this] { drained_(); });
  const std::vector<node::EngineLink*> links = engines_->links();
  engines_to_settle_ = links.size();
  for (node::EngineLink* link : links) {
    link->Settle([this] {
      if (--engines_to_settle_ > 0 || !drain_timer_.armed()) return;
      drain_timer_.Cancel();
      drained_();
    });
  }
}

}  // namespace tokamak::daemon
