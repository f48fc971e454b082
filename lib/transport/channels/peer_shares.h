// PeerShares counts each peer's part of a shared resource, so that one peer cannot have it all.
//
// A peer is an address.
// Law: an entry lives as long as a connection of that peer.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>

#include "lib/transport/limits.h"

namespace tokamak::transport {

class PeerShares final {
 public:
  using Ip = std::array<uint8_t, 16>;

  struct Share {
    size_t connections = 0;
    uint32_t serves = 0;
  };

  // One connection of a peer; the shares outlive it.
  class Membership final {
   public:
    Membership(PeerShares& all, const Ip& peer) : all_(all), place_(all.shares_.try_emplace(peer).first) {
      ++share().connections;
    }
    ~Membership() {
      if (--share().connections == 0) all_.shares_.erase(place_);
    }
    Membership(const Membership&) = delete;
    Membership& operator=(const Membership&) = delete;

    Share& share() { return place_->second; }

   private:
    PeerShares& all_;
    const std::map<Ip, Share>::iterator place_;
  };

  size_t ConnectionsOf(const Ip& peer) const {
    const auto share = shares_.find(peer);
    return share == shares_.end() ? 0 : share->second.connections;
  }
  size_t peers() const { return shares_.size(); }

  // Returns how many of `all` one peer may have.
  static constexpr uint32_t PartOf(uint32_t all) { return all < kPeerPart ? 1 : all / kPeerPart; }

 private:
  std::map<Ip, Share> shares_;
};

}  // namespace tokamak::transport
