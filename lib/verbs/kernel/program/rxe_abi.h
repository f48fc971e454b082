// Structs that rdma_rxe and its provider library share in memory (rdma/rdma_user_rxe.h). That
// header includes the kernel's Internet addresses, which must come after libc's.
//
// An empty struct has a size in C++ and none in C, so fields behind one (the data of rxe_dma_info)
// are elsewhere for us: use the sizes and offsets below.
#pragma once

#include <netinet/in.h>
// Not before netinet/in.h.
#include <rdma/rdma_user_rxe.h>

#include <cstddef>

namespace tokamak::verbs::kernel {

// Bytes of a work request up to its sges, or its inline data.
constexpr size_t kDmaHeader = offsetof(rxe_dma_info, reserved) + sizeof(rxe_dma_info::reserved);
constexpr size_t kSendHeader = offsetof(rxe_send_wqe, dma) + kDmaHeader;
constexpr size_t kReceiveHeader = offsetof(rxe_recv_wqe, dma) + kDmaHeader;
static_assert(kDmaHeader == 24 && kSendHeader == 208 && kReceiveHeader == 40);

}  // namespace tokamak::verbs::kernel
