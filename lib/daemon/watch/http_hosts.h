// HttpHosts knows the names of this machine that requests to --http may use.
//
// A web site can point its own name to this machine once a browser here has loaded its page (DNS
// rebinding): the page's script then reads our answers as if they came from the site. Such a
// request names the site in its Host. So only hosts that no stranger controls are allowed:
// addresses, localhost, this machine's own name, and given names.
// Thread rule: any thread.
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

  // kInvalidArgument: `name` is no host name without a port.
  static absl::Status Check(const std::string& name);

  // Adds a name of this machine; ignores an empty one.
  void Add(absl::string_view name);

  // Returns true if requests may name `host`, with a port or without.
  bool Allows(absl::string_view host) const;

 private:
  mutable base::Mutex mutex_;
  std::set<std::string> names_ ABSL_GUARDED_BY(mutex_) = {"localhost"};  // lower-case, without a final dot
};

}  // namespace tokamak::daemon
