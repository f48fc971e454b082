#include "lib/os/secret_seed.h"

#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>

#include "gtest/gtest.h"

namespace {

bool has_no_random_numbers = false;  // the kernel

}  // namespace

// In place of the C library's.
extern "C" ssize_t getrandom(void* bytes, size_t size, unsigned flags) {
  if (has_no_random_numbers) {
    errno = ENOSYS;
    return -1;
  }
  return syscall(SYS_getrandom, bytes, size, flags);
}

namespace tokamak::os {
namespace {

TEST(SecretSeedTest, ASeedDiffersEachTime) { EXPECT_NE(SecretSeed(), SecretSeed()); }

TEST(SecretSeedTest, ASeedIsNeverAGuess) {
  EXPECT_DEATH(
      {
        has_no_random_numbers = true;
        SecretSeed();
      },
      "getrandom");
}

}  // namespace
}  // namespace tokamak::os
