#include "sim/costs/closed_form.h"

#include <algorithm>

namespace tokamak::sim {
namespace {

using base::Duration;

// Bytes on the wire.
constexpr uint64_t kPacket = 82;  // preamble, headers, check sums and gap
constexpr uint64_t kReth = 16;    // of a WRITE's first packet, and of a READ request
constexpr uint64_t kAeth = 4;     // of a READ response's first and last packet
constexpr uint64_t kImmediate = 4;

// docs/transport.md
constexpr uint64_t kHeader = 64;
constexpr uint64_t kTransfer = kHeader + 16;           // with the generation
constexpr uint64_t kTransferByWrite = kTransfer + 16;  // and the puller's memory

// Eager pulls.
constexpr uint64_t kCopiedAtOnce = 256 * 1024;  // bytes of a task, base::kMaxCopyPerTask
constexpr uint64_t kChunksPerCompletion = 16;   // SendRing
constexpr uint64_t kChunksPerCredit = 32;       // messages that return slots, Credits

uint64_t RoundUp(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit; }

class Pull final {
 public:
  Pull(uint64_t size, const HostCosts& costs, const PullPath& path) : size_(size), costs_(costs), path_(path) {}

  Duration Eager() const;
  Duration Read() const;
  Duration Write() const;

 private:
  // ---- the network

  // `extra`: header bytes.
  uint64_t WireBytes(uint64_t message, uint64_t extra) const {
    const uint64_t packets = std::max<uint64_t>(1, RoundUp(message, path_.mtu));
    return RoundUp(message, 4) * 4 + packets * kPacket + extra;
  }
  uint64_t LargestPacket(uint64_t message) const {
    return RoundUp(std::min<uint64_t>(message, path_.mtu), 4) * 4 + kPacket;
  }
  Duration OnCable(uint64_t bytes) const {
    return Duration::Picoseconds(path_.picoseconds_per_byte) * static_cast<int64_t>(bytes);
  }
  // From the last byte's start to its end: the switch stores the largest packet, both cables delay.
  Duration Behind(uint64_t largest) const { return OnCable(largest) + path_.delay * 2; }
  Duration Message(uint64_t bytes) const { return OnCable(WireBytes(bytes, 0)) + Behind(LargestPacket(bytes)); }

  // ---- the hosts

  Duration Posts(uint64_t requests) const { return costs_.post * static_cast<int64_t>(requests); }
  Duration Copy(uint64_t bytes) const {
    if (costs_.copy_bandwidth == 0) return Duration();
    return Duration::Picoseconds(
        static_cast<int64_t>(static_cast<double>(bytes) * 1e12 / static_cast<double>(costs_.copy_bandwidth)));
  }
  Duration Register() const { return costs_.registration + costs_.registration_page * Pages(); }
  Duration RegisterUnlessArena() const { return path_.arena ? Duration() : Register(); }
  Duration Deregister() const { return costs_.deregistration + costs_.deregistration_page * Pages(); }
  int64_t Pages() const { return static_cast<int64_t>(RoundUp(size_, kHostPage)); }
  // Read, and its slot posted again.
  Duration Receive() const { return costs_.completion + costs_.post; }
  // Our own NIC binds or unbinds at once.
  Duration Window() const { return costs_.post + costs_.completion; }

  // ---- a pull

  // READs or WRITEs, and those posted together at first.
  uint64_t Requests() const { return RoundUp(size_, path_.chunk_size); }
  uint64_t FirstRequests() const { return std::min(Requests(), path_.chunks_in_flight); }
  Duration Ask(uint64_t message) const { return costs_.post + Message(message) + Receive(); }

  const uint64_t size_;
  const HostCosts& costs_;
  const PullPath& path_;
};

// Three stages at once: the owner copies a task's chunks and posts them together, the network, the
// puller's copies.
Duration Pull::Eager() const {
  const uint64_t body = path_.slot_size - kHeader;
  const uint64_t chunks = RoundUp(size_, body);
  const uint64_t together = (kCopiedAtOnce - path_.slot_size) / body + 1;
  const Duration asked = Ask(kTransfer);
  Duration owner = asked;   // when it has posted all so far
  Duration sent;            // when the last has left its NIC
  Duration arrived;         // and reached the other
  Duration puller = asked;  // when it has copied all so far
  for (uint64_t first = 0; first < chunks; first += together) {
    const uint64_t end = std::min(chunks, first + together);
    const uint64_t bytes = std::min(size_, end * body) - first * body;
    owner = owner + Copy(bytes) + Posts(end - first);
    for (uint64_t chunk = first; chunk < end; ++chunk) {
      const uint64_t part = std::min(body, size_ - chunk * body);
      const uint64_t message = kHeader + part;
      const Duration on_cable = OnCable(WireBytes(message, 0));
      sent = std::max(sent, owner) + on_cable;
      arrived = std::max(arrived + on_cable, sent + Behind(LargestPacket(message)));
      puller = std::max(puller, arrived) + Receive() + Copy(part);
      if ((chunk + 1) % kChunksPerCredit == 0) puller = puller + costs_.post;
    }
    owner = owner + costs_.completion * static_cast<int64_t>(together / kChunksPerCompletion);
    if (end % kChunksPerCredit == 0) owner = owner + Receive();
  }
  return puller;
}

Duration Pull::Read() const {
  const Duration told = RegisterUnlessArena() + costs_.post + Message(kHeader) + Receive();
  const Duration requested =
      RegisterUnlessArena() + Posts(FirstRequests()) + OnCable(kPacket + kReth) + Behind(kPacket + kReth);
  Duration answers = Ask(kTransfer) + told + requested;
  Duration puller;
  for (uint64_t request = 0; request < Requests(); ++request) {
    const uint64_t part = std::min(path_.chunk_size, size_ - request * path_.chunk_size);
    answers = answers + OnCable(WireBytes(part, 2 * kAeth));
    puller = std::max(puller, answers + Behind(LargestPacket(part))) + costs_.completion;
    if (request + path_.chunks_in_flight < Requests()) puller = puller + costs_.post;
  }
  const Duration closed = path_.arena ? Duration() : Deregister();
  return puller + closed + costs_.post;
}

// The puller opens its memory by a window, and asks; the owner WRITEs; the last packet notifies the
// puller, which closes it.
Duration Pull::Write() const {
  const Duration posted = RegisterUnlessArena() + Posts(FirstRequests());
  const Duration written =
      OnCable(WireBytes(size_, kReth * Requests() + kImmediate)) + Behind(LargestPacket(size_) + kReth);
  const Duration opened = path_.arena ? Window() : Register();
  const Duration closed = path_.arena ? Window() : Deregister();
  return opened + Ask(kTransferByWrite) + posted + written + Receive() + closed;
}

}  // namespace

Duration PullTime(PullBy protocol, uint64_t size, const HostCosts& costs, const PullPath& path) {
  const Pull pull(size, costs, path);
  switch (protocol) {
    case PullBy::kEager:
      return pull.Eager();
    case PullBy::kRead:
      return pull.Read();
    case PullBy::kWrite:
      return pull.Write();
  }
  return {};
}

}  // namespace tokamak::sim
