#include "lib/os/processor.h"

#if defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace tokamak::os {

bool ProcessorHasAes() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("aes") != 0 && __builtin_cpu_supports("pclmul") != 0;
#elif defined(__aarch64__)
  const unsigned long has = getauxval(AT_HWCAP);
  return (has & HWCAP_AES) != 0 && (has & HWCAP_PMULL) != 0;
#else
  return false;
#endif
}

}  // namespace tokamak::os
