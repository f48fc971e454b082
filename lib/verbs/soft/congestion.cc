#include "lib/verbs/soft/congestion.h"

#include <algorithm>

namespace tokamak::verbs::soft {
namespace {

constexpr uint32_t kInitialWindow = 32;
constexpr uint32_t kLeastWindow = 4;

class FixedWindow final : public Congestion {
 public:
  explicit FixedWindow(uint32_t packets) : packets_(std::max(packets, 1u)) {}
  void Reset() override {}
  void OnAck(uint32_t) override {}
  void OnRoundTrip(base::Duration) override {}
  void OnLoss(Loss) override {}
  uint32_t Window() const override { return packets_; }
  std::optional<base::Duration> Overdue() const override { return std::nullopt; }

 private:
  const uint32_t packets_;
};

class AdditiveWindow final : public Congestion {
 public:
  explicit AdditiveWindow(uint32_t max_packets) : max_(std::max(max_packets, 1u)) { Reset(); }

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

  // As TCP does it (RFC 6298).
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
      window_ = std::min(max_, kLeastWindow);
      return;
    }
    threshold_ = std::min(max_, std::max(window_ / 2, kLeastWindow));
    window_ = loss == Loss::kGap ? threshold_ : std::min(max_, kLeastWindow);
    acknowledged_ = 0;
  }

  uint32_t Window() const override { return window_; }

  std::optional<base::Duration> Overdue() const override {
    if (!measured_) return std::nullopt;
    return std::max(smoothed_ * 2, smoothed_ + deviation_ * 4) + kPause;
  }

 private:
  const uint32_t max_;
  uint32_t window_ = 0;
  uint32_t threshold_ = 0;     // below it the window doubles each round trip
  uint32_t acknowledged_ = 0;  // since the window last grew by one
  bool measured_ = false;
  base::Duration smoothed_;   // round trip
  base::Duration deviation_;  // how far it is from that, on average
};

}  // namespace

std::unique_ptr<Congestion> MakeFixedWindow(uint32_t packets) { return std::make_unique<FixedWindow>(packets); }

std::unique_ptr<Congestion> MakeAdditiveWindow(uint32_t max_packets) {
  return std::make_unique<AdditiveWindow>(max_packets);
}

}  // namespace tokamak::verbs::soft
