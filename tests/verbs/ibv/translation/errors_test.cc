#include "lib/verbs/ibv/translation/errors.h"

#include <sys/resource.h>

#include <cerrno>
#include <set>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tokamak::verbs::ibv {
namespace {

using testing::HasSubstr;

TEST(ErrnoStatusTest, KeepsTheCallAndTheSystemsWords) {
  const absl::Status status = ErrnoStatus(EINVAL, "ibv_create_qp");
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("ibv_create_qp: Invalid argument"));
}

TEST(ErrnoStatusTest, ANegatedErrorIsTheSame) { EXPECT_EQ(ErrnoStatus(-ENOMEM, "call"), ErrnoStatus(ENOMEM, "call")); }

TEST(ErrnoStatusTest, ErrorsMapAsDocumented) {
  EXPECT_TRUE(absl::IsResourceExhausted(ErrnoStatus(ENOMEM, "call")));
  EXPECT_TRUE(absl::IsUnimplemented(ErrnoStatus(EOPNOTSUPP, "call")));
  EXPECT_TRUE(absl::IsUnimplemented(ErrnoStatus(ENOSYS, "call")));
  EXPECT_TRUE(absl::IsAlreadyExists(ErrnoStatus(EADDRINUSE, "call")));
  EXPECT_TRUE(absl::IsPermissionDenied(ErrnoStatus(EACCES, "call")));
  EXPECT_TRUE(absl::IsUnavailable(ErrnoStatus(ENODEV, "call")));
  EXPECT_TRUE(absl::IsUnavailable(ErrnoStatus(EIO, "call")));
  EXPECT_TRUE(absl::IsInternal(ErrnoStatus(EPIPE, "call")));
}

TEST(RegistrationStatusTest, NamesTheLimitOfLockedMemoryAndTheRemedy) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_MEMLOCK, &before), 0);
  rlimit lower = before;
  lower.rlim_cur = std::min<rlim_t>(before.rlim_cur, 64 << 10);
  ASSERT_EQ(setrlimit(RLIMIT_MEMLOCK, &lower), 0);
  const absl::Status status = RegistrationStatus(ENOMEM, 1 << 20);
  ASSERT_EQ(setrlimit(RLIMIT_MEMLOCK, &before), 0);
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  const std::string text(status.message());
  EXPECT_THAT(text, HasSubstr("1048576 bytes"));
  EXPECT_THAT(text, HasSubstr("RLIMIT_MEMLOCK) is 64 KiB"));
  EXPECT_THAT(text, HasSubstr("ulimit -l unlimited"));
}

TEST(RegistrationStatusTest, MissingMemoryIsTheCallersMistake) {
  EXPECT_TRUE(absl::IsInvalidArgument(RegistrationStatus(EFAULT, 4096)));
}

TEST(CompletionStatusTest, EachStatusOfAReliableQueuePairHasOneOfOurs) {
  const ibv_wc_status ours[] = {
      IBV_WC_SUCCESS,           IBV_WC_LOC_LEN_ERR,    IBV_WC_LOC_QP_OP_ERR, IBV_WC_LOC_PROT_ERR,
      IBV_WC_WR_FLUSH_ERR,      IBV_WC_MW_BIND_ERR,    IBV_WC_BAD_RESP_ERR,  IBV_WC_LOC_ACCESS_ERR,
      IBV_WC_REM_INV_REQ_ERR,   IBV_WC_REM_ACCESS_ERR, IBV_WC_REM_OP_ERR,    IBV_WC_RETRY_EXC_ERR,
      IBV_WC_RNR_RETRY_EXC_ERR, IBV_WC_REM_ABORT_ERR,  IBV_WC_FATAL_ERR,     IBV_WC_GENERAL_ERR};
  std::set<CompletionStatus> seen;
  for (const ibv_wc_status status : ours) seen.insert(ToCompletionStatus(status));
  EXPECT_EQ(seen.size(), std::size(ours));
  EXPECT_EQ(ToCompletionStatus(IBV_WC_SUCCESS), CompletionStatus::kSuccess);
  EXPECT_EQ(ToCompletionStatus(IBV_WC_WR_FLUSH_ERR), CompletionStatus::kFlushed);
  EXPECT_EQ(ToCompletionStatus(IBV_WC_RNR_RETRY_EXC_ERR), CompletionStatus::kRnrRetryExceeded);
}

TEST(CompletionStatusTest, ImpossibleStatusesAreGeneral) {
  for (const ibv_wc_status status : {IBV_WC_LOC_RDD_VIOL_ERR, IBV_WC_INV_EECN_ERR, IBV_WC_TM_ERR}) {
    EXPECT_EQ(ToCompletionStatus(status), CompletionStatus::kGeneral);
  }
}

}  // namespace
}  // namespace tokamak::verbs::ibv
