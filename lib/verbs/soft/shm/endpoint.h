// ShmEndpoint is one NIC's end of a ShmFabric: the links to and from others, and its services.
//
// Law: records written to a link are published when Send returns.
// Law: a turn takes a bounded part of a link's records, whatever its writer does. Links and
// messages of programs that are neither our user's nor root's are ignored.
// Bounds: kMostLinks in each direction; a service's socket holds what the kernel lets it.
// Thread rule: one loop's.
#pragma once

#include <array>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "lib/os/epoll_loop.h"
#include "lib/os/file_descriptor.h"
#include "lib/os/poller.h"
#include "lib/verbs/soft/fabric.h"
#include "lib/verbs/soft/shm/link.h"
#include "lib/verbs/soft/shm/packet_record.h"

namespace tokamak::verbs::soft {

class ShmEndpoint final : public os::Poller, public std::enable_shared_from_this<ShmEndpoint> {
 public:
  static constexpr size_t kMostLinks = 4096;

  // `listener` listens under the NIC's name.
  ShmEndpoint(os::EpollLoop& loop, const Address& address, NumberShare share, os::FileDescriptor listener,
              PortCallbacks callbacks);

  void Start();
  void Close();

  const Address& address() const { return address_; }
  NumberShare share() const { return share_; }

  size_t Send(absl::Span<const Packet> packets);
  bool HandOn(const Packet& packet);
  void Publish();

  absl::Status Serve(uint64_t service_id);
  void Withdraw(uint64_t service_id) { services_.erase(service_id); }

  bool Poll() override;
  void Arm() override;
  int descriptor() const override { return -1; }

 private:
  // A NIC of this machine.
  using Peer = std::pair<Address, uint32_t>;

  struct Service {
    os::FileDescriptor socket;
    os::FdWatch watch;
  };

  // Packets delivered together, and taken of a link in one turn.
  static constexpr size_t kBatch = 128;
  static constexpr int kAcceptsPerTurn = 16;
  // How long a NIC that was absent is not looked for again.
  static constexpr base::Duration kAbsence = base::Milliseconds(1);

  void Accept();
  bool Drain(IncomingLink& link);
  void Deliver(absl::Span<const Packet> packets);
  void OnService(uint64_t service_id);

  OutgoingLink* LinkTo(const Address& address, uint32_t share);
  OutgoingLink* LinkToAnyAt(const Address& address);
  OutgoingLink::Result Write(OutgoingLink* link, const Packet& packet, const Address& source);
  OutgoingLink::Result WriteMad(const Packet& packet, const Address& to, const Address& source);
  bool AskService(uint64_t service_id, const Packet& packet, const Address& to, const Address& source);
  void TellReady();

  os::EpollLoop& loop_;
  const Address address_;
  const NumberShare share_;
  const os::FileDescriptor listener_;
  const os::FileDescriptor messenger_;  // sends to services
  const PortCallbacks callbacks_;
  bool open_ = true;
  os::FdWatch listener_watch_;
  os::PollerHandle poller_;
  std::map<uint64_t, Service> services_;
  std::list<IncomingLink> incoming_;
  std::list<IncomingLink> closed_;  // of a closed port: one may be in use
  base::Timer accept_again_;
  std::map<Peer, std::unique_ptr<OutgoingLink>> outgoing_;
  std::map<Peer, base::Time> absent_until_;
  const Peer* last_peer_ = nullptr;  // in outgoing_, with its link
  OutgoingLink* last_link_ = nullptr;
  OutgoingLink* full_link_ = nullptr;   // had no room when Send returned
  std::vector<OutgoingLink*> written_;  // not published yet
  std::array<Packet, kBatch> batch_;
  std::array<uint8_t, kMaxRecord> record_;  // a service's
};

}  // namespace tokamak::verbs::soft
