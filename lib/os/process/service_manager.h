// ServiceManager tells systemd, or who else started this process as a service, how it is: ready,
// reloading, stopping, alive. It speaks the protocol of sd_notify(3): one datagram for each word.
//
// Where nobody asked (no NOTIFY_SOCKET), nothing is said. A word that cannot be delivered is lost:
// it never waits.
// Thread rule: one thread.
#pragma once

#include <string>

#include "lib/base/event_loop.h"
#include "lib/base/time.h"
#include "lib/os/file_descriptor.h"

namespace tokamak::os {

class ServiceManager final {
 public:
  // Of the environment, as systemd sets it: NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID.
  ServiceManager();
  ServiceManager(const ServiceManager&) = delete;
  ServiceManager& operator=(const ServiceManager&) = delete;

  // `status`: one line, for `systemctl status`.
  void Ready(const std::string& status);
  void Reloading();  // until Ready is said again
  void Stopping(const std::string& status);

  // From now on says that `loop` turns, twice in the time after which the manager would end us;
  // nothing where it does not watch.
  void KeepAlive(base::EventLoop& loop);

  // After so long without a word the manager ends us; zero: never.
  base::Duration watchdog() const { return watchdog_; }

 private:
  void Say(const std::string& words);
  void Turn(base::EventLoop& loop);

  std::string address_;  // of a Unix socket; '@' first: an abstract one; empty: nobody asked
  FileDescriptor socket_;
  base::Duration watchdog_;
  base::Timer turn_;
};

}  // namespace tokamak::os
