#include "lib/os/process/descriptor_limit.h"

#include <sys/resource.h>

#include "lib/base/check.h"
#include "lib/base/log.h"

namespace tokamak::os {

uint64_t RaiseDescriptorLimit() {
  rlimit limit{};
  PCHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
  const rlim_t before = limit.rlim_cur;
  limit.rlim_cur = limit.rlim_max;
  if (before == limit.rlim_max) return before;
  if (setrlimit(RLIMIT_NOFILE, &limit) == 0) return limit.rlim_cur;
  PLOG(WARNING) << "the limit of descriptors stays " << before;
  return before;
}

}  // namespace tokamak::os
