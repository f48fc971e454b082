#include "lib/transport/memory/window_pool.h"

#include <utility>

#include "lib/base/log.h"

namespace tokamak::transport {

std::unique_ptr<verbs::MemoryWindow> WindowPool::Take() {
  if (given_up_) return nullptr;
  if (!free_.empty()) {
    std::unique_ptr<verbs::MemoryWindow> window = std::move(free_.back());
    free_.pop_back();
    return window;
  }
  if (windows_ == kMaxWindows) return nullptr;
  auto made = rail_.domain.CreateMemoryWindow();
  if (!made.ok()) {
    LOG(DEBUG) << rail_.device.name() << " makes no memory window beyond " << windows_ << ": " << made.status();
    return nullptr;
  }
  ++windows_;
  return *std::move(made);
}

void WindowPool::Drop(std::unique_ptr<verbs::MemoryWindow> window) {
  window.reset();
  --windows_;
}

void WindowPool::GiveUp() {
  if (given_up_) return;
  given_up_ = true;
  LOG(WARNING) << rail_.device.name() << " does not bind memory windows though it says that it does: from now on "
               << "each pull by write registers its target";
}

}  // namespace tokamak::transport
