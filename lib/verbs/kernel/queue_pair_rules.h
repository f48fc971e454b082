// The legal changes of a queue pair's state, and the attributes that each needs and allows.
// (10.3.1, 11.2.5.2 table 91; the kernel's ib_modify_qp_is_ok)
//
// State and attribute numbers are those of ibv_qp_state and ibv_qp_attr_mask. Thread rule: none,
// pure functions.
#pragma once

#include <cstdint>

namespace tokamak::verbs::kernel {

enum class Service : uint8_t { kConnected, kDatagram };  // RC, UD

// Returns whether a queue pair may go from `from` to `to` with exactly the attributes of `mask`
// (IBV_QP_STATE and IBV_QP_CUR_STATE aside).
bool IsLegalStep(Service service, uint32_t from, uint32_t to, uint32_t mask);

}  // namespace tokamak::verbs::kernel
