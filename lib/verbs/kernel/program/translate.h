// Between the numbers of the kernel's ABI, which are ibverbs', and ours.
//
// Thread rule: none, pure functions.
#pragma once

#include <rdma/ib_user_verbs.h>

#include <cstdint>

#include "absl/status/status.h"
#include "lib/verbs/types.h"

namespace tokamak::verbs::kernel {

// What the kernel answers where a call of ours fails. (docs/verbs.md, Errors of calls)
int ErrnoOf(const absl::Status& status);

// Access rights of the ABI (IB_UVERBS_ACCESS_*), those that we know; the others are to be looked at
// by the caller.
Access AccessOf(uint32_t flags);

// Rights that a region may be given: known, or optional and so ignored. (ib_check_mr_access)
bool IsRegionAccess(uint32_t flags);

// ibv_wc_status.
uint32_t StatusNumber(CompletionStatus status);

// ibv_wc_opcode.
uint32_t OpcodeNumber(CompletionOpcode opcode);

// What the specification calls "wait for ever" (0) is the longest time here: 2.4 hours.
constexpr uint8_t kLongestTimeout = 31;

// ibv_mtu, 1 to 5, from bytes and back; 0 for what is none.
uint8_t MtuNumber(uint32_t bytes);
uint32_t MtuBytes(uint8_t number);

// A completion as providers read it.
ib_uverbs_wc ToWorkCompletion(const Completion& completion, uint64_t request);

// A RoCE v2 GID is an IP address.
Address AddressOfGid(const uint8_t (&gid)[16]);

}  // namespace tokamak::verbs::kernel
