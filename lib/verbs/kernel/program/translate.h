// Translation between the numbers of the kernel's ABI, which are ibverbs', and ours.
//
// Thread rule: none, pure functions.
#pragma once

#include <rdma/ib_user_verbs.h>

#include <cstdint>

#include "absl/status/status.h"
#include "lib/verbs/types.h"

namespace tokamak::verbs::kernel {

// Returns the kernel's answer for a failed call of ours (docs/verbs.md, Errors of calls).
int ErrnoOf(const absl::Status& status);

// Maps the rights of IB_UVERBS_ACCESS_* that are known; the caller checks the others.
Access AccessOf(uint32_t flags);

// Returns whether a region may be given these rights: known ones, or optional ones, which are
// ignored. (ib_check_mr_access)
bool IsRegionAccess(uint32_t flags);

// Returns ibv_wc_status.
uint32_t StatusNumber(CompletionStatus status);

// Returns ibv_wc_opcode.
uint32_t OpcodeNumber(CompletionOpcode opcode);

// 2.4 hours, for the specification's "wait for ever" (0).
constexpr uint8_t kLongestTimeout = 31;

// Map bytes to ibv_mtu, 1 to 5, and back; 0 if invalid.
uint8_t MtuNumber(uint32_t bytes);
uint32_t MtuBytes(uint8_t number);

ib_uverbs_wc ToWorkCompletion(const Completion& completion, uint64_t request);

// A RoCE v2 GID is an IP address.
Address AddressOfGid(const uint8_t (&gid)[16]);

}  // namespace tokamak::verbs::kernel
