// PeerParts counts what peers have us keep of what all of them share, and leaves some to others:
// one peer has at most as many as are free. So nobody has them all, and one that is alone half.
//
// A peer is an address.
// Law: what all claims say together is at most the bound.
// Thread rule: one loop. The parts outlive their claims.
#pragma once

#include <cstddef>
#include <map>
#include <memory>

#include "lib/verbs/types.h"

namespace tokamak::node {

class PeerParts final {
 public:
  explicit PeerParts(size_t most) : most_(most) {}
  PeerParts(const PeerParts&) = delete;
  PeerParts& operator=(const PeerParts&) = delete;

  // What one call has; given back when it is dropped.
  class Claim final {
   public:
    Claim(PeerParts& parts, const verbs::Address& peer, size_t count) : parts_(parts), peer_(peer), count_(count) {}
    ~Claim() { parts_.GiveBack(peer_, count_); }
    Claim(const Claim&) = delete;
    Claim& operator=(const Claim&) = delete;

   private:
    PeerParts& parts_;
    const verbs::Address peer_;
    const size_t count_;
  };

  // Null: that would be more than the peer may have now.
  std::unique_ptr<Claim> Take(verbs::Address peer, size_t count) {
    peer.port = peer.udp_port = 0;  // which it may have many of
    const auto known = of_peer_.find(peer);
    const size_t own = known == of_peer_.end() ? 0 : known->second;
    if (own + all_ + 2 * count > most_) return nullptr;
    of_peer_[peer] += count;
    all_ += count;
    return std::make_unique<Claim>(*this, peer, count);
  }

  size_t all() const { return all_; }

 private:
  void GiveBack(const verbs::Address& peer, size_t count) {
    const auto known = of_peer_.find(peer);
    known->second -= count;
    if (known->second == 0) of_peer_.erase(known);
    all_ -= count;
  }

  const size_t most_;
  size_t all_ = 0;
  std::map<verbs::Address, size_t> of_peer_;
};

}  // namespace tokamak::node
