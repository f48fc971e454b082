// The local directory, in virtual time.
#include "lib/directory/local.h"
#include "sim/time/sim_loop.h"
#include "tests/directory/conformance/backend.h"

namespace tokamak::directory {
namespace {

class LocalBackend final : public Backend {
 public:
  base::EventLoop& loop() override { return loop_; }
  bool RunUntil(const std::function<bool()>& done, base::Duration limit) override {
    return scheduler_.RunUntil(done, scheduler_.Now() + limit);
  }
  base::Duration tardiness() const override { return base::Duration(); }
  Directory& here() override { return *directory_; }
  Directory& there() override { return *directory_; }
  void DropHere() override { directory_.reset(); }
  void Restart() override { directory_ = std::make_unique<LocalDirectory>(loop_, WithFewTombstones()); }

 private:
  sim::Scheduler scheduler_;
  sim::SimLoop loop_{scheduler_};
  std::unique_ptr<LocalDirectory> directory_ = std::make_unique<LocalDirectory>(loop_, WithFewTombstones());
};

}  // namespace

std::unique_ptr<Backend> MakeLocalBackend() { return std::make_unique<LocalBackend>(); }

}  // namespace tokamak::directory
