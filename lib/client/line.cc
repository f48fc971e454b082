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

  void Take(std::shared_ptr<DaemonConnection> connection) {
    node = &*nodes.insert(connection->welcome().node).first;
    auto next = std::make_shared<Held>(Held{std::move(connection)});
    seen = next.get();
    held = std::move(next);
  }

  const uint64_t forks = os::ForkCount();  // which process this is of
  std::atomic<Held*> seen;                 // held, whole at any time: for a child of fork()

  std::mutex mutex;  // for everything below
  std::shared_ptr<const Held> held;
  std::shared_ptr<const Interrupt> attempt;  // while a thread connects anew; fired when that is over
  absl::Status said;                         // by the last attempt
  Deadline next_attempt = Deadline::After(base::Duration());
  std::set<std::string> nodes;  // all names that its node has had
  const std::string* node = nullptr;
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

// A child leaves its parent's side as it is, but for the connection (DaemonConnection::Drop).
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
    // No other thread of this process looks at the parent's side any more.
    side = new Side(std::move(side->seen.load()->connection));
    side_.store(side, std::memory_order_release);
    return *side;
  }
  while ((side = side_.load(std::memory_order_acquire))->forks != forks) sched_yield();
  return *side;
}

std::shared_ptr<const Line::Held> Line::Hold() {
  Side& side = OfThisProcess();
  const std::lock_guard<std::mutex> lock(side.mutex);
  return side.held;
}

const std::string& Line::node() {
  Side& side = OfThisProcess();
  const std::lock_guard<std::mutex> lock(side.mutex);
  return *side.node;
}

absl::Status Line::Renew(DaemonConnection& lost, Deadline deadline, const Interrupt* interrupt) {
  const Uncancelled uncancelled;
  Side& side = OfThisProcess();
  std::unique_lock<std::mutex> lock(side.mutex);
  while (side.held->connection.get() == &lost) {
    if (side.attempt != nullptr) {
      if (absl::Status s = AwaitAttempt(lock, side, deadline, interrupt); !s.ok()) return s;
    } else if (!side.next_attempt.passed()) {
      return side.said.ok() ? lost.status() : side.said;
    } else if (absl::Status s = ConnectAnew(lock, side, deadline, interrupt); !s.ok()) {
      return s;
    }
  }
  return absl::OkStatus();
}

absl::Status Line::AwaitAttempt(std::unique_lock<std::mutex>& lock, const Side& side, Deadline deadline,
                                const Interrupt* interrupt) const {
  const std::shared_ptr<const Interrupt> attempt = side.attempt;
  lock.unlock();
  while (!attempt->fired()) {
    if (deadline.passed()) {
      return absl::DeadlineExceededError(absl::StrCat("the daemon at ", path_, " took no connection in time"));
    }
    const base::Duration wait = DaemonConnection::NextLook(deadline).remaining();
    const int interrupted = interrupt == nullptr ? -1 : interrupt->descriptor();
    if (os::AwaitReadable(interrupted, attempt->descriptor(), wait) && !interrupt->GoesOn()) {
      return DaemonConnection::Interrupted();
    }
  }
  lock.lock();
  return absl::OkStatus();
}

absl::Status Line::ConnectAnew(std::unique_lock<std::mutex>& lock, Side& side, Deadline deadline,
                               const Interrupt* interrupt) {
  Result<Interrupt> over = Interrupt::Make();
  if (!over.ok()) return absl::ResourceExhaustedError(over.status().message());
  side.attempt = std::make_shared<Interrupt>(*std::move(over));
  DaemonConnection::Options options = options_;
  options.first_id = side.held->connection->next_id();
  lock.unlock();
  // Also where this thread is cancelled.
  const auto end = absl::MakeCleanup([&] {
    if (!lock.owns_lock()) lock.lock();
    side.attempt->Fire();
    side.attempt.reset();
  });
  absl::StatusOr<std::shared_ptr<DaemonConnection>> connection =
      DaemonConnection::Open(path_, options, Deadline::Earlier(deadline, CallDeadline()), interrupt);
  lock.lock();
  if (absl::IsCancelled(connection.status())) return connection.status();  // it says nothing of the daemon
  side.next_attempt = Deadline::After(kReconnectPause);
  side.said = connection.status();
  if (connection.ok()) side.Take(*std::move(connection));
  return side.said;
}

}  // namespace tokamak::client
