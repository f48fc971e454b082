// Traffic carries out a scenario's transfers: a software NIC at every interface, reliable
// connections, and requests at their time.
//
// A message has a connection to itself, made on demand, without a connection manager's messages,
// and reused. Puts and gets go to the hosts' nodes, on the same NICs.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/base/event_loop.h"
#include "lib/base/trace.h"
#include "lib/verbs/soft/device.h"
#include "lib/verbs/verbs.h"
#include "sim/fabric/switched_fabric.h"
#include "sim/scenario/load/payload_memory.h"
#include "sim/scenario/load/store_hosts.h"
#include "sim/scenario/load/store_report.h"
#include "sim/scenario/scenario.h"

namespace tokamak::sim {

class Traffic final {
 public:
  enum class State : uint8_t {
    kWaiting,  // for its time, or another transfer
    kRunning,
    kFinished,
    kFailed,   // see `status`
    kBlocked,  // it waited for one that failed
  };

  struct Progress {
    State state = State::kWaiting;
    std::string status;
    base::Time start;
    base::Time finish;
    StoreReport report;
  };

  // One workload's bytes sent so far; of gets, arrived.
  struct GroupCounters {
    uint64_t bytes_sent = 0;  // payload, with repetitions
    uint32_t running = 0;
  };

  // `loop` (of all events), fabric and scenario must outlive it. Errors: those of OpenSoftDevice.
  static absl::StatusOr<std::unique_ptr<Traffic>> Open(base::EventLoop& loop, SwitchedFabric& fabric,
                                                       const Scenario& scenario);

  verbs::Device& device(uint32_t interface) { return *nics_[interface].device; }

  // Begins the scenario's time. `stores`, null without any, must outlive the transfers.
  void Start(StoreHosts* stores);

  bool over() const { return ended_ == scenario_.transfers.size(); }

  const std::vector<Progress>& progress() const { return progress_; }
  std::vector<GroupCounters> Groups() const;
  uint64_t bytes_finished() const { return bytes_finished_; }
  verbs::soft::DeviceCounters counters() const;  // of all NICs, without `rate`

  // True if payload arrived as sent, or is phantom.
  bool PayloadIsRight() const { return memory_.Right(); }

 private:
  struct Nic {
    std::unique_ptr<verbs::soft::SoftDevice> device;
    std::unique_ptr<verbs::ProtectionDomain> domain;
    std::unique_ptr<verbs::CompletionQueue> completions;
    std::unique_ptr<verbs::MemoryRegion> source;
    std::unique_ptr<verbs::MemoryRegion> sink;
    std::vector<std::unique_ptr<verbs::QueuePair>> queue_pairs;
  };

  // Bytes go from the first to the second, whichever asks.
  struct Connection {
    Nic* from;
    Nic* to;
    verbs::QueuePair* at_from;
    verbs::QueuePair* at_to;
    uint64_t sent_before = 0;  // by the sender, before this transfer
  };

  Traffic(base::EventLoop& loop, SwitchedFabric& fabric, const Scenario& scenario);
  absl::Status OpenNic(const verbs::Address& address, uint32_t number, uint32_t transfers);
  void StartDue();
  void Begin(uint32_t number);
  void Post(uint32_t number, const Connection& connection);
  void PostReceive(uint32_t number, const Connection& connection);
  void Poll(Nic* nic);
  void BeginMessage(uint32_t number);
  void EndMessage(uint32_t number, verbs::CompletionStatus status);
  void EndThroughStore(uint32_t number, const StoreReport& report);
  void End(uint32_t number, const std::string& trouble);
  void Block(uint32_t number);
  uint64_t BytesSent(const Connection& connection) const;
  Connection* Connect(uint32_t from, uint32_t to);
  verbs::QueuePair* MakeQueuePair(Nic* nic);
  void Walk(verbs::QueuePair* queue_pair, const Nic& peer, const verbs::QueuePair& other, uint32_t send,
            uint32_t receive) const;

  base::EventLoop& loop_;
  SwitchedFabric& fabric_;
  const Scenario& scenario_;
  base::NoTrace trace_;
  PayloadMemory memory_;
  std::deque<Nic> nics_;
  std::deque<Connection> connections_;
  std::map<std::pair<uint32_t, uint32_t>, std::vector<Connection*>> idle_;

  StoreHosts* stores_ = nullptr;
  base::Time begin_;
  std::vector<uint32_t> by_start_;  // transfers that wait only for their time
  size_t next_start_ = 0;
  base::Timer start_timer_;
  std::deque<base::Timer> delayed_;  // after another transfer, waiting for their time
  std::vector<std::vector<uint32_t>> followers_;
  std::vector<Progress> progress_;
  std::vector<Connection*> used_;  // by running transfer
  std::vector<uint32_t> running_;
  std::vector<uint64_t> group_sent_;  // by ended transfers
  size_t ended_ = 0;
  uint64_t bytes_finished_ = 0;
};

}  // namespace tokamak::sim
