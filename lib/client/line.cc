#include "lib/client/line.h"

#include <sched.h>

#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "lib/client/cancellation.h"
#include "lib/os/process/forks.h"
#include "lib/os/sockets/unix_socket.h"

namespace tokamak::client {

struct Line::Side {
  explicit Side(std::shared_ptr<DaemonConnection> connection) { Take(std::move(connection)); }

  void Take(std::shared_ptr<DaemonConnection> connection) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    node = &*nodes.insert(connection->welcome().node).first;
    auto next = std::make_shared<Held>(Held{std::move(connection)});
    seen = next.get();
    held = std::move(next);
  }

  absl::Status AwaitAttempt(const std::string& path, Deadline deadline, const Interrupt* interrupt)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  absl::Status ConnectAnew(const Line& line, Deadline deadline, const Interrupt* interrupt)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);

  const uint64_t forks = os::ForkCount();  // identifies the process
  std::atomic<Held*> seen;                 // equal to held, and whole at any time, for a child of fork()

  base::Mutex mutex;
  std::shared_ptr<const Held> held ABSL_GUARDED_BY(mutex);
  // Set while a thread connects anew; fired when that is over.
  std::shared_ptr<const Interrupt> attempt ABSL_GUARDED_BY(mutex);
  absl::Status said ABSL_GUARDED_BY(mutex);  // last attempt's result
  Deadline next_attempt ABSL_GUARDED_BY(mutex) = Deadline::After(base::Duration());
  std::set<std::string> nodes ABSL_GUARDED_BY(mutex);  // names that its node has had
  const std::string* node ABSL_GUARDED_BY(mutex) = nullptr;
};

absl::StatusOr<std::shared_ptr<Line>> Line::Open(std::string socket_path, DaemonConnection::Options options) {
  absl::StatusOr<std::shared_ptr<DaemonConnection>> connection =
      DaemonConnection::Open(socket_path, options, Deadline::After(options.call_timeout));
  if (!connection.ok()) return connection.status();
  return std::make_shared<Line>(std::move(socket_path), std::move(options), *std::move(connection));
}

Line::Line(std::string path, DaemonConnection::Options options, std::shared_ptr<DaemonConnection> connection)
    : path_(std::move(path)),
      options_(std::move(options)),
      side_(new Side(std::move(connection))),
      taker_(os::ForkCount()) {}

// A child of fork() leaves its parent's side alone, except for the connection
// (DaemonConnection::Drop).
Line::~Line() {
  Side* const side = side_.load(std::memory_order_acquire);
  if (side->forks == os::ForkCount()) {
    delete side;
  } else {
    side->seen.load()->connection.reset();
  }
}

Line::Side& Line::OfThisProcess() {
  const uint64_t forks = os::ForkCount();
  Side* side = side_.load(std::memory_order_acquire);
  if (side->forks == forks) return *side;
  uint64_t before = taker_.load();
  if (before != forks && taker_.compare_exchange_strong(before, forks)) {
    // No thread of this process looks at the parent's side any more.
    side = new Side(std::move(side->seen.load()->connection));
    side_.store(side, std::memory_order_release);
    return *side;
  }
  while ((side = side_.load(std::memory_order_acquire))->forks != forks) sched_yield();
  return *side;
}

std::shared_ptr<const Line::Held> Line::Hold() {
  Side& side = OfThisProcess();
  const base::MutexLock lock(side.mutex);
  return side.held;
}

const std::string& Line::node() {
  Side& side = OfThisProcess();
  const base::MutexLock lock(side.mutex);
  return *side.node;
}

absl::Status Line::Renew(DaemonConnection& lost, Deadline deadline, const Interrupt* interrupt) {
  const Uncancelled uncancelled;
  Side& side = OfThisProcess();
  const base::MutexLock lock(side.mutex);
  while (side.held->connection.get() == &lost) {
    if (side.attempt != nullptr) {
      if (absl::Status s = side.AwaitAttempt(path_, deadline, interrupt); !s.ok()) return s;
    } else if (!side.next_attempt.passed()) {
      return side.said.ok() ? lost.status() : side.said;
    } else if (absl::Status s = side.ConnectAnew(*this, deadline, interrupt); !s.ok()) {
      return s;
    }
  }
  return absl::OkStatus();
}

absl::Status Line::Side::AwaitAttempt(const std::string& path, Deadline deadline, const Interrupt* interrupt) {
  const std::shared_ptr<const Interrupt> running = attempt;
  return mutex.RunUnlocked([&]() -> absl::Status {
    while (!running->fired()) {
      if (deadline.passed()) {
        return absl::DeadlineExceededError(absl::StrCat("the daemon at ", path, " took no connection in time"));
      }
      const base::Duration wait = DaemonConnection::NextLook(deadline).remaining();
      const int interrupted = interrupt == nullptr ? -1 : interrupt->descriptor();
      if (os::AwaitReadable(interrupted, running->descriptor(), wait) && !interrupt->GoesOn()) {
        return DaemonConnection::Interrupted();
      }
    }
    return absl::OkStatus();
  });
}

absl::Status Line::Side::ConnectAnew(const Line& line, Deadline deadline, const Interrupt* interrupt) {
  Result<Interrupt> over = Interrupt::Make();
  if (!over.ok()) return absl::ResourceExhaustedError(over.status().message());
  attempt = std::make_shared<Interrupt>(*std::move(over));
  DaemonConnection::Options options = line.options();
  options.first_id = held->connection->next_id();
  // Runs even when this thread is cancelled.
  const auto end = absl::MakeCleanup([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    attempt->Fire();
    attempt.reset();
  });
  absl::StatusOr<std::shared_ptr<DaemonConnection>> connection = mutex.RunUnlocked([&] {
    return DaemonConnection::Open(line.path(), options, Deadline::Earlier(deadline, line.CallDeadline()), interrupt);
  });
  if (absl::IsCancelled(connection.status())) return connection.status();  // it says nothing about the daemon
  next_attempt = Deadline::After(kReconnectPause);
  said = connection.status();
  if (connection.ok()) Take(*std::move(connection));
  return said;
}

}  // namespace tokamak::client
