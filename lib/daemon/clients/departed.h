// Departed keeps memory back from programs that lost their connection in the middle of writing,
// until they have ended.
//
// A program maps the store's memory for writing. When its connection ends it may be dead, or live
// on and write to the objects that it had not sealed: that memory must not become another object's.
// Its end is the proof, and the kernel tells it. What is held back for a program that cannot be
// watched (our pid namespace does not show it, or kMaxDeparted are watched already) stays held back
// until the daemon ends.
// Thread rule: the control loop.
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

constexpr size_t kMaxDeparted = 1024;  // programs that are watched at once

class Departed final {
 public:
  // Both must outlive it.
  Departed(os::EpollLoop& loop, store::Store& store) : loop_(loop), store_(store) {}

  // The connection of process `pid` is over, whose program is called `label`: gives back what
  // `who`, its owner, has, at once or later.
  void Add(store::Owner who, pid_t pid, const std::string& label);

  // What the process was called when it lost its connection; null: nothing is held back from it.
  const std::string* LabelOf(pid_t pid);

  // Programs that live on, and that some memory is held back from.
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
