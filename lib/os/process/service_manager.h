// ServiceManager reports the state of this process, ready, reloading, stopping or alive, to systemd
// or another service manager. It speaks the protocol of sd_notify(3): one datagram for each report.
//
// Without NOTIFY_SOCKET it sends no reports. It never waits: a report that cannot be delivered is
// lost. Thread rule: one thread.
#pragma once

#include <string>

#include "lib/base/event_loop.h"
#include "lib/base/time.h"
#include "lib/os/file_descriptor.h"

namespace tokamak::os {

class ServiceManager final {
 public:
  // Reads NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID.
  ServiceManager();
  ServiceManager(const ServiceManager&) = delete;
  ServiceManager& operator=(const ServiceManager&) = delete;

  // `status`: one line for `systemctl status`.
  void Ready(const std::string& status);
  void Reloading();  // until the next Ready
  void Stopping(const std::string& status);

  // Reports from now on, twice in each watchdog() time, that `loop` turns. No effect without a
  // watchdog.
  void KeepAlive(base::EventLoop& loop);

  // Returns the time without a report after which the manager ends us; zero: never.
  base::Duration watchdog() const { return watchdog_; }

 private:
  void Say(const std::string& words);
  void Turn(base::EventLoop& loop);

  std::string address_;  // of a Unix socket; '@' first: an abstract one; empty: no manager
  FileDescriptor socket_;
  base::Duration watchdog_;
  base::Timer turn_;
};

}  // namespace tokamak::os
