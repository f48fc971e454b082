#include "lib/verbs/ibv/translation/errors.h"

#include <sys/resource.h>

#include <cerrno>
#include <cstdlib>
#include <string>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace tokamak::verbs::ibv {
namespace {

std::string LockedMemoryLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0) return "unknown";
  if (limit.rlim_cur == RLIM_INFINITY) return "unlimited";
  return absl::StrCat(limit.rlim_cur / 1024, " KiB");
}

}  // namespace

absl::Status ErrnoStatus(int error, absl::string_view call) {
  const int code = std::abs(error);
  const std::string text = absl::StrCat(call, ": ", std::generic_category().message(code));
  switch (code) {
    case EINVAL:
    case EFAULT:
    case E2BIG:
    case EMSGSIZE:
      return absl::InvalidArgumentError(text);
    case ENOMEM:
    case ENOSPC:
    case EAGAIN:
    case EMFILE:
    case ENFILE:
      return absl::ResourceExhaustedError(text);
    case EOPNOTSUPP:
    case ENOSYS:
    case EPROTONOSUPPORT:
      return absl::UnimplementedError(text);
    case EADDRINUSE:
    case EEXIST:
      return absl::AlreadyExistsError(text);
    case EPERM:
    case EACCES:
      return absl::PermissionDeniedError(text);
    case EBUSY:
    case ENOTCONN:
      return absl::FailedPreconditionError(text);
    case ENOENT:
      return absl::NotFoundError(text);
    case ENODEV:
    case ENXIO:
    case EIO:
      return absl::UnavailableError(absl::StrCat(text, "; the device is gone or broken"));
    case ETIMEDOUT:
    case EHOSTUNREACH:
    case ENETUNREACH:
    case EADDRNOTAVAIL:
      return absl::UnavailableError(text);
    default:
      return absl::InternalError(text);
  }
}

absl::Status RegistrationStatus(int error, uint64_t bytes) {
  const absl::Status status = ErrnoStatus(error, absl::StrCat("ibv_reg_mr of ", bytes, " bytes"));
  switch (std::abs(error)) {
    case ENOMEM:
    case EAGAIN:
      return absl::ResourceExhaustedError(
          absl::StrCat(status.message(), "; the limit of locked memory (RLIMIT_MEMLOCK) is ", LockedMemoryLimit(),
                       ": raise it with 'ulimit -l unlimited', LimitMEMLOCK=infinity in a systemd unit, "
                       "'--ulimit memlock=-1' for a container"));
    case EFAULT:
      return absl::InvalidArgumentError(
          absl::StrCat(status.message(), "; all of it must be mapped, and shared memory for writing, too"));
    default:
      return status;
  }
}

CompletionStatus ToCompletionStatus(ibv_wc_status status) {
  switch (status) {
    case IBV_WC_SUCCESS:
      return CompletionStatus::kSuccess;
    case IBV_WC_LOC_LEN_ERR:
      return CompletionStatus::kLocalLength;
    case IBV_WC_LOC_QP_OP_ERR:
      return CompletionStatus::kLocalQpOperation;
    case IBV_WC_LOC_PROT_ERR:
      return CompletionStatus::kLocalProtection;
    case IBV_WC_WR_FLUSH_ERR:
      return CompletionStatus::kFlushed;
    case IBV_WC_MW_BIND_ERR:
      return CompletionStatus::kWindowBind;
    case IBV_WC_BAD_RESP_ERR:
      return CompletionStatus::kBadResponse;
    case IBV_WC_LOC_ACCESS_ERR:
      return CompletionStatus::kLocalAccess;
    case IBV_WC_REM_INV_REQ_ERR:
      return CompletionStatus::kRemoteInvalidRequest;
    case IBV_WC_REM_ACCESS_ERR:
      return CompletionStatus::kRemoteAccess;
    case IBV_WC_REM_OP_ERR:
      return CompletionStatus::kRemoteOperation;
    case IBV_WC_RETRY_EXC_ERR:
      return CompletionStatus::kRetryExceeded;
    case IBV_WC_RNR_RETRY_EXC_ERR:
      return CompletionStatus::kRnrRetryExceeded;
    case IBV_WC_REM_ABORT_ERR:
      return CompletionStatus::kRemoteAborted;
    case IBV_WC_FATAL_ERR:
      return CompletionStatus::kFatal;
    default:
      return CompletionStatus::kGeneral;
  }
}

}  // namespace tokamak::verbs::ibv
