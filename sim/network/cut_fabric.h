// CutFabric is another fabric in which the ways between addresses can be cut: then neither new
// packets nor those in flight pass. Ports do not matter.
//
// Law: passing packets stay as they are, in the same order and at the same time.
// Thread rule: that of the fabric below, in virtual time.
#pragma once

#include <cstddef>
#include <memory>
#include <set>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lib/base/event_loop.h"
#include "lib/verbs/soft/fabric.h"
#include "lib/verbs/types.h"

namespace tokamak::sim {

class CutFabric final : public verbs::soft::Fabric {
 public:
  using Address = verbs::Address;

  // `fabric` must outlive it.
  explicit CutFabric(verbs::soft::Fabric& fabric) : fabric_(fabric) {}

  absl::StatusOr<std::unique_ptr<verbs::soft::Port>> Open(base::EventLoop& loop, const Address& address,
                                                          verbs::soft::PortCallbacks callbacks) override;

  // See Network.
  void Cut(const Address& from, const Address& to) { cut_.insert({IpOf(from), IpOf(to)}); }
  void Mend(const Address& from, const Address& to) { cut_.erase({IpOf(from), IpOf(to)}); }
  void Partition(absl::Span<const Address> side);
  void Heal();

 private:
  class CutPort;

  static Address IpOf(const Address& address) {
    Address ip;
    ip.ip = address.ip;
    return ip;
  }
  bool Passes(const Address& from, const Address& to) const;

  verbs::soft::Fabric& fabric_;
  std::set<std::pair<Address, Address>> cut_;
  std::set<Address> side_;  // of the partition
};

}  // namespace tokamak::sim
