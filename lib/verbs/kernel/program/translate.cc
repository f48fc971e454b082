#include "lib/verbs/kernel/program/translate.h"

#include <arpa/inet.h>
#include <infiniband/verbs.h>

#include <algorithm>
#include <cerrno>

namespace tokamak::verbs::kernel {

int ErrnoOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return 0;
    case absl::StatusCode::kResourceExhausted:
      return ENOMEM;
    case absl::StatusCode::kUnimplemented:
      return EOPNOTSUPP;
    case absl::StatusCode::kAlreadyExists:
      return EADDRINUSE;
    case absl::StatusCode::kNotFound:
      return ENODEV;
    case absl::StatusCode::kPermissionDenied:
      return EACCES;
    default:
      return EINVAL;
  }
}

Access AccessOf(uint32_t flags) {
  Access access = kLocalRead;
  if ((flags & IBV_ACCESS_LOCAL_WRITE) != 0) access = access | kLocalWrite;
  if ((flags & IBV_ACCESS_REMOTE_WRITE) != 0) access = access | kRemoteWrite;
  if ((flags & IBV_ACCESS_REMOTE_READ) != 0) access = access | kRemoteRead;
  if ((flags & IBV_ACCESS_REMOTE_ATOMIC) != 0) access = access | kRemoteAtomic;
  if ((flags & IBV_ACCESS_MW_BIND) != 0) access = access | kWindowBind;
  return access;
}

bool IsRegionAccess(uint32_t flags) {
  constexpr uint32_t kKnown = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                              IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED |
                              IBV_ACCESS_HUGETLB;
  if ((flags & ~(kKnown | IBV_ACCESS_OPTIONAL_RANGE)) != 0) return false;
  const bool written_by_peers = (flags & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) != 0;
  return !written_by_peers || (flags & IBV_ACCESS_LOCAL_WRITE) != 0;
}

uint32_t StatusNumber(CompletionStatus status) {
  switch (status) {
    case CompletionStatus::kSuccess:
      return IBV_WC_SUCCESS;
    case CompletionStatus::kLocalLength:
      return IBV_WC_LOC_LEN_ERR;
    case CompletionStatus::kLocalQpOperation:
      return IBV_WC_LOC_QP_OP_ERR;
    case CompletionStatus::kLocalProtection:
      return IBV_WC_LOC_PROT_ERR;
    case CompletionStatus::kFlushed:
      return IBV_WC_WR_FLUSH_ERR;
    case CompletionStatus::kWindowBind:
      return IBV_WC_MW_BIND_ERR;
    case CompletionStatus::kBadResponse:
      return IBV_WC_BAD_RESP_ERR;
    case CompletionStatus::kLocalAccess:
      return IBV_WC_LOC_ACCESS_ERR;
    case CompletionStatus::kRemoteInvalidRequest:
      return IBV_WC_REM_INV_REQ_ERR;
    case CompletionStatus::kRemoteAccess:
      return IBV_WC_REM_ACCESS_ERR;
    case CompletionStatus::kRemoteOperation:
      return IBV_WC_REM_OP_ERR;
    case CompletionStatus::kRetryExceeded:
      return IBV_WC_RETRY_EXC_ERR;
    case CompletionStatus::kRnrRetryExceeded:
      return IBV_WC_RNR_RETRY_EXC_ERR;
    case CompletionStatus::kRemoteAborted:
      return IBV_WC_REM_ABORT_ERR;
    case CompletionStatus::kFatal:
      return IBV_WC_FATAL_ERR;
    case CompletionStatus::kGeneral:
      return IBV_WC_GENERAL_ERR;
  }
  return IBV_WC_GENERAL_ERR;
}

uint32_t OpcodeNumber(CompletionOpcode opcode) {
  switch (opcode) {
    case CompletionOpcode::kSend:
      return IBV_WC_SEND;
    case CompletionOpcode::kWrite:
      return IBV_WC_RDMA_WRITE;
    case CompletionOpcode::kRead:
      return IBV_WC_RDMA_READ;
    case CompletionOpcode::kCompareSwap:
      return IBV_WC_COMP_SWAP;
    case CompletionOpcode::kFetchAdd:
      return IBV_WC_FETCH_ADD;
    case CompletionOpcode::kBindWindow:
      return IBV_WC_BIND_MW;
    case CompletionOpcode::kLocalInvalidate:
      return IBV_WC_LOCAL_INV;
    case CompletionOpcode::kReceive:
      return IBV_WC_RECV;
    case CompletionOpcode::kReceiveWriteWithImm:
      return IBV_WC_RECV_RDMA_WITH_IMM;
  }
  return IBV_WC_SEND;
}

uint8_t MtuNumber(uint32_t bytes) {
  for (uint8_t number = IBV_MTU_256; number <= IBV_MTU_4096; ++number) {
    if (MtuBytes(number) == bytes) return number;
  }
  return 0;
}

uint32_t MtuBytes(uint8_t number) {
  return number >= IBV_MTU_256 && number <= IBV_MTU_4096 ? uint32_t{128} << number : 0;
}

ib_uverbs_wc ToWorkCompletion(const Completion& completion, uint64_t request) {
  ib_uverbs_wc wc{};
  wc.wr_id = request;
  wc.status = StatusNumber(completion.status);
  wc.vendor_err = completion.provider_code;
  wc.qp_num = completion.queue_pair_number;
  if (completion.status != CompletionStatus::kSuccess) return wc;
  wc.opcode = OpcodeNumber(completion.opcode);
  wc.byte_len = completion.byte_count;
  if (completion.has_immediate) {
    wc.wc_flags |= IBV_WC_WITH_IMM;
    wc.ex.imm_data = htonl(completion.immediate);
  }
  if (completion.has_invalidated) {
    wc.wc_flags |= IBV_WC_WITH_INV;
    wc.ex.invalidate_rkey = completion.invalidated_rkey;
  }
  return wc;
}

Address AddressOfGid(const uint8_t (&gid)[16]) {
  Address address;
  std::copy(std::begin(gid), std::end(gid), address.ip.begin());
  return address;
}

}  // namespace tokamak::verbs::kernel
