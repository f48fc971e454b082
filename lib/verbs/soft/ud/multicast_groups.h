// The datagram queue pairs in each multicast group.
//
// Law: a listed group has members, each once.
// Thread rule: the NIC's mutex.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/status.h"
#include "lib/verbs/types.h"

namespace tokamak::verbs::soft {

class DatagramCore;

class MulticastGroups final {
 public:
  using Ip = std::array<uint8_t, 16>;
  using Members = std::vector<DatagramCore*>;

  static constexpr size_t kMaxGroups = 256;
  static constexpr size_t kMaxMembers = 256;  // of one group

  // Returns null if it has no members.
  const Members* Find(const Ip& group) const;

  // OK if one more may join; kResourceExhausted: too many groups, or members.
  absl::Status MayAdd(const Ip& group) const;
  void Add(const Ip& group, DatagramCore& queue_pair);

  // Returns false if it was no member. A group is gone with its last member.
  bool Remove(const Ip& group, DatagramCore& queue_pair);

  bool Has(const Ip& group, const DatagramCore& queue_pair) const;

 private:
  std::map<Ip, Members> groups_;
};

}  // namespace tokamak::verbs::soft
