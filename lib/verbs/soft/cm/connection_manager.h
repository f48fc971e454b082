// The connection manager of a software NIC: verbs::ConnectionManager above, CM messages on QP 1
// below.
//
// It finds the ConnectionState that a message, an alarm, a call or news of a queue pair is about,
// and carries out its actions. SIDR messages go to ServiceResolution. See docs/connection.md.
// Thread rule: all state is under the NIC's mutex. Listen, Connect and Accept take it; the other
// methods expect it to be held.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/verbs/soft/cm/connection_handles.h"
#include "lib/verbs/soft/cm/connection_table.h"
#include "lib/verbs/soft/cm/management.h"
#include "lib/verbs/soft/cm/port_table.h"
#include "lib/verbs/soft/cm/present_peers.h"
#include "lib/verbs/soft/cm/service_resolution.h"
#include "lib/verbs/soft/state/nic_mutex.h"
#include "lib/verbs/verbs.h"

namespace tokamak::verbs::soft {

class SoftConnectionManager final : public ConnectionManager, public ManagementHandler, public ConnectionDesk {
 public:
  // `nic` owns this and outlives it. Made with the mutex held, or before anybody else knows the
  // NIC.
  explicit SoftConnectionManager(Management& nic);
  ~SoftConnectionManager() override;

  absl::StatusOr<std::unique_ptr<Listener>> Listen(base::EventLoop& loop, const Address& address,
                                                   RequestHandler handler) override;
  absl::StatusOr<std::unique_ptr<Connection>> Connect(QueuePair& queue_pair, const Address& address,
                                                      const ConnectOptions& options,
                                                      ConnectionHandler handler) override;

  // Make connections of messages alone: their owners walk queue pairs themselves, as the offers and
  // the peer's messages say. An owner has at most one connection, and lives until Forget. Errors
  // are those of Listen and Connect. For port 0 one is chosen, see listens_at().
  absl::StatusOr<uint16_t> ListenOutside(ConnectionListener& listener, uint16_t port) REQUIRES_NIC_MUTEX;
  absl::Status ConnectOutside(ConnectionOwner& owner, const Address& address,
                              const ConnectionOffer& offer) REQUIRES_NIC_MUTEX;
  // kCancelled: the peer waits no more.
  absl::Status AcceptOutside(uint64_t request, ConnectionOwner& owner, const ConnectionOffer& offer) REQUIRES_NIC_MUTEX;
  // kFailedPrecondition: there is no answer to confirm.
  absl::Status ConfirmOutside(ConnectionOwner& owner) REQUIRES_NIC_MUTEX;
  void RejectOutside(uint64_t request, const RejMad& rej) REQUIRES_NIC_MUTEX;
  uint32_t NewPsn() REQUIRES_NIC_MUTEX;
  // Returns a port without a listener. kResourceExhausted: there is none.
  absl::StatusOr<uint16_t> ChoosePort() REQUIRES_NIC_MUTEX { return listeners_.ChooseFree(); }
  void Forget(ConnectionOwner& owner) override REQUIRES_NIC_MUTEX;
  void Forget(ConnectionListener& listener) override REQUIRES_NIC_MUTEX;
  std::optional<PendingRequest> TakeRequest(ConnectionListener& listener) override REQUIRES_NIC_MUTEX;

  // The UDP port space.
  ServiceResolution& services() REQUIRES_NIC_MUTEX { return services_; }

  DatagramResult OnMad(const Packet& packet) override REQUIRES_NIC_MUTEX;
  void OnFirstData(uint32_t number) override REQUIRES_NIC_MUTEX;
  void OnError(uint32_t number) override REQUIRES_NIC_MUTEX;
  void OnDropped(uint32_t number) override REQUIRES_NIC_MUTEX;

  // Counts connections that are being made, up, or still remembered.
  size_t connections() const REQUIRES_NIC_MUTEX { return table_.size(); }
  size_t half_open() const REQUIRES_NIC_MUTEX { return table_.half_open(); }

 private:
  absl::StatusOr<std::unique_ptr<Connection>> Accept(uint64_t key, QueuePair& queue_pair, const ConnectOptions& options,
                                                     ConnectionHandler handler) override;
  void Reject(uint64_t key, const UserData& private_data) override REQUIRES_NIC_MUTEX;

  DatagramResult OnReq(const Address& peer, const Mad& mad) REQUIRES_NIC_MUTEX;
  void Doubt(ConnectionRecord& record, const Mad& req) REQUIRES_NIC_MUTEX;
  uint64_t CookieFor(const Address& peer, uint64_t period) REQUIRES_NIC_MUTEX;
  bool IsCookie(const Address& peer, uint64_t transaction) REQUIRES_NIC_MUTEX;
  std::optional<Standing> Place(const Address& peer, uint64_t transaction) REQUIRES_NIC_MUTEX;
  ConnectionRecord& AddRecord(ConnectionState state, const Address& peer) REQUIRES_NIC_MUTEX;

  void LeaveListener(ConnectionRecord& record) REQUIRES_NIC_MUTEX;

  absl::Status CheckOptions(const ConnectOptions& options) const;
  absl::Status CheckQueuePair(uint32_t number) REQUIRES_NIC_MUTEX;
  ConnectionOffer MakeOffer(uint32_t queue_pair, const ConnectOptions& options) REQUIRES_NIC_MUTEX;
  bool Heard(const ConnectionRecord& record) const REQUIRES_NIC_MUTEX;
  ConnectionRecord& AddAsker(const Address& address) REQUIRES_NIC_MUTEX;
  std::unique_ptr<SoftConnection> MakeHandle(ConnectionRecord& record, uint32_t queue_pair, const Address& peer,
                                             ConnectionHandler handler) REQUIRES_NIC_MUTEX;

  void Apply(ConnectionRecord& record, const ConnectionActions& actions) REQUIRES_NIC_MUTEX;
  absl::Status Walk(ConnectionRecord& record, ConnectionActions::Walk walk) REQUIRES_NIC_MUTEX;
  void Send(const Address& peer, const Mad& mad) REQUIRES_NIC_MUTEX;
  void Erase(ConnectionRecord& record) REQUIRES_NIC_MUTEX;
  void Unwatch(ConnectionRecord& record) REQUIRES_NIC_MUTEX;

  uint32_t NewLocalId() REQUIRES_NIC_MUTEX;

  Management& nic_;
  const uint64_t ca_guid_;
  uint64_t next_key_ GUARDED_BY_NIC_MUTEX = 1;
  ConnectionTable table_ GUARDED_BY_NIC_MUTEX;
  PresentPeers present_ GUARDED_BY_NIC_MUTEX;
  PortTable<ConnectionListener> listeners_ GUARDED_BY_NIC_MUTEX;
  std::map<uint32_t, int> held_ GUARDED_BY_NIC_MUTEX;  // by queue pair number: connections that hold it
  ServiceResolution services_ GUARDED_BY_NIC_MUTEX;
};

}  // namespace tokamak::verbs::soft
