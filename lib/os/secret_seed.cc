#include "lib/os/secret_seed.h"

#include <sys/random.h>
#include <sys/types.h>

#include "lib/base/check.h"

namespace tokamak::os {

uint64_t SecretSeed() {
  uint64_t seed = 0;
  CHECK_EQ(getrandom(&seed, sizeof(seed), 0), static_cast<ssize_t>(sizeof(seed)));
  return seed;
}

}  // namespace tokamak::os
