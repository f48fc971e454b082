// The connection manager of a software NIC: verbs::ConnectionManager above, CM messages on QP 1 below.
//
// Every connection is a ConnectionState; this class finds out which one a message, an expired alarm, news of a queue pair or
// a call is about, and carries out what the state says. What is for an application goes to its handle (connection_handles.h),
// which tells it on its own loop. docs/connection.md has the whole picture.
//
// Thread rule: all state is under the NIC's mutex. Listen and Connect take it; what ManagementHandler and the handles call
// expects it to be held.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/verbs/soft/connection_handles.h"
#include "lib/verbs/soft/connection_table.h"
#include "lib/verbs/soft/management.h"
#include "lib/verbs/verbs.h"

namespace tokamak::verbs::soft {

class SoftConnectionManager final : public ConnectionManager, public ManagementHandler, public ConnectionDesk {
 public:
  // `nic` owns this and outlives it. Made with the mutex held, or before anybody else knows the NIC.
  explicit SoftConnectionManager(Management& nic);
  ~SoftConnectionManager() override;

  absl::StatusOr<std::unique_ptr<Listener>> Listen(base::EventLoop& loop, const Address& address,
                                                   RequestHandler handler) override;
  absl::StatusOr<std::unique_ptr<Connection>> Connect(QueuePair& queue_pair, const Address& address,
                                                      const ConnectOptions& options,
                                                      ConnectionHandler handler) override;

  DatagramResult OnMad(const Packet& packet) override;
  void OnFirstData(uint32_t number) override;
  void OnError(uint32_t number) override;
  void OnDropped(uint32_t number) override;

  // Connections that are made, up, or still remembered.
  size_t connections() const { return table_.size(); }
  size_t half_open() const { return table_.half_open(); }

 private:
  // ConnectionDesk
  absl::StatusOr<std::unique_ptr<Connection>> Accept(uint64_t key, QueuePair& queue_pair, const ConnectOptions& options,
                                                     ConnectionHandler handler) override;
  void Reject(uint64_t key, const UserData& private_data) override;
  void Forget(SoftConnection& handle) override;
  void Forget(SoftListener& handle) override;
  std::optional<PendingRequest> TakeRequest(SoftListener& handle) override;

  std::optional<RejMad> OnReq(const Address& peer, const Mad& mad);  // what to reject it with, if so
  ConnectionRecord& AddRecord(ConnectionState state, const Address& peer);

  // The device at the IP address and UDP port of `address`; an udp_port that is ours is 0.
  Address DeviceAt(const Address& address) const;

  void SettleWithListener(ConnectionRecord& record);

  absl::Status CheckOptions(const ConnectOptions& options) const;
  absl::Status CheckQueuePair(uint32_t number);
  ConnectionOffer MakeOffer(uint32_t queue_pair, const ConnectOptions& options);
  std::unique_ptr<SoftConnection> MakeHandle(ConnectionRecord& record, uint32_t queue_pair, const Address& peer,
                                             ConnectionHandler handler);

  void Apply(ConnectionRecord& record, const ConnectionActions& actions);
  absl::Status Walk(ConnectionRecord& record, ConnectionActions::Walk walk);
  void Send(const Address& peer, const Mad& mad);
  void Erase(ConnectionRecord& record);
  void Unwatch(ConnectionRecord& record);

  uint32_t NewLocalId();
  absl::StatusOr<uint16_t> ChoosePort();

  Management& nic_;
  const uint64_t ca_guid_;
  uint64_t next_key_ = 1;
  ConnectionTable table_;
  std::map<uint16_t, SoftListener*> listeners_;
  std::map<uint32_t, int> held_;  // queue pair numbers, and by how many connections
};

}  // namespace tokamak::verbs::soft
