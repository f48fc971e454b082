// WindowPool keeps the memory windows of one engine and rail, which are bound again and again:
// making one is a call of the device, and binding it a request like any other.
//
// Law: there are at most kMaxWindows.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "lib/transport/memory/rail.h"
#include "lib/verbs/verbs.h"

namespace tokamak::transport {

class WindowPool final {
 public:
  static constexpr uint32_t kMaxWindows = 256;

  explicit WindowPool(const Rail& rail) : rail_(rail) {}

  // Null where all are in use, or the device makes no more, or cannot bind what it makes: what was
  // to be opened gets a region of its own.
  std::unique_ptr<verbs::MemoryWindow> Take();
  // It opens nothing any more: it was invalidated.
  void Give(std::unique_ptr<verbs::MemoryWindow> window) { free_.push_back(std::move(window)); }
  // Drops one that may still open something, which closes it; or whose queue pair is gone: a device
  // may need another in its place, and who takes it must hear that there is none.
  void Drop(std::unique_ptr<verbs::MemoryWindow> window);

  // The device failed to bind one, which ended a queue pair: not again.
  void GiveUp();

  uint32_t windows() const { return windows_; }  // in use or not

 private:
  const Rail rail_;
  std::vector<std::unique_ptr<verbs::MemoryWindow>> free_;
  uint32_t windows_ = 0;
  bool given_up_ = false;
};

}  // namespace tokamak::transport
