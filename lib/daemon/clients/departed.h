// Departed holds memory back from programs that lost their connection while writing, until they
// have ended.
//
// A program maps the store's memory for writing. When its connection ends, it may live on and write
// to its unsealed objects: their memory must not become another object's. Only the end of the
// process, which the kernel reports, is proof. Memory of a program that cannot be watched (our pid
// namespace does not show it, or kMaxDeparted are watched already) is held back until the daemon
// ends. Thread rule: the control loop.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "lib/os/epoll_loop.h"
#include "lib/os/process/process_watch.h"
#include "lib/store/store.h"

namespace tokamak::daemon {

constexpr size_t kMaxDeparted = 1024;  // programs watched at once

class Departed final {
 public:
  // Both must outlive it.
  Departed(os::EpollLoop& loop, store::Store& store) : loop_(loop), store_(store) {}

  // Gives back the resources of `who`, the owner of process `pid` whose connection has ended, at
  // once or later; `label` names its program.
  void Add(store::Owner who, pid_t pid, const std::string& label);

  // Returns the program's label when it lost its connection; null: nothing is held back from it.
  const std::string* LabelOf(pid_t pid);

  // Live programs from which memory is held back.
  size_t programs() const { return programs_.size(); }

 private:
  struct Program {
    store::Owner keeper{};
    std::string label;
    std::unique_ptr<os::ProcessWatch> watch;
  };

  const Program* Find(pid_t pid);
  void End(pid_t pid);

  os::EpollLoop& loop_;
  store::Store& store_;
  std::map<pid_t, Program> programs_;
};

}  // namespace tokamak::daemon
