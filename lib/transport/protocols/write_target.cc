#include "lib/transport/protocols/write_target.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace tokamak::transport {

absl::Status WriteTarget::Open(Context& context, BulkChannel& bulk, absl::Span<uint8_t> memory) {
  primary_ = bulk.shape().primary;
  memory_ = memory.data();
  const uint32_t rails = bulk.live_rails();
  uint32_t registered = 0;
  for (uint32_t rail = 0; rail < context.rails.size(); ++rail) {
    if ((rails >> rail & 1) != 0 && !Bind(context, bulk, rail, memory)) registered |= 1u << rail;
  }
  return regions_.Acquire(context, registered, memory, Registration::Use::kWriteTarget);
}

// Returns false if there is no window.
bool WriteTarget::Bind(Context& context, BulkChannel& bulk, uint32_t rail, absl::Span<uint8_t> memory) {
  BulkQueue* const queue = bulk.QueueForWindows(rail);
  if (queue == nullptr) return false;
  verbs::MemoryRegion* const ground = context.rails[rail].registration.GroundOf(memory);
  if (ground == nullptr) return false;
  WindowPool& pool = *context.windows[rail];
  std::unique_ptr<verbs::MemoryWindow> window = pool.Take();
  if (window == nullptr) return false;
  Window::Owner& owner = *this;
  windows_[rail].emplace(context.loop, pool, std::move(window), *queue, *ground, memory, owner);
  ++context.counters.windows_bound;
  return true;
}

bool WriteTarget::opening() const {
  return !closing_ && std::any_of(windows_.begin(), windows_.end(),
                                  [](const auto& window) { return window.has_value() && window->binding(); });
}

RemoteRange WriteTarget::Tell() const {
  RemoteRange range = regions_.Tell(primary_);
  range.address = reinterpret_cast<uintptr_t>(memory_);
  for (uint32_t rail = 0; rail < kMaxRails; ++rail) {
    if (windows_[rail].has_value() && windows_[rail]->open()) AddKey(rail, windows_[rail]->rkey(), primary_, &range);
  }
  return range;
}

void WriteTarget::Close() {
  closing_ = true;
  regions_.Drop();
  for (auto& window : windows_) {
    if (window.has_value()) window->Close();
  }
}

bool WriteTarget::closed() const {
  return regions_.empty() && std::all_of(windows_.begin(), windows_.end(),
                                         [](const auto& window) { return !window.has_value() || window->closed(); });
}

void WriteTarget::Revoke() {
  Close();
  for (auto& window : windows_) window.reset();
}

void WriteTarget::OnWindow() {
  if (closing_ ? closed() : !opening()) owner_.OnTarget();
}

}  // namespace tokamak::transport
