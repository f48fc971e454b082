// SPDX-License-Identifier: GPL-2.0-only
//
// RoceWriteApplication writes into another host's memory by RDMA, one WRITE after the other, over a
// connection of its own: traffic without a program of verbs.
//
// Requires two open NICs; the start connects them.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "lib/verbs/verbs.h"
#include "ns3/application.h"
#include "ns3/nstime.h"
#include "ns3/traced-callback.h"
#include "sim/ns3/roce_nic.h"

namespace tokamak::sim {

class RoceWriteApplication final : public ns3::Application {
 public:
  // `number`: the WRITE's, from 0.
  using CompletedCallback = void (*)(uint32_t number, ns3::Time start, ns3::Time finish);

  static ns3::TypeId GetTypeId();
  RoceWriteApplication();
  ~RoceWriteApplication() override;

  void SetNics(const ns3::Ptr<RoceNic>& from, const ns3::Ptr<RoceNic>& to);

  uint32_t completed() const { return completed_count_; }

  // True if the last WRITE brought the bytes sent, and for phantom payload.
  bool Arrived() const;

 protected:
  void DoDispose() override;

 private:
  struct Side {
    ns3::Ptr<RoceNic> nic;
    std::vector<uint8_t> bytes;  // empty: phantom payload
    std::unique_ptr<verbs::ProtectionDomain> domain;
    std::unique_ptr<verbs::CompletionQueue> completions;
    std::unique_ptr<verbs::MemoryRegion> region;
    std::unique_ptr<verbs::QueuePair> queue_pair;

    void Close();
  };

  void StartApplication() override;
  void StopApplication() override;
  void Open(Side* side);
  void Connect(const Side& side, const Side& peer) const;
  void PostNext();
  void Poll();

  uint32_t bytes_ = 0;
  uint32_t count_ = 0;
  uint32_t mtu_ = 0;
  bool phantom_ = false;

  std::array<Side, 2> sides_;  // writing, written
  uint32_t completed_count_ = 0;
  ns3::Time started_;
  ns3::TracedCallback<uint32_t, ns3::Time, ns3::Time> completed_;
};

}  // namespace tokamak::sim
