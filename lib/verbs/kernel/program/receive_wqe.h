// A receive as a provider writes it to a ring, copied and checked.
//
// Thread rule: none, a pure function.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "absl/types/span.h"
#include "lib/verbs/kernel/program/provider_ring.h"
#include "lib/verbs/kernel/program/rxe_abi.h"
#include "lib/verbs/types.h"

namespace tokamak::verbs::kernel {

constexpr uint32_t kMostSges = 16;

// Marks our ids of receives, to tell them from those of sends.
constexpr uint64_t kReceiveId = uint64_t{1} << 63;

struct ReceiveWqe {
  uint64_t request = 0;  // the program's number
  uint32_t sge_count = 0;
  std::array<Sge, kMostSges> sges;

  absl::Span<const Sge> memory() const { return absl::MakeConstSpan(sges.data(), sge_count); }
};

// Copies `count` sges from the ring, at most those that the element holds.
inline uint32_t CopySges(const uint8_t* from, uint32_t room, uint32_t count, std::array<Sge, kMostSges>* sges) {
  const uint32_t copied = std::min({count, kMostSges, room / static_cast<uint32_t>(sizeof(rxe_sge))});
  for (uint32_t i = 0; i < copied; ++i) {
    rxe_sge sge;
    std::memcpy(&sge, from + i * sizeof(sge), sizeof(sge));
    (*sges)[i] = {reinterpret_cast<uint8_t*>(sge.addr), sge.length, sge.lkey};
  }
  return copied;
}

inline ReceiveWqe ReadReceive(const ProviderRing& ring, uint32_t index) {
  rxe_recv_wqe wqe;
  std::memcpy(&wqe, ring.at(index), kReceiveHeader);
  ReceiveWqe receive;
  receive.request = wqe.wr_id;
  receive.sge_count =
      CopySges(static_cast<const uint8_t*>(ring.at(index)) + kReceiveHeader,
               ring.element_size() - static_cast<uint32_t>(kReceiveHeader), wqe.dma.num_sge, &receive.sges);
  return receive;
}

}  // namespace tokamak::verbs::kernel
