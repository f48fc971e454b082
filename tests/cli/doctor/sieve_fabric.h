// SieveFabric is another fabric whose ports lose the packets that the test chooses, in both
// directions: large ones, or those of READs.
//
// Thread rule: as the fabric inside, which must outlive this one, as this one must its ports.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "lib/verbs/soft/fabric.h"
#include "lib/verbs/soft/fabrics/forwarding_port.h"

namespace tokamak::cli::doctor {

using Loses = std::function<bool(const verbs::soft::Packet&)>;

inline bool IsManagement(const verbs::soft::Packet& packet) {
  return packet.destination == verbs::soft::kManagementQueuePair;
}
inline bool LosesNothing(const verbs::soft::Packet&) { return false; }
inline bool LosesAll(const verbs::soft::Packet&) { return true; }
inline bool LosesAllButManagement(const verbs::soft::Packet& packet) { return !IsManagement(packet); }
inline bool LosesLarge(const verbs::soft::Packet& packet) {
  return !IsManagement(packet) && packet.payload_length() > 1024;
}
inline bool LosesReads(const verbs::soft::Packet& packet) { return verbs::soft::IsReadResponse(packet.opcode); }
inline bool LosesWrites(const verbs::soft::Packet& packet) { return verbs::soft::IsWrite(packet.opcode); }

class SieveFabric final : public verbs::soft::Fabric {
 public:
  explicit SieveFabric(verbs::soft::Fabric& inner, Loses loses = LosesNothing)
      : inner_(inner), loses_(std::move(loses)) {}

  void set_loses(Loses loses) { loses_ = std::move(loses); }

  absl::StatusOr<std::unique_ptr<verbs::soft::Port>> Open(base::EventLoop& loop, const verbs::Address& address,
                                                          verbs::soft::PortCallbacks callbacks) override {
    auto port = std::make_unique<SievePort>(*this);
    verbs::soft::PortCallbacks sieved = callbacks;
    sieved.on_packets = [this, pass = callbacks.on_packets](absl::Span<const verbs::soft::Packet> packets) {
      std::vector<verbs::soft::Packet> kept;
      for (const verbs::soft::Packet& packet : packets) {
        if (!loses_(packet)) kept.push_back(packet);
      }
      if (!kept.empty()) pass(kept);
    };
    if (absl::Status s = port->OpenInner(inner_, loop, address, std::move(sieved)); !s.ok()) return s;
    return port;
  }

 private:
  class SievePort final : public verbs::soft::ForwardingPort {
   public:
    explicit SievePort(const SieveFabric& fabric) : fabric_(fabric) {}
    size_t Send(absl::Span<const verbs::soft::Packet> packets) override {
      for (size_t i = 0; i < packets.size(); ++i) {
        if (!fabric_.loses_(packets[i]) && inner().Send(packets.subspan(i, 1)) == 0) return i;
      }
      return packets.size();
    }

   private:
    const SieveFabric& fabric_;
  };

  verbs::soft::Fabric& inner_;
  Loses loses_;
};

}  // namespace tokamak::cli::doctor
