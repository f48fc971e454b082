// verbs::ConnectionManager over librdmacm, the kernel's RDMA connection manager: InfiniBand, RoCE
// and iWARP.
//
// Our queue pairs exist before their connection, so librdmacm gets only their numbers. On
// InfiniBand and RoCE it hands out the attributes (rdma_init_qp_attr), and we walk the queue pair,
// with path MTU, time-outs and retries of our own choice; on iWARP the kernel walks it.
//
//   active    resolve address (from our device's own), set the traffic class if one was asked for,
//             resolve route, connect with the queue pair's number;
//             the answer: walk to ReadyToSend, rdma_establish, kEstablished
//   passive   request; Accept: walk to ReadyToSend, rdma_accept;
//             RTU, or the first data: kEstablished
//   end       either side's disconnect, a lost device: the queue pair to Error, which flushes
//             its work
//
// The active side hears of the connection first and may send at once.
//
// Every attempt ends by its own deadline, whatever the kernel's are. After a loss the kernel
// repeats a request after some 4 s, which cannot be changed from here: deadlines below that allow
// for no loss.
//
// iWARP: the passive side's answer is the last word, so its connection may come up for a peer that
// gave up meanwhile, and is disconnected then. The kernel cannot cancel an attempt: dropping a
// queue pair in the middle of one waits for its end (SoftiWARP: 10 s at most). SoftiWARP's
// rdma_connect waits in the kernel until TCP has connected, and so does the thread that connects;
// other devices' do not.
//
// A device runs it on a thread of its own (off_loop_cm.h): "the loop of a queue pair" is that of
// the thread then.
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

// Options of the manager's device.
struct RdmaCmOptions {
  std::string device;  // as ibv_devices lists it: no other device is connected
  uint8_t port_number = 1;
  std::optional<uint8_t> traffic_class;  // none: the fabric decides
  Address address;                       // Device::address(): the source of requests
  std::function<LocalPort()> port;       // the present port, from any thread: its MTU may change
  uint32_t max_reads = 0;                // Limits::max_reads
};

class RdmaCmCore;

class RdmaConnectionManager final : public ConnectionManager {
 public:
  // kUnavailable: there is no rdma_cm here.
  static absl::StatusOr<std::unique_ptr<RdmaConnectionManager>> Make(const RdmaCmOptions& options);
  ~RdmaConnectionManager() override;

  absl::StatusOr<std::unique_ptr<Listener>> Listen(base::EventLoop& loop, const Address& address,
                                                   RequestHandler handler) override;
  absl::StatusOr<std::unique_ptr<Connection>> Connect(QueuePair& queue_pair, const Address& address,
                                                      const ConnectOptions& options,
                                                      ConnectionHandler handler) override;

  // The device reports that data came in (IBV_EVENT_COMM_EST): a queue pair that waits for the last
  // message of its connection's making stops waiting. From any thread; ignores other queue pairs.
  void OnFirstData(uint32_t queue_pair_number);

  // The port reports that the ways to peers may have changed (path_cache.h). From any thread.
  void OnPathsChanged();

 private:
  explicit RdmaConnectionManager(std::shared_ptr<RdmaCmCore> core);

  const std::shared_ptr<RdmaCmCore> core_;  // handles keep it, too
};

}  // namespace tokamak::verbs::ibv
