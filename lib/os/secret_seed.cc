#include "lib/os/secret_seed.h"

#include <sys/random.h>
#include <sys/types.h>

#include <cerrno>

#include "lib/base/check.h"

namespace tokamak::os {

uint64_t SecretSeed() {
  uint8_t bytes[sizeof(uint64_t)];
  DrawSecretBytes(absl::MakeSpan(bytes));
  uint64_t seed = 0;
  for (const uint8_t byte : bytes) seed = seed << 8 | byte;
  return seed;
}

void DrawSecretBytes(absl::Span<uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t drawn = getrandom(bytes.data(), bytes.size(), 0);
    CHECK(drawn > 0 || (drawn < 0 && errno == EINTR)) << "getrandom: the kernel has no random numbers";
    if (drawn > 0) bytes.remove_prefix(static_cast<size_t>(drawn));
  }
}

}  // namespace tokamak::os
