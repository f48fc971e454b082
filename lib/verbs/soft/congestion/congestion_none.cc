// No congestion control.
#include "lib/verbs/soft/congestion/congestion.h"

namespace tokamak::verbs::soft {
namespace {

class NoCongestionControl final : public Congestion {
 public:
  void Reset() override {}
  uint32_t Window() const override { return kUnboundedWindow; }
};

}  // namespace

std::unique_ptr<Congestion> MakeNoCongestionControl() { return std::make_unique<NoCongestionControl>(); }

}  // namespace tokamak::verbs::soft
