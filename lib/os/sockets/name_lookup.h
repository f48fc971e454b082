// NameLookup asks the system's resolver (getaddrinfo(3): /etc/hosts, DNS) for the addresses of a
// host, on threads of its own, since an answer may take seconds.
//
// Requests for a name that is being looked up share one answer. An address in place of a name needs
// no thread.
// Law: see lib/base/handle.h. A look-up outlives its handles and this object: getaddrinfo cannot be
// stopped.
// Bounds: kMaxLookups run at once (kResourceExhausted); kMaxAddresses of one host are returned.
// Thread rule: its loop.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/base/answers.h"
#include "lib/base/containers/intrusive_list.h"
#include "lib/base/event_loop.h"
#include "lib/base/handle.h"

namespace tokamak::os {

class NameLookup final {
 public:
  static constexpr size_t kMaxLookups = 16;
  static constexpr size_t kMaxAddresses = 16;

  // "10.0.0.1", "::1", "fe80::1%eth0": best first, at least one.
  using Addresses = std::vector<std::string>;
  using Callback = std::function<void(absl::StatusOr<Addresses>)>;

  // `loop` must outlive it.
  explicit NameLookup(base::EventLoop& loop);
  ~NameLookup();
  NameLookup(const NameLookup&) = delete;
  NameLookup& operator=(const NameLookup&) = delete;

  // kUnavailable: the text says why the name has no address. There is no deadline: drop the handle.
  [[nodiscard]] base::Pending Lookup(const std::string& host, Callback done);

 private:
  struct Shared;
  struct Waiter;
  using Waiters = std::vector<Waiter*>;

  void Collect();

  base::Answers answers_;
  std::map<std::string, Waiters> running_;  // by host
  const std::shared_ptr<Shared> shared_;
  const std::unique_ptr<base::Signal> found_;
};

bool IsIpAddress(const std::string& host);

}  // namespace tokamak::os
