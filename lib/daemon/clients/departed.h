// Departed holds memory back from programs that lost their connection while writing, until they
// have ended.
//
// Such a program may live on with the store mapped, and write to its unsealed objects: only the
// kernel's word that the process has ended frees them. Memory of an unwatchable program (hidden by
// our pid namespace, or beyond kMaxDeparted) is held until the daemon ends. Thread rule: the
// control loop.
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

  // Gives back, now or later, the resources of `who`, owner of process `pid` whose connection has
  // ended.
  void Add(store::Owner who, pid_t pid, const std::string& label);

  // Returns a program's label at the loss of its connection; null: nothing is held back.
  const std::string* LabelOf(pid_t pid);

  // Live programs whose memory is held back.
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
