// HttpHosts knows the names of this machine that requests to --http may use.
//
// Against DNS rebinding: a site's page could read our answers by pointing its own name at this
// machine; its requests name it as Host. Allowed are hosts that no stranger controls: addresses,
// localhost, this machine's name, and given names. Thread rule: any thread.
#pragma once

#include <cstddef>
#include <set>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "lib/base/mutex.h"

namespace tokamak::daemon {

class HttpHosts final {
 public:
  // Bound of --http-host.
  static constexpr size_t kMaxNames = 64;

  // kInvalidArgument: no host name without a port.
  static absl::Status Check(const std::string& name);

  // Ignores an empty name.
  void Add(absl::string_view name);

  // `host` may have a port.
  bool Allows(absl::string_view host) const;

 private:
  mutable base::Mutex mutex_;
  std::set<std::string> names_ ABSL_GUARDED_BY(mutex_) = {"localhost"};  // lower-case, no final dot
};

}  // namespace tokamak::daemon
