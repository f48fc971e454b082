#include "lib/verbs/soft/congestion.h"

#include <algorithm>

namespace tokamak::verbs::soft {
namespace {

constexpr uint32_t kInitialWindow = 32;
constexpr uint32_t kLeastWindow = 4;

class FixedWindow final : public Congestion {
 public:
  explicit FixedWindow(uint32_t packets) : packets_(std::max(packets, 1u)) {}
  void OnAck(uint32_t) override {}
  void OnLoss(Loss) override {}
  uint32_t Window() const override { return packets_; }

 private:
  const uint32_t packets_;
};

class AdditiveWindow final : public Congestion {
 public:
  explicit AdditiveWindow(uint32_t max_packets)
      : max_(std::max(max_packets, 1u)), window_(std::min(kInitialWindow, max_)), threshold_(max_) {}

  void OnAck(uint32_t packets) override {
    if (window_ < threshold_) {
      window_ = std::min(window_ + packets, threshold_);
      return;
    }
    acknowledged_ += packets;
    if (acknowledged_ < window_) return;
    acknowledged_ = 0;
    window_ = std::min(window_ + 1, max_);
  }

  void OnLoss(Loss loss) override {
    threshold_ = std::min(max_, std::max(window_ / 2, kLeastWindow));
    window_ = loss == Loss::kGap ? threshold_ : std::min(max_, kLeastWindow);
    acknowledged_ = 0;
  }

  uint32_t Window() const override { return window_; }

 private:
  const uint32_t max_;
  uint32_t window_;
  uint32_t threshold_;         // below it the window doubles each round trip
  uint32_t acknowledged_ = 0;  // since the window last grew by one
};

}  // namespace

std::unique_ptr<Congestion> MakeFixedWindow(uint32_t packets) { return std::make_unique<FixedWindow>(packets); }

std::unique_ptr<Congestion> MakeAdditiveWindow(uint32_t max_packets) {
  return std::make_unique<AdditiveWindow>(max_packets);
}

}  // namespace tokamak::verbs::soft
