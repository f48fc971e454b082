#include "lib/verbs/soft/congestion/congestion_dcqcn.h"

#include <algorithm>

#include "lib/verbs/soft/congestion/congestion.h"

namespace tokamak::verbs::soft {
namespace {

constexpr uint64_t kUnknownLineRate = 100'000'000'000;
constexpr double kFull = 0.999;  // of the line's rate, which halving never reaches
constexpr double kNoAlpha = 1e-12;

class Dcqcn final : public Congestion {
 public:
  Dcqcn(const DcqcnParameters& parameters, uint32_t packets, uint64_t line_rate)
      : parameters_(parameters),
        packets_(std::max(packets, 1u)),
        always_paces_(parameters.line_rate != 0),
        line_(static_cast<double>(line_rate)),
        least_(static_cast<double>(std::max(parameters.minimum_rate, kLeastLineRate))) {
    Reset();
  }

  void Reset() override {
    rate_ = target_ = line_;
    alpha_ = 1;
    limited_ = alpha_decays_ = false;
    timer_rounds_ = byte_rounds_ = 0;
    bytes_ = 0;
  }

  uint32_t Window() const override { return packets_; }
  bool reacts_to_marks() const override { return true; }
  bool paces() const override { return true; }
  uint64_t rate() const override { return limited_ ? static_cast<uint64_t>(rate_) : 0; }

  void OnNotification(base::Time now) override {
    CatchUp(now);
    limited_ = alpha_decays_ = true;
    target_ = rate_;
    rate_ = std::max(std::min(least_, line_), rate_ * (1 - alpha_ / 2));
    alpha_ = (1 - parameters_.g) * alpha_ + parameters_.g;
    alpha_due_ = now + parameters_.alpha_timer;
    rate_due_ = now + parameters_.rate_timer;
    timer_rounds_ = byte_rounds_ = 0;
    bytes_ = 0;
  }

  void OnSend(base::Time now, uint32_t bytes) override {
    CatchUp(now);
    if (!limited_ && !always_paces_) return;
    bytes_ += bytes;
    while (limited_ && bytes_ >= parameters_.byte_counter) {
      bytes_ -= parameters_.byte_counter;
      ++byte_rounds_;
      Increase();
    }
    next_ = std::max(next_, now - parameters_.catch_up);
    next_ = next_ + base::Duration::Picoseconds(static_cast<int64_t>(bytes * 8e12 / rate_));
  }

  base::Time NextSend(base::Time now) override {
    CatchUp(now);
    return limited_ || always_paces_ ? next_ : now;
  }

 private:
  // Does what the timers would have done by now.
  void CatchUp(base::Time now) {
    for (; alpha_decays_ && alpha_due_ <= now; alpha_due_ = alpha_due_ + parameters_.alpha_timer) {
      alpha_ *= 1 - parameters_.g;
      alpha_decays_ = alpha_ > kNoAlpha;
    }
    for (; limited_ && rate_due_ <= now; rate_due_ = rate_due_ + parameters_.rate_timer) {
      ++timer_rounds_;
      Increase();
    }
  }

  void Increase() {
    if (std::min(timer_rounds_, byte_rounds_) > parameters_.fast_recovery) {
      target_ += static_cast<double>(parameters_.hyper_increase);
    } else if (std::max(timer_rounds_, byte_rounds_) > parameters_.fast_recovery) {
      target_ += static_cast<double>(parameters_.additive_increase);
    }
    target_ = std::min(target_, line_);
    rate_ = (rate_ + target_) / 2;
    if (rate_ < line_ * kFull) return;
    rate_ = line_;
    limited_ = false;
  }

  const DcqcnParameters parameters_;
  const uint32_t packets_;
  const bool always_paces_;
  const double line_;
  const double least_;

  double rate_ = 0;
  double target_ = 0;
  double alpha_ = 1;
  bool limited_ = false;       // false: it sends as fast as the line takes it
  bool alpha_decays_ = false;  // from the first notification until alpha is negligible
  uint32_t timer_rounds_ = 0;  // since the last notification, as the next two
  uint32_t byte_rounds_ = 0;
  uint64_t bytes_ = 0;  // since the byte counter came round
  base::Time alpha_due_;
  base::Time rate_due_;
  base::Time next_;
};

}  // namespace

DcqcnParameters DcqcnParameters::InRealTime(uint64_t rate) {
  DcqcnParameters parameters;
  parameters.line_rate = rate;
  parameters.minimum_rate = std::max(rate / 400, kLeastLineRate);
  parameters.additive_increase = std::max(rate / 1000, kLeastLineRate / 1000);
  parameters.hyper_increase = 5 * parameters.additive_increase;
  parameters.catch_up = base::Microseconds(200);
  return parameters;
}

std::unique_ptr<Congestion> MakeDcqcn(const DcqcnParameters& parameters, uint32_t packets, uint64_t line_rate) {
  if (parameters.line_rate != 0) line_rate = parameters.line_rate;
  return std::make_unique<Dcqcn>(parameters, packets, line_rate != 0 ? line_rate : kUnknownLineRate);
}

}  // namespace tokamak::verbs::soft
