// HttpHosts knows by which names of this machine a request may ask for what --http shows.
//
// A web site can have its own name point to this machine once a browser here has loaded its page
// (DNS rebinding): that page's script then reads what is shown here as if it came from the site.
// Such a request names the site in its Host. So what is answered to is what no stranger can make
// point elsewhere: an address, localhost, this machine's own name, and the names it is told.
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
  // Names that --http-host may give.
  static constexpr size_t kMaxNames = 64;

  // kInvalidArgument: `name` is not one of a host, without a port.
  static absl::Status Check(const std::string& name);

  // Another name of this machine; nothing where it is empty.
  void Add(absl::string_view name);

  // `host`: as a request has it, with a port or without.
  bool Allows(absl::string_view host) const;

 private:
  mutable base::Mutex mutex_;
  std::set<std::string> names_ ABSL_GUARDED_BY(mutex_) = {"localhost"};  // in small letters, without a dot at the end
};

}  // namespace tokamak::daemon
