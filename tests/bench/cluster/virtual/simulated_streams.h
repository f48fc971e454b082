// StreamStack is the part of a simulated host's kernel that has streams: a model of TCP in virtual
// time, on a network that loses nothing. SimulatedStreams are its streams for one program.
//
// Modelled are a handshake, segments of 4 KiB, the windows of both ends' buffers, Nagle's rule
// (with Minshall's modification: a small piece waits while another one is unacknowledged), delayed
// acknowledgements, and what calls, copies and packets cost the program's processor
// (stream_costs.h). A packet is as long on the wire as TCP's with time stamps: 90 bytes beside what
// it carries.
//
// Not modelled, and all of it would make streams slower: losses and congestion control (pause
// frames of the network take their place), slow start, sleeping and waking up (the loops of nodes
// with an RDMA NIC do not sleep either), contention for the kernel's locks, and memory for packets.
//
// Thread rule: that of virtual time. The stack has a loop of its own, which spends nothing.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <utility>

#include "lib/base/event_loop.h"
#include "lib/verbs/soft/fabric.h"
#include "lib/verbs/types.h"
#include "tests/bench/cluster/virtual/stream_costs.h"
#include "tests/bench/streams/byte_stream.h"

namespace tokamak::bench {

class StreamStack final {
 public:
  static constexpr uint32_t kSegment = 4096;

  // `host` is the program's loop, `own` the stack's; the stack opens `address` of the fabric. All
  // must outlive it, and it the streams.
  StreamStack(base::EventLoop& host, base::EventLoop& own, verbs::soft::Fabric& fabric, const verbs::Address& address,
              const StreamCosts& costs);
  ~StreamStack();
  StreamStack(const StreamStack&) = delete;
  StreamStack& operator=(const StreamStack&) = delete;

  uint64_t segments_sent() const { return segments_sent_; }

 private:
  friend class SimulatedStreams;
  class End;
  class Listener;

  std::unique_ptr<StreamListener> Listen(const StreamOptions& options, ByteStreams::AcceptCallback on_accept);
  std::unique_ptr<ByteStream> Connect(const verbs::Address& to, const StreamOptions& options);

  uint32_t NewNumber() { return next_number_++; }
  End* Find(uint32_t number) const;  // null: there is none of that number any more
  // In a task of the stack, as of the host's present.
  void Later(base::Task task);
  void OnPackets(absl::Span<const verbs::soft::Packet> packets);
  void Refuse(const verbs::soft::Packet& open);
  void SendReset(const verbs::soft::Packet& packet);
  // Ends with something to send are pumped, in order, as far as the port takes packets.
  void Pump();
  bool SendPacket(const verbs::soft::Packet& packet);
  // The program shall look at its ends.
  void Tell() { ready_->Raise(); }
  void RunReady();

  base::EventLoop& host_;
  base::EventLoop& own_;
  const StreamCosts costs_;
  const std::unique_ptr<base::Signal> ready_;
  uint64_t segments_sent_ = 0;
  uint32_t next_number_ = 1;
  uint16_t next_port_ = 20'000;
  uint32_t next_pump_ = 0;  // whose turn it is
  std::deque<verbs::soft::Packet> resets_;
  std::map<uint32_t, End*> ends_;  // by number
  std::map<uint16_t, Listener*> listeners_;
  std::map<uint64_t, base::Timer> later_;
  uint64_t next_later_ = 0;
  std::unique_ptr<verbs::soft::Port> port_;
};

class SimulatedStreams final : public ByteStreams {
 public:
  // `stack` must outlive it.
  explicit SimulatedStreams(StreamStack& stack) : stack_(stack) {}

  absl::StatusOr<std::unique_ptr<StreamListener>> Listen(const StreamOptions& options,
                                                         AcceptCallback on_accept) override {
    return stack_.Listen(options, std::move(on_accept));
  }
  absl::StatusOr<std::unique_ptr<ByteStream>> Connect(const verbs::Address& to, const StreamOptions& options) override {
    return stack_.Connect(to, options);
  }

 private:
  StreamStack& stack_;
};

}  // namespace tokamak::bench
