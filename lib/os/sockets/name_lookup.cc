#include "lib/os/sockets/name_lookup.h"

#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "lib/base/mutex.h"
#include "lib/os/thread.h"

namespace tokamak::os {
namespace {

absl::StatusOr<NameLookup::Addresses> Ask(const std::string& host, int flags) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* first = nullptr;
  const int error = getaddrinfo(host.c_str(), nullptr, &hints, &first);
  if (error != 0) return absl::UnavailableError(gai_strerror(error));
  NameLookup::Addresses addresses;
  for (const addrinfo* info = first; info != nullptr; info = info->ai_next) {
    char text[NI_MAXHOST];
    if (addresses.size() == NameLookup::kMaxAddresses ||
        getnameinfo(info->ai_addr, info->ai_addrlen, text, sizeof(text), nullptr, 0, NI_NUMERICHOST) != 0) {
      continue;
    }
    if (std::find(addresses.begin(), addresses.end(), text) == addresses.end()) addresses.emplace_back(text);
  }
  freeaddrinfo(first);
  if (addresses.empty()) return absl::UnavailableError("it has no address");
  return addresses;
}

}  // namespace

// Shared with the threads, which may outlive us.
struct NameLookup::Shared {
  struct Found {
    std::string host;
    absl::StatusOr<Addresses> addresses;
  };
  base::Mutex mutex;
  std::vector<Found> found ABSL_GUARDED_BY(mutex);
  base::Signal* signal ABSL_GUARDED_BY(mutex) = nullptr;  // null: the results are no longer wanted
};

struct NameLookup::Waiter final : base::Handle {
  ~Waiter() override {
    if (waiters != nullptr) waiters->erase(std::find(waiters->begin(), waiters->end(), this));
  }

  Waiters* waiters = nullptr;  // null: being answered
  Callback done;
  base::Pending answer;
};

NameLookup::NameLookup(base::EventLoop& loop)
    : answers_(loop), shared_(std::make_shared<Shared>()), found_(loop.MakeSignal([this] { Collect(); })) {
  const base::MutexLock lock(shared_->mutex);
  shared_->signal = found_.get();
}

NameLookup::~NameLookup() {
  for (auto& [host, waiters] : running_) {
    for (Waiter* waiter : waiters) waiter->waiters = nullptr;
  }
  const base::MutexLock lock(shared_->mutex);
  shared_->signal = nullptr;
}

base::Pending NameLookup::Lookup(const std::string& host, Callback done) {
  if (absl::StatusOr<Addresses> numeric = Ask(host, AI_NUMERICHOST); numeric.ok()) {
    return answers_.Add([done = std::move(done), numeric = *std::move(numeric)] { done(numeric); });
  }
  const auto running = running_.find(host);
  if (running == running_.end()) {
    if (running_.size() >= kMaxLookups) {
      return answers_.Add([done = std::move(done)] {
        done(absl::ResourceExhaustedError("too many names are being looked up: see whether the DNS server answers"));
      });
    }
    StartThread({"lookup"}, [shared = shared_, host] {
      Shared::Found found{host, Ask(host, AI_ADDRCONFIG)};
      const base::MutexLock lock(shared->mutex);
      if (shared->signal == nullptr) return;
      shared->found.push_back(std::move(found));
      shared->signal->Raise();
    }).detach();
  }
  auto waiter = std::make_unique<Waiter>();
  waiter->done = std::move(done);
  waiter->waiters = &running_[host];
  waiter->waiters->push_back(waiter.get());
  return waiter;
}

void NameLookup::Collect() {
  std::vector<Shared::Found> all;
  {
    const base::MutexLock lock(shared_->mutex);
    all.swap(shared_->found);
  }
  for (const Shared::Found& found : all) {
    const auto asked = running_.extract(found.host);
    for (Waiter* waiter : asked.mapped()) {
      waiter->waiters = nullptr;
      waiter->answer = answers_.Add([done = std::move(waiter->done), addresses = found.addresses] { done(addresses); });
    }
  }
}

bool IsIpAddress(const std::string& host) { return Ask(host, AI_NUMERICHOST).ok(); }

}  // namespace tokamak::os
