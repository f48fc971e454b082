#include "lib/daemon/daemon.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "lib/base/log.h"
#include "lib/base/units.h"
#include "lib/client/protocol/protocol.h"
#include "lib/daemon/clients/numbers.h"
#include "lib/daemon/devices/engine_thread.h"
#include "lib/daemon/devices/ibv_device.h"
#include "lib/daemon/directory_host.h"
#include "lib/daemon/flags/secret_file.h"
#include "lib/daemon/memory/store_memory.h"
#include "lib/daemon/watch/page_address.h"
#include "lib/os/calendar.h"
#include "lib/os/processor.h"
#include "lib/os/secret_seed.h"
#include "lib/os/sockets/host_name.h"
#include "lib/os/thread.h"

namespace tokamak::daemon {

namespace {

constexpr absl::Duration kTouchStep = absl::Seconds(1);  // between progress lines
constexpr base::Duration kTouchLimit = base::Seconds(120);

static_assert(kLongestCounterName + sizeof("rail0_") <= client::kMaxName, "a device's counters fit into a reply");
static_assert(transport::kMaxRails <= 10, "a rail's number is one digit");

void LogPeerChange(const directory::NodeId& peer, node::PeerChange change) {
  switch (change) {
    case node::PeerChange::kFails:
      LOG(WARNING) << "node " << peer << " does not answer: pulls from it fail, and others are asked meanwhile";
      return;
    case node::PeerChange::kAnswers:
      LOG(INFO) << "node " << peer << " answers again";
      return;
    case node::PeerChange::kSilent:
      LOG(WARNING) << "node " << peer << " is silent: the directory has not heard of it for longer than its lease, and "
                   << "gives it up unless it comes back within its grace";
      return;
    case node::PeerChange::kBack:
      LOG(INFO) << "node " << peer << " is back";
      return;
    case node::PeerChange::kRestarted:
      LOG(INFO) << "node " << peer << " was restarted";
      return;
    case node::PeerChange::kLeft:
      LOG(INFO) << "node " << peer << " has left the cluster";
      return;
  }
}

// Grows from life to life, across reboots: calendar microseconds.
uint64_t NewIncarnation() { return static_cast<uint64_t>(os::UnixNanoseconds()) / 1000; }

}  // namespace

absl::StatusOr<std::unique_ptr<Daemon>> Daemon::Start(os::EpollLoop& loop, const DaemonOptions& options,
                                                      const std::function<bool()>& stop_asked) {
  auto daemon = std::unique_ptr<Daemon>(new Daemon(loop, options));
  if (absl::Status status = daemon->Open(stop_asked); !status.ok()) return status;
  LOG(INFO) << daemon->pages_;
  return daemon;
}

absl::Status Daemon::Open(const std::function<bool()>& stop_asked) {
  incarnation_ = NewIncarnation();
  began_ = loop_.Now();
  if (absl::Status status = ReadSecrets(); !status.ok()) return status;
  if (!options_.trace.empty()) {
    auto trace = TraceFile::Create(options_.trace);
    if (!trace.ok()) return trace.status();
    trace_ = *std::move(trace);
  }
  // Devices and socket first: conflicts show before touching memory, which takes seconds; peers
  // find us only after.
  if (absl::Status status = OpenDevices(); !status.ok()) return status;
  auto clients = ClientServer::Listen(loop_, options_.socket, {options_.socket_access, {}, kHelloDeadline});
  if (!clients.ok()) return clients.status();
  clients_ = *std::move(clients);
  if (absl::Status status = ServeHttp(); !status.ok()) return status;
  if (absl::Status status = OpenMemory(stop_asked); !status.ok()) return status;
  if (absl::Status status = OpenMachine(); !status.ok()) return status;
  return ServeClients();
}

absl::Status Daemon::ReadSecrets() {
  if (options_.peers.secret_file.empty()) return absl::OkStatus();
  auto secrets = ReadSecretFile(options_.peers.secret_file);
  if (!secrets.ok()) return secrets.status();
  secrets_ = *std::move(secrets);
  LOG(INFO) << "cluster secret " << secrets_->first().id().ToString()
            << (secrets_->size() > 1 ? absl::StrCat(", also valid ", secrets_->at(1).id().ToString()) : "");
  return absl::OkStatus();
}

transport::PeerSecurity Daemon::Security() const {
  transport::PeerSecurity security;
  security.secrets = secrets_;
  security.seals = options_.peers.encrypts;
  security.aes = os::ProcessorHasAes();
  security.draw = os::DrawSecretBytes;
  return security;
}

absl::Status Daemon::OpenDevices() {
  DeviceSettings settings;
  settings.loop = &loop_;
  settings.bulk = options_.engines > 0;
  settings.detection = options_.detection;
  settings.pcap_path = options_.pcap;
  settings.congestion = options_.congestion;
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

absl::Status Daemon::OpenMemory(const std::function<bool()>& stop_asked) {
  TouchMemory touch;
  if (options_.prefault) touch = [&](const os::SharedMemory& memory) { return Touch(memory, stop_asked); };
  auto store = OpenStoreMemory(options_.memory, options_.huge_pages, touch);
  if (!store.ok()) return store.status();
  memory_ = std::make_unique<os::SharedMemory>(std::move(store->memory));
  pages_ = std::move(store->pages);
  return absl::OkStatus();
}

absl::Status Daemon::Touch(const os::SharedMemory& memory, const std::function<bool()>& stop_asked) {
  // Huge pages are certain only once touched; and few.
  const bool to_the_end = memory.page_size() > static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const base::Time limit = loop_.Now() + kTouchLimit;
  size_t done = 0;
  while (done < memory.size() && (to_the_end || loop_.Now() < limit)) {
    if (stop_asked()) return absl::CancelledError("stopped while it started");
    const auto reached = memory.mapping().Prefault(done, kTouchStep);
    if (!reached.ok()) return reached.status();
    done = *reached;
    LOG_IF(INFO, done < memory.size()) << "touching memory: " << base::FormatSize(done) << " of "
                                       << base::FormatSize(memory.size());
  }
  LOG_IF(WARNING, done < memory.size()) << "the rest of the memory is touched when it is first used, which is slower";
  return absl::OkStatus();
}

absl::Status Daemon::OpenMachine() {
  if (absl::Status status = rails_->Register(options_.registration, memory_->bytes()); !status.ok()) return status;
  node::MachineOptions machine;
  machine.node.id = options_.name;
  machine.node.incarnation = incarnation_;
  machine.node.device = options_.device;
  machine.node.peers.on_change = [name = options_.name](const directory::NodeId& peer, node::PeerChange change) {
    if (peer != name) LogPeerChange(peer, change);
  };
  machine.node.peers.watch_every = options_.lease * 3 / 10;
  machine.node.peers.believe_left = options_.lease;
  machine.node.membership.lease = options_.lease;
  machine.node.membership.grace = options_.grace;
  machine.node.membership.renew = options_.lease * 3 / 10;
  machine.node.membership.verify_every = options_.lease * 3;
  machine.store.cache = options_.cache;
  machine.store.quota_bytes = options_.quota;
  machine.listen = options_.listen;
  machine.seed = os::SecretSeed();
  machine.endpoint.security = Security();
  machine.endpoint.policy = TransferPolicy();
  machine.endpoint.adaptive_policy = options_.policy.adaptive;
  machine.endpoint.bulk_queue_pairs = options_.bulk_queue_pairs;
  machine.endpoint.chunk_size = options_.chunk_size;
  machine.endpoint.chunks_in_flight = options_.chunks_in_flight;
  machine.endpoint.reliability.ack_timeout = AckTimeout();
  machine.endpoint.measures_ack_timeout = !options_.ack_timeout.has_value();
  std::vector<std::unique_ptr<node::EngineLoop>> engines;
  for (uint32_t i = 0; i < options_.engines; ++i) {
    engines.push_back(std::make_unique<EngineThread>(i, rails_->Place(i), options_.detection));
  }
  const std::vector<transport::Rail> rails = rails_->all();
  const std::vector<transport::Rail> bulk_rails = rails_->bulk();
  auto assembled =
      node::Machine::Assemble({loop_, std::move(engines), memory_->bytes(), rails, bulk_rails,
                               [this](node::Engine& engine, base::Random random) {
                                 return OpenDirectory(loop_, engine, options_.directory, options_.lease, random);
                               },
                               trace_ == nullptr ? static_cast<base::Trace&>(no_trace_) : trace_->log()},
                              machine);
  if (!assembled.ok()) return assembled.status();
  machine_ = *std::move(assembled);
  LOG(INFO) << "policy: " << (options_.policy.adaptive ? "adaptive, begins with " : "")
            << machine.endpoint.policy.ToString() << ", " << options_.policy.origin;
  machine_->node().SayNumbers([this] { return SayNumbers(); });
  standing_ = absl::UnavailableError("the directory has not answered yet");
  machine_->Start([this](const absl::Status& status) { Answered(status); });
  return absl::OkStatus();
}

void Daemon::OnStanding(std::function<void(const absl::Status&)> told) {
  on_standing_ = std::move(told);
  patience_ = loop_.RunAfter(kJoinPatience, [this] { on_standing_(standing_); });
}

void Daemon::Answered(const absl::Status& status) {
  standing_ = status;
  if (!status.ok() && !absl::IsAlreadyExists(status)) return;
  patience_.Cancel();
  if (on_standing_ != nullptr) on_standing_(status);
}

transport::Policy Daemon::TransferPolicy() const {
  transport::DeviceKind kind = transport::DeviceKind::kHardware;
  for (const transport::Rail& rail : rails_->all()) {
    kind = std::min(kind, transport::KindOf(rail.device.is_rdma(), rail.device.limits()));
  }
  return options_.policy.table.value_or(transport::Policy::BuiltIn(kind));
}

base::Duration Daemon::AckTimeout() const {
  if (options_.ack_timeout.has_value()) return *options_.ack_timeout;
  base::Duration suitable;
  for (const transport::Rail& rail : rails_->all()) {
    suitable = std::max(suitable, transport::SuitableAckTimeout(rail.device.limits()));
  }
  return std::min(suitable, kMaxAckTimeout);
}

absl::Status Daemon::ServeClients() {
  session_context_.reset(new SessionContext{loop_, machine_->node(), memory_->size(), options_.device,
                                            [this] { return Snapshot(); },
                                            trace_ == nullptr ? nullptr : &trace_->log()});
  os::FileDescriptor read_only(
      open(absl::StrCat("/proc/self/fd/", memory_->descriptor()).c_str(), O_RDONLY | O_CLOEXEC));
  if (!read_only.valid())
    return absl::InternalError("cannot open the store's memory for reading only: is /proc mounted?");
  clients_->Serve(*session_context_, memory_->descriptor(), std::move(read_only));
  return absl::OkStatus();
}

std::shared_ptr<const HttpHosts> Daemon::OwnHosts() const {
  auto hosts = std::make_shared<HttpHosts>();
  for (const std::string& name : options_.http_hosts) hosts->Add(name);
  const std::string own = os::HostName();
  hosts->Add(own);
  hosts->Add(own.substr(0, own.find('.')));
  // A resolver may take seconds, and cannot be stopped.
  os::StartThread({"host name"}, [hosts] { hosts->Add(os::WholeHostName()); }).detach();
  return hosts;
}

// Requests wait for the loop to run.
absl::Status Daemon::ServeHttp() {
  if (!options_.http.has_value()) return absl::OkStatus();
  desk_ = std::make_unique<LoopDesk>(loop_);
  site_ = std::make_unique<StatusSite>(
      *desk_,
      StatusSite::Questions{
          [this] { return Snapshot(); },
          [this](node::ClusterView::Callback done) { return node().LookAtCluster(std::move(done)); },
          [this](HotObjects::Done done) { return HotObjects::Find(loop_, machine_->store(), std::move(done)); }});
  auto http =
      HttpServer::Start(*options_.http, OwnHosts(), [this](absl::string_view path) { return site_->Get(path); });
  if (!http.ok()) return http.status();
  http_ = *std::move(http);
  LOG(INFO) << "metrics, health and the page of the cluster: " << http_->url();
  return absl::OkStatus();
}

NodeSnapshot Daemon::SnapshotWithoutDevices() const {
  NodeSnapshot snapshot = SnapshotOf(machine_->node());
  static constexpr const char* kDirectories[] = {"serve", "tokd", "redis"};
  snapshot.directory_kind = kDirectories[static_cast<size_t>(options_.directory.kind)];
  snapshot.uptime = loop_.Now() - began_;
  snapshot.draining = draining_;
  snapshot.clients = clients_->clients();
  snapshot.departed_programs = clients_->departed();
  snapshot.client_counters = clients_->counters();
  snapshot.client_memory = clients_->client_memory();
  snapshot.loop_waits = loop_.waits();
  snapshot.store_page_bytes = memory_->page_size();
  for (size_t i = 0; i < machine_->engines(); ++i) {
    const transport::Endpoint* endpoint = machine_->endpoint(i);
    if (endpoint != nullptr) snapshot.engines.push_back(endpoint->counters());
  }
  snapshot.rails.resize(rails_->all().size());
  return snapshot;
}

NodeSnapshot Daemon::Snapshot() const {
  NodeSnapshot snapshot = SnapshotWithoutDevices();
  snapshot.rails = rails_->NumbersOfEach();
  return snapshot;
}

node::NodeNumbers Daemon::SayNumbers() const {
  node::NodeNumbers own;
  if (http_ != nullptr) own.page = PageForOthers(http_->address(), machine_->engine(0).address());
  own.numbers = NumbersForOthers(SnapshotWithoutDevices());
  return own;
}

Daemon::~Daemon() {
  if (desk_ != nullptr) desk_->Close();
  http_.reset();
  evacuation_.reset();
  clients_.reset();
  machine_.reset();
}

void Daemon::Reload(const DaemonOptions& options) {
  options_.drain = options.drain;
  options_.evacuate = options.evacuate;
  options_.quota = options.quota;
  machine_->store().SetQuota(options.quota);
  if (absl::Status status = ReadSecrets(); !status.ok()) {
    LOG(ERROR) << "reload: the secrets of before stay valid: " << status.message();
  } else if (secrets_ != nullptr) {
    machine_->ForEachEndpoint([this](transport::Endpoint& endpoint) { endpoint.SetSecrets(secrets_); });
  }
}

void Daemon::Drain(std::function<void()> done) {
  draining_ = true;
  clients_->StopListening();
  if (!options_.evacuate) {
    const store::Statistics now = machine_->store().statistics();
    LOG_IF(WARNING, now.kept_objects > 0)
        << now.kept_objects << (now.kept_objects == 1 ? " object (" : " objects (") << base::FormatSize(now.kept_bytes)
        << ") put on this node: what no other node has copied is gone with it; --evacuate hands all over first";
    return machine_->Drain(options_.drain, std::move(done));
  }
  const auto say = [](const char* what, const node::EvacuationReport& report) {
    const bool some_wait = report.left_objects == 0 && !report.trouble.ok();
    LOG(INFO) << what << " " << report.objects << " objects (" << base::FormatSize(report.bytes) << ") to other nodes"
              << (some_wait ? absl::StrCat("; still here: ", report.trouble.message()) : "");
  };
  evacuation_ = machine_->node().Evacuate(
      options_.drain, [say](const node::EvacuationReport& report) { say("evacuating: handed over", report); },
      [this, say, done = std::move(done)](const node::EvacuationReport& report) {
        say("evacuated: handed over", report);
        LOG_IF(ERROR, report.left_objects > 0)
            << report.left_objects << " objects (" << base::FormatSize(report.left_bytes)
            << ") that were put here could not be saved: " << report.trouble.message() << "; more time: --drain";
        machine_->Drain(options_.drain, done);
      });
}

}  // namespace tokamak::daemon
