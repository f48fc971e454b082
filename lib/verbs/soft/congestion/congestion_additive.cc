// A window that grows step by step and is halved, as TCP's.
#include <algorithm>

#include "lib/verbs/soft/congestion/congestion.h"

namespace tokamak::verbs::soft {
namespace {

constexpr uint32_t kInitialWindow = 32;
constexpr uint32_t kLeastAdditiveWindow = 4;

class AdditiveWindow final : public Congestion {
 public:
  AdditiveWindow(uint32_t max_packets, base::Duration pause) : max_(std::max(max_packets, 1u)), pause_(pause) {
    Reset();
  }

  void Reset() override {
    window_ = std::min(kInitialWindow, max_);
    threshold_ = max_;
    acknowledged_ = 0;
    measured_ = false;
  }

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

  // RFC 6298.
  void OnRoundTrip(base::Duration time) override {
    if (!measured_) {
      measured_ = true;
      smoothed_ = time;
      deviation_ = time / 2;
      return;
    }
    const base::Duration off = time < smoothed_ ? smoothed_ - time : time - smoothed_;
    deviation_ = (deviation_ * 3 + off) / 4;
    smoothed_ = (smoothed_ * 7 + time) / 8;
  }

  void OnLoss(Loss loss) override {
    if (loss == Loss::kOverdue) {
      threshold_ = std::max(threshold_, window_);
      window_ = std::min(max_, kLeastAdditiveWindow);
      return;
    }
    threshold_ = std::min(max_, std::max(window_ / 2, kLeastAdditiveWindow));
    window_ = loss == Loss::kGap ? threshold_ : std::min(max_, kLeastAdditiveWindow);
    acknowledged_ = 0;
  }

  uint32_t Window() const override { return window_; }

  std::optional<base::Duration> Overdue() const override {
    if (!measured_) return std::nullopt;
    return std::max(smoothed_ * 2, smoothed_ + deviation_ * 4) + pause_;
  }

 private:
  const uint32_t max_;
  const base::Duration pause_;
  uint32_t window_ = 0;
  uint32_t threshold_ = 0;     // below it the window doubles per round trip
  uint32_t acknowledged_ = 0;  // since it last grew by one
  bool measured_ = false;
  base::Duration smoothed_;   // round trip
  base::Duration deviation_;  // mean distance from smoothed_
};

}  // namespace

std::unique_ptr<Congestion> MakeAdditiveWindow(uint32_t max_packets, base::Duration pause) {
  return std::make_unique<AdditiveWindow>(max_packets, pause);
}

}  // namespace tokamak::verbs::soft
