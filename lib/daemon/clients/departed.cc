#include "lib/daemon/clients/departed.h"

#include <utility>

#include "absl/status/status.h"
#include "lib/base/log.h"

namespace tokamak::daemon {

void Departed::Add(store::Owner who, pid_t pid, const std::string& label) {
  const Program* known = Find(pid);
  const store::Owner keeper = known != nullptr ? known->keeper : store_.NewOwner();
  if (!store_.AbandonOwner(who, keeper) || known != nullptr) return;

  absl::StatusOr<std::unique_ptr<os::ProcessWatch>> watch =
      absl::ResourceExhaustedError("as many programs as may be are watched");
  if (programs_.size() < kMaxDeparted) watch = os::ProcessWatch::Start(loop_, pid, [this, pid] { End(pid); });
  if (absl::IsNotFound(watch.status())) return store_.EndQuarantine(keeper);
  if (!watch.ok()) {
    LOG(WARNING) << "a program (pid " << pid
                 << ") lost its connection before it sealed all that it created, and its end "
                 << "will not be seen: that memory stays held back until tokd ends: " << watch.status();
    return;
  }
  LOG_IF(INFO, (*watch)->running()) << "a program (pid " << pid << ") lost its connection before it sealed all that it "
                                    << "created: that memory is held back until the program ends";
  programs_.emplace(pid, Program{keeper, label, *std::move(watch)});
}

const std::string* Departed::LabelOf(pid_t pid) {
  const Program* const program = Find(pid);
  return program == nullptr ? nullptr : &program->label;
}

// The pid of an ended process may be another's.
const Departed::Program* Departed::Find(pid_t pid) {
  const auto program = programs_.find(pid);
  if (program == programs_.end()) return nullptr;
  if (program->second.watch->running()) return &program->second;
  End(pid);
  return nullptr;
}

void Departed::End(pid_t pid) {
  const auto program = programs_.find(pid);
  store_.EndQuarantine(program->second.keeper);
  programs_.erase(program);
}

}  // namespace tokamak::daemon
