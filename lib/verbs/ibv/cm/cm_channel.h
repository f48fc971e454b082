// CmChannel is an event channel of librdmacm on a loop, which hands each event to the owner of its
// id.
//
// rdma_destroy_id and rdma_migrate_id wait until all events of the id are acknowledged. So an event
// is copied and acknowledged before its sink gets it, and neither call ever waits.
//
// Law: an id's events go to the sink it was made with, and to none once it was destroyed or
// migrated.
// Thread rule: the loop's. Each id owns a share of its channel.
#pragma once

#include <rdma/rdma_cma.h>

#include <array>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lib/os/epoll_loop.h"

namespace tokamak::verbs::ibv {

struct CloseCmChannel {
  void operator()(rdma_event_channel* channel) const { rdma_destroy_event_channel(channel); }
};
using CmChannelHandle = std::unique_ptr<rdma_event_channel, CloseCmChannel>;

// Opens a non-blocking channel. kUnavailable: no rdma_cm here; the text names the remedy.
absl::StatusOr<CmChannelHandle> OpenCmChannel();

struct CmEvent {
  rdma_cm_event_type type = RDMA_CM_EVENT_ADDR_RESOLVED;
  int status = 0;            // 0, -errno, or InfiniBand's reason for a rejection
  rdma_cm_id* id = nullptr;  // of a CONNECT_REQUEST: new, owned by the receiver
  uint8_t peer_serves = 0;   // READs: the peer's responder resources
  uint8_t peer_asks = 0;     // the peer's initiator depth
  uint8_t private_data_size = 0;
  std::array<uint8_t, 256> bytes{};

  absl::Span<const uint8_t> private_data() const { return {bytes.data(), private_data_size}; }
};

class CmSink {
 public:
  // May destroy the id, the sink and the channel's last share.
  virtual void OnCmEvent(const CmEvent& event) = 0;

 protected:
  ~CmSink() = default;
};

// Reads and acknowledges one event; returns false if there is none. `context` is the id's.
bool TakeCmEvent(rdma_event_channel* channel, CmEvent* event, void** context);

class CmChannel final : public std::enable_shared_from_this<CmChannel> {
 public:
  static absl::StatusOr<std::shared_ptr<CmChannel>> Open(os::EpollLoop& loop);

  CmChannel(os::EpollLoop& loop, CmChannelHandle channel);
  CmChannel(const CmChannel&) = delete;
  CmChannel& operator=(const CmChannel&) = delete;

  rdma_event_channel* handle() const { return channel_.get(); }
  os::EpollLoop& loop() const { return loop_; }

 private:
  static constexpr int kEventsPerTurn = 64;

  void Read();

  os::EpollLoop& loop_;
  const CmChannelHandle channel_;
  os::FdWatch watch_;  // declared after the channel, so it goes first
};

}  // namespace tokamak::verbs::ibv
