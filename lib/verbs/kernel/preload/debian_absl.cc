// The few objects of Debian's static Abseil that cannot be part of a shared object, written again.
//
// These libraries are compiled with -fPIE: they address thread-local variables and stderr in ways
// that only a program can. These functions are linked in their place.
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>

#include "absl/base/config.h"
#include "absl/container/internal/raw_hash_set.h"
#include "absl/strings/internal/cordz_functions.h"

namespace absl {
ABSL_NAMESPACE_BEGIN

// absl/base/internal/sysinfo.cc
namespace base_internal {
int NumCPUs();
double NominalCPUFrequency();
pid_t GetTID();
pid_t GetCachedTID();

int NumCPUs() { return static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)); }
double NominalCPUFrequency() { return 1.0; }
pid_t GetTID() { return static_cast<pid_t>(syscall(SYS_gettid)); }
pid_t GetCachedTID() { return GetTID(); }
}  // namespace base_internal

// absl/strings/internal/cordz_functions.cc: sampling of cords, which is off.
namespace cord_internal {
constexpr int64_t kNever = int64_t{1} << 40;
#if ABSL_LTS_RELEASE_VERSION < 20240722
thread_local int64_t cordz_next_sample = kNever;  // NOLINT: Abseil's name
bool cordz_should_profile_slow() {
  cordz_next_sample = kNever;
  return false;
}
#else
thread_local SamplingState cordz_next_sample = {kNever, 0};  // NOLINT: Abseil's name
int64_t cordz_should_profile_slow(SamplingState& state) {
  state.next_sample = kNever;
  return 0;
}
#endif
}  // namespace cord_internal

ABSL_NAMESPACE_END
}  // namespace absl

// For Abseil's last words before it aborts, which are lost.
extern "C" {
#undef stderr
FILE* stderr = nullptr;
}
