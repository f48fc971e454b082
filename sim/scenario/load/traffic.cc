#include "sim/scenario/load/traffic.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/check.h"

namespace tokamak::sim {
namespace {

using verbs::Opcode;

// Marks receives, which nobody waits for.
constexpr uint64_t kReceive = uint64_t{1} << 32;

uint32_t Largest(const std::vector<Transfer>& transfers) {
  uint32_t largest = 1;
  for (const Transfer& one : transfers) {
    if (one.way == Transfer::Way::kMessage) largest = std::max(largest, one.bytes);
  }
  return largest;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Traffic>> Traffic::Open(base::EventLoop& loop, SwitchedFabric& fabric,
                                                       const Scenario& scenario) {
  std::unique_ptr<Traffic> traffic(new Traffic(loop, fabric, scenario));
  std::vector<uint32_t> transfers(fabric.interfaces());
  for (const Transfer& one : scenario.transfers) {
    if (one.way != Transfer::Way::kMessage) continue;
    ++transfers[one.from];
    ++transfers[one.to];
  }
  uint32_t number = 0;
  for (const Topology::Host& host : scenario.topology.hosts) {
    for (const verbs::Address& address : host.addresses) {
      if (absl::Status s = traffic->OpenNic(address, number, transfers[number]); !s.ok()) {
        return absl::Status(s.code(), absl::StrCat(host.name, ": ", s.message()));
      }
      ++number;
    }
  }
  return traffic;
}

Traffic::Traffic(base::EventLoop& loop, SwitchedFabric& fabric, const Scenario& scenario)
    : loop_(loop),
      fabric_(fabric),
      scenario_(scenario),
      memory_(Largest(scenario.transfers), scenario.phantom),
      followers_(scenario.transfers.size()),
      progress_(scenario.transfers.size()),
      used_(scenario.transfers.size()),
      group_sent_(scenario.groups.size()) {}

absl::Status Traffic::OpenNic(const verbs::Address& address, uint32_t number, uint32_t transfers) {
  const NicSettings& settings = scenario_.nic;
  verbs::soft::DeviceOptions options;
  options.address = address;
  options.max_mtu = settings.mtu;
  options.seed = scenario_.seed * 1'000'003 + number;
  options.congestion = settings.congestion;
  options.dcqcn = settings.dcqcn;
  options.window_packets = settings.window;
  options.nic_packets = verbs::soft::kUnboundedWindow;  // the scenario's window bounds
  options.ack_every = settings.ack_every;
  options.selective_repeat = settings.selective_repeat;
  options.batch_packets = 16;
  options.pause = base::Duration();
  options.dscp = static_cast<uint8_t>(settings.dscp);
  auto device = verbs::soft::OpenSoftDevice(loop_, fabric_, trace_, options);
  if (!device.ok()) return device.status();
  Nic& nic = nics_.emplace_back();
  nic.device = *std::move(device);
  auto domain = nic.device->CreateProtectionDomain();
  if (!domain.ok()) return domain.status();
  nic.domain = *std::move(domain);
  const uint32_t depth = std::min(2 * transfers + 16, nic.device->limits().max_completions);
  auto completions = nic.device->CreateCompletionQueue(loop_, depth, [this, &nic] { Poll(&nic); });
  if (!completions.ok()) return completions.status();
  nic.completions = *std::move(completions);
  nic.completions->RequestNotify(false);
  const auto access = [this](uint32_t rights) { return static_cast<verbs::Access>(rights | memory_.flags()); };
  auto source = nic.domain->RegisterMemory(memory_.source(), access(verbs::kRemoteRead));
  if (!source.ok()) return source.status();
  nic.source = *std::move(source);
  auto sink = nic.domain->RegisterMemory(memory_.sink(), access(verbs::kLocalWrite | verbs::kRemoteWrite));
  if (!sink.ok()) return sink.status();
  nic.sink = *std::move(sink);
  return absl::OkStatus();
}

void Traffic::Start(StoreHosts* stores) {
  stores_ = stores;
  begin_ = loop_.Now();
  const std::vector<Transfer>& transfers = scenario_.transfers;
  for (uint32_t i = 0; i < transfers.size(); ++i) {
    if (transfers[i].after) {
      followers_[*transfers[i].after].push_back(i);
    } else {
      by_start_.push_back(i);
    }
  }
  std::stable_sort(by_start_.begin(), by_start_.end(),
                   [&](uint32_t a, uint32_t b) { return transfers[a].start < transfers[b].start; });
  StartDue();
}

void Traffic::StartDue() {
  while (next_start_ < by_start_.size()) {
    const base::Time start = begin_ + scenario_.transfers[by_start_[next_start_]].start;
    if (start > loop_.Now()) {
      start_timer_ = loop_.RunAt(start, [this] { StartDue(); });
      return;
    }
    Begin(by_start_[next_start_++]);
  }
}

void Traffic::Begin(uint32_t number) {
  const Transfer& transfer = scenario_.transfers[number];
  running_.push_back(number);
  progress_[number].state = State::kRunning;
  progress_[number].start = loop_.Now();
  if (transfer.way == Transfer::Way::kMessage) return BeginMessage(number);
  stores_->Begin(transfer, [this, number](const StoreReport& report) { EndThroughStore(number, report); });
}

void Traffic::BeginMessage(uint32_t number) {
  const Transfer& transfer = scenario_.transfers[number];
  std::vector<Connection*>& idle = idle_[{transfer.from, transfer.to}];
  if (idle.empty()) idle.push_back(Connect(transfer.from, transfer.to));
  Connection* connection = idle.back();
  idle.pop_back();
  connection->sent_before = BytesSent(*connection);
  used_[number] = connection;
  if (transfer.verb == Opcode::kSend) PostReceive(number, *connection);
  Post(number, *connection);
}

void Traffic::Post(uint32_t number, const Connection& connection) {
  const Transfer& transfer = scenario_.transfers[number];
  const bool read = transfer.verb == Opcode::kRead;
  const verbs::MemoryRegion& local = read ? *connection.to->sink : *connection.from->source;
  const verbs::MemoryRegion& remote = read ? *connection.from->source : *connection.to->sink;
  const verbs::Sge sge{local.address(), transfer.bytes, local.lkey()};
  verbs::SendRequest request;
  request.id = number;
  request.opcode = transfer.verb;
  request.flags = verbs::kSignaled;
  request.sges = absl::MakeConstSpan(&sge, 1);
  if (transfer.verb != Opcode::kSend) {
    request.remote_address = reinterpret_cast<uint64_t>(remote.address());
    request.rkey = remote.rkey();
  }
  const verbs::PostResult result =
      (read ? connection.at_to : connection.at_from)->PostSend(absl::MakeConstSpan(&request, 1));
  CHECK(result.ok()) << result.status;
}

void Traffic::PostReceive(uint32_t number, const Connection& connection) {
  const verbs::MemoryRegion& sink = *connection.to->sink;
  const verbs::Sge sge{sink.address(), scenario_.transfers[number].bytes, sink.lkey()};
  verbs::ReceiveRequest request;
  request.id = kReceive | number;
  request.sges = absl::MakeConstSpan(&sge, 1);
  const verbs::PostResult result = connection.at_to->PostReceive(absl::MakeConstSpan(&request, 1));
  CHECK(result.ok()) << result.status;
}

void Traffic::Poll(Nic* nic) {
  verbs::Completion some[16];
  nic->completions->RequestNotify(false);
  while (const size_t got = nic->completions->Poll(absl::MakeSpan(some))) {
    for (size_t i = 0; i < got; ++i) {
      if ((some[i].id & kReceive) == 0) EndMessage(static_cast<uint32_t>(some[i].id), some[i].status);
    }
  }
}

void Traffic::EndMessage(uint32_t number, verbs::CompletionStatus status) {
  const Transfer& transfer = scenario_.transfers[number];
  Connection* connection = std::exchange(used_[number], nullptr);
  group_sent_[transfer.group] += BytesSent(*connection) - connection->sent_before;
  const bool well = status == verbs::CompletionStatus::kSuccess;
  if (well) {
    memory_.Expect(transfer.bytes);
    idle_[{transfer.from, transfer.to}].push_back(connection);
  }
  End(number, well ? "" : verbs::ToString(status));
}

void Traffic::EndThroughStore(uint32_t number, const StoreReport& report) {
  const Transfer& transfer = scenario_.transfers[number];
  progress_[number].report = report;
  if (report.holder) group_sent_[transfer.group] += transfer.bytes;
  End(number, report.status.ok() ? "" : absl::StatusCodeToString(report.status.code()));
}

void Traffic::End(uint32_t number, const std::string& trouble) {
  Progress& progress = progress_[number];
  progress.state = trouble.empty() ? State::kFinished : State::kFailed;
  progress.status = trouble;
  progress.finish = loop_.Now();
  ++ended_;
  running_.erase(std::find(running_.begin(), running_.end(), number));
  if (!trouble.empty()) {
    for (uint32_t follower : followers_[number]) Block(follower);
    return;
  }
  bytes_finished_ += scenario_.transfers[number].bytes;
  for (uint32_t follower : followers_[number]) {
    const base::Time start = begin_ + scenario_.transfers[follower].start;
    if (start <= loop_.Now()) {
      Begin(follower);
    } else {
      delayed_.push_back(loop_.RunAt(start, [this, follower] { Begin(follower); }));
    }
  }
}

void Traffic::Block(uint32_t number) {
  std::vector<uint32_t> blocked = {number};
  while (!blocked.empty()) {
    const uint32_t one = blocked.back();
    blocked.pop_back();
    progress_[one].state = State::kBlocked;
    ++ended_;
    blocked.insert(blocked.end(), followers_[one].begin(), followers_[one].end());
  }
}

std::vector<Traffic::GroupCounters> Traffic::Groups() const {
  std::vector<GroupCounters> groups(group_sent_.size());
  for (size_t i = 0; i < groups.size(); ++i) groups[i].bytes_sent = group_sent_[i];
  for (uint32_t number : running_) {
    GroupCounters& group = groups[scenario_.transfers[number].group];
    if (used_[number] != nullptr) group.bytes_sent += BytesSent(*used_[number]) - used_[number]->sent_before;
    ++group.running;
  }
  return groups;
}

verbs::soft::DeviceCounters Traffic::counters() const {
  verbs::soft::DeviceCounters sum;
  for (const Nic& nic : nics_) sum.queue_pairs.Add(nic.device->counters().queue_pairs);
  return sum;
}

uint64_t Traffic::BytesSent(const Connection& connection) const {
  return connection.from->device->queue_pair_counters(connection.at_from->number())->bytes_sent;
}

Traffic::Connection* Traffic::Connect(uint32_t from, uint32_t to) {
  Connection& connection = connections_.emplace_back();
  connection.from = &nics_[from];
  connection.to = &nics_[to];
  connection.at_from = MakeQueuePair(connection.from);
  connection.at_to = MakeQueuePair(connection.to);
  Walk(connection.at_from, *connection.to, *connection.at_to, 100, 200);
  Walk(connection.at_to, *connection.from, *connection.at_from, 200, 100);
  return &connection;
}

verbs::QueuePair* Traffic::MakeQueuePair(Nic* nic) {
  verbs::QueuePairOptions options;
  options.send_queue = options.receive_queue = nic->completions.get();
  options.max_send_requests = 2;
  options.max_receive_requests = 2;
  options.remote_access = static_cast<verbs::Access>(verbs::kRemoteRead | verbs::kRemoteWrite);
  auto queue_pair = nic->domain->CreateQueuePair(options);
  CHECK(queue_pair.ok()) << queue_pair.status();
  nic->queue_pairs.push_back(*std::move(queue_pair));
  return nic->queue_pairs.back().get();
}

void Traffic::Walk(verbs::QueuePair* queue_pair, const Nic& peer, const verbs::QueuePair& other, uint32_t send,
                   uint32_t receive) const {
  verbs::QueuePairAttributes attributes;
  attributes.peer = peer.device->address();
  attributes.peer_number = other.number();
  attributes.path_mtu = scenario_.nic.mtu;
  attributes.reliability.ack_timeout = scenario_.nic.ack_timeout;
  attributes.reliability.retry_count = static_cast<uint8_t>(scenario_.nic.retries);
  attributes.send_psn = send;
  attributes.receive_psn = receive;
  CHECK(queue_pair->Modify(verbs::QueuePairState::kReadyToReceive, attributes).ok());
  CHECK(queue_pair->Modify(verbs::QueuePairState::kReadyToSend, attributes).ok());
}

}  // namespace tokamak::sim
