// verbs::ConnectionManager over librdmacm, the kernel's RDMA connection manager: InfiniBand, RoCE
// and iWARP.
//
// Our queue pairs exist before their connection, so librdmacm gets only their numbers. On
// InfiniBand and RoCE we walk them by its attributes (rdma_init_qp_attr), with path MTU, time-outs
// and retries of our own; on iWARP the kernel walks them.
//
//   active    resolve address (from our device's own), traffic class if asked for, resolve route,
//             connect;
//             the answer: walk to ReadyToSend, rdma_establish, kEstablished
//   passive   request; Accept: walk to ReadyToSend, rdma_accept;
//             RTU, or the first data: kEstablished
//   end       either side's disconnect, a lost device: to Error
//
// The active side hears of the connection first and may send at once. Every attempt ends by its own
// deadline, whatever the kernel's are. The kernel repeats a lost request after some 4 s, so a
// shorter deadline allows for no loss.
//
// iWARP: the passive side's answer is the last word, so its connection may come up for a peer that
// has given up, and is disconnected then. The kernel cannot cancel an attempt: dropping its queue
// pair waits for the attempt's end (SoftiWARP: 10 s at most). SoftiWARP's rdma_connect blocks until
// TCP has connected.
//
// A device runs it on a thread of its own (off_loop_cm.h), whose loop is then meant by "the loop of
// a queue pair".
//
// Thread rule: see verbs.h. The loop of a connection's queue pair reads its events (cm_channel.h);
// a thread waits for goodbyes (departures.h).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "lib/verbs/ibv/translation/attributes.h"
#include "lib/verbs/verbs.h"

namespace tokamak::verbs::ibv {

struct RdmaCmOptions {
  std::string device;  // as ibv_devices lists it; no other device is connected
  uint8_t port_number = 1;
  std::optional<uint8_t> traffic_class;  // none: the fabric decides
  Address address;                       // Device::address(): the source of requests
  std::function<LocalPort()> port;       // the present port, from any thread: its MTU may change
  uint32_t max_reads = 0;                // Limits::max_reads
};

class RdmaCmCore;

class RdmaConnectionManager final : public ConnectionManager {
 public:
  // kUnavailable: no rdma_cm here.
  static absl::StatusOr<std::unique_ptr<RdmaConnectionManager>> Make(const RdmaCmOptions& options);
  ~RdmaConnectionManager() override;

  absl::StatusOr<std::unique_ptr<Listener>> Listen(base::EventLoop& loop, const Address& address,
                                                   RequestHandler handler) override;
  absl::StatusOr<std::unique_ptr<Connection>> Connect(QueuePair& queue_pair, const Address& address,
                                                      const ConnectOptions& options,
                                                      ConnectionHandler handler) override;

  // The device reports first data (IBV_EVENT_COMM_EST): a queue pair that waits for the last
  // message of its connection's making stops waiting. From any thread; ignores other queue pairs.
  void OnFirstData(uint32_t queue_pair_number);

  // The port reports that the routes to peers may have changed: cached paths are dropped. From any
  // thread.
  void OnPathsChanged();

 private:
  explicit RdmaConnectionManager(std::shared_ptr<RdmaCmCore> core);

  const std::shared_ptr<RdmaCmCore> core_;  // shared with the handles
};

}  // namespace tokamak::verbs::ibv
