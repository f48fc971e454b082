// The handles of memory.
//
// Thread rule: see verbs.h.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "absl/types/span.h"
#include "lib/verbs/soft/nic.h"
#include "lib/verbs/verbs.h"

namespace tokamak::verbs::soft {

class SoftMemoryRegion final : public MemoryRegion {
 public:
  SoftMemoryRegion(std::shared_ptr<Nic> nic, uint32_t key, absl::Span<uint8_t> memory)
      : nic_(std::move(nic)), key_(key), memory_(memory) {}
  ~SoftMemoryRegion() override {
    Nic::Control control(*nic_);
    nic_->Deregister(key_);
  }
  uint8_t* address() const override { return memory_.data(); }
  uint64_t length() const override { return memory_.size(); }
  uint32_t lkey() const override { return key_; }
  uint32_t rkey() const override { return key_; }

  const Nic* nic() const { return nic_.get(); }

  absl::Status Change(DomainId domain, const RegionMemory& memory, Access access) {
    Nic::Control control(*nic_);
    if (absl::Status s = nic_->Reregister(key_, domain, memory, access); !s.ok()) return s;
    memory_ = memory.bytes;
    return absl::OkStatus();
  }

 private:
  const std::shared_ptr<Nic> nic_;
  const uint32_t key_;
  absl::Span<uint8_t> memory_;
};

// The handle knows a bind's key once it is posted; the NIC learns it with the request.
class SoftMemoryWindow final : public MemoryWindow {
 public:
  SoftMemoryWindow(std::shared_ptr<Nic> nic, const WindowId& window) : nic_(std::move(nic)), window_(window) {}
  ~SoftMemoryWindow() override {
    Nic::Control control(*nic_);
    nic_->DestroyWindow(window_);
  }
  uint32_t rkey() const override { return window_.key; }

  const Nic* nic() const { return nic_.get(); }

  WindowId Next() const { return {chosen_.value_or(nic_->NextKey(window_.key)), window_.life}; }
  void Posted(const WindowId& next) {
    window_ = next;
    chosen_.reset();
    zero_based_ = false;
  }
  bool zero_based() const { return zero_based_; }
  void Choose(uint32_t next, bool zero_based) {
    chosen_ = next;
    zero_based_ = zero_based;
  }

 private:
  const std::shared_ptr<Nic> nic_;
  WindowId window_;
  std::optional<uint32_t> chosen_;
  bool zero_based_ = false;
};

}  // namespace tokamak::verbs::soft
