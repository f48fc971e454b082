// WindowPool keeps the memory windows of one engine and rail for reuse: making one is a call of the
// device, binding it a request like any other.
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

  // Null: all are in use, or the device makes or binds no more; use a region.
  std::unique_ptr<verbs::MemoryWindow> Take();
  // Takes back an invalidated window.
  void Give(std::unique_ptr<verbs::MemoryWindow> window) { free_.push_back(std::move(window)); }
  // Drops a window that may still be open, which closes it, or whose queue pair is gone: a device
  // may need another in its place.
  void Drop(std::unique_ptr<verbs::MemoryWindow> window);

  // Stops using windows: a failed bind ended a queue pair.
  void GiveUp();

  uint32_t windows() const { return windows_; }  // in use or not

 private:
  const Rail rail_;
  std::vector<std::unique_ptr<verbs::MemoryWindow>> free_;
  uint32_t windows_ = 0;
  bool given_up_ = false;
};

}  // namespace tokamak::transport
