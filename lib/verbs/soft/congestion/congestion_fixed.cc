// A window of one size.
#include <algorithm>

#include "lib/verbs/soft/congestion/congestion.h"

namespace tokamak::verbs::soft {
namespace {

class FixedWindow final : public Congestion {
 public:
  explicit FixedWindow(uint32_t packets) : packets_(std::max(packets, 1u)) {}
  void Reset() override {}
  uint32_t Window() const override { return packets_; }

 private:
  const uint32_t packets_;
};

}  // namespace

std::unique_ptr<Congestion> MakeFixedWindow(uint32_t packets) { return std::make_unique<FixedWindow>(packets); }

}  // namespace tokamak::verbs::soft
