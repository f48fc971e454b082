#include "lib/os/process/service_manager.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "lib/base/log.h"

namespace tokamak::os {

namespace {

std::string Variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

base::Duration WatchdogOf(const std::string& microseconds, const std::string& pid) {
  int64_t time = 0, whose = 0;
  if (!absl::SimpleAtoi(microseconds, &time) || time <= 0) return base::Duration();
  if (!pid.empty() && (!absl::SimpleAtoi(pid, &whose) || whose != getpid())) return base::Duration();
  return base::Microseconds(time);
}

std::string OneLine(const std::string& status) { return absl::StrReplaceAll(status, {{"\n", " "}}); }

}  // namespace

ServiceManager::ServiceManager() : address_(Variable("NOTIFY_SOCKET")) {
  sockaddr_un address{};
  if (address_.empty()) return;
  if ((address_[0] != '/' && address_[0] != '@') || address_.size() >= sizeof address.sun_path) {
    LOG(WARNING) << "NOTIFY_SOCKET is no address of a Unix socket: the service manager is told nothing";
    return;
  }
  watchdog_ = WatchdogOf(Variable("WATCHDOG_USEC"), Variable("WATCHDOG_PID"));
  socket_ = FileDescriptor(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

void ServiceManager::Ready(const std::string& status) { Say(absl::StrCat("READY=1\nSTATUS=", OneLine(status))); }

void ServiceManager::Reloading() { Say("RELOADING=1"); }

void ServiceManager::Stopping(const std::string& status) { Say(absl::StrCat("STOPPING=1\nSTATUS=", OneLine(status))); }

void ServiceManager::KeepAlive(base::EventLoop& loop) {
  if (watchdog_ > base::Duration()) Turn(loop);
}

void ServiceManager::Turn(base::EventLoop& loop) {
  Say("WATCHDOG=1");
  turn_ = loop.RunAfter(watchdog_ / 2, [this, &loop] { Turn(loop); });
}

void ServiceManager::Say(const std::string& words) {
  if (!socket_.valid()) return;
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  std::memcpy(to.sun_path, address_.data(), address_.size());
  if (to.sun_path[0] == '@') to.sun_path[0] = '\0';
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + address_.size());
  const ssize_t sent =
      sendto(socket_.get(), words.data(), words.size(), MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&to), size);
  LOG_IF_EVERY_N(WARNING, sent < 0, 100) << "the service manager was not told: " << std::strerror(errno);
}

}  // namespace tokamak::os
