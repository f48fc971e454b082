// The remote directory over calls that are faked, in virtual time.
#include "lib/directory/local.h"
#include "lib/directory/remote/remote.h"
#include "lib/directory/remote/server.h"
#include "sim/time/sim_loop.h"
#include "tests/directory/conformance/backend.h"
#include "tests/directory/fake_caller.h"

namespace tokamak::directory {
namespace {

class RemoteBackend final : public Backend {
 public:
  base::EventLoop& loop() override { return loop_; }
  bool RunUntil(const std::function<bool()>& done, base::Duration limit) override {
    return scheduler_.RunUntil(done, scheduler_.Now() + limit);
  }
  base::Duration tardiness() const override { return base::Duration(); }
  Directory& here() override { return *here_; }
  Directory& there() override { return there_; }
  void DropHere() override { here_.reset(); }
  void Restart() override {
    server_.reset();
    directory_ = std::make_unique<LocalDirectory>(server_loop_, WithFewTombstones());
    server_ = std::make_unique<DirectoryServer>(server_loop_, *directory_, caller_.max_call_size());
  }
  void CutOff() override { caller_.cut = true; }
  void Heal() override { caller_.cut = false; }

 private:
  sim::Scheduler scheduler_;
  sim::SimLoop loop_{scheduler_};
  sim::SimLoop server_loop_{scheduler_};
  std::unique_ptr<LocalDirectory> directory_ = std::make_unique<LocalDirectory>(server_loop_, WithFewTombstones());
  std::unique_ptr<DirectoryServer> server_ = std::make_unique<DirectoryServer>(server_loop_, *directory_, 16 * 1024);
  FakeCaller caller_{loop_, [this](absl::Span<const uint8_t> request, transport::Reply reply) {
                       return server_->Handle(request, std::move(reply));
                     }};
  const verbs::Address address_ = *verbs::Address::Parse("10.0.0.1:7000");
  std::unique_ptr<RemoteDirectory> here_ = std::make_unique<RemoteDirectory>(loop_, caller_, address_, base::Random(1));
  RemoteDirectory there_{loop_, caller_, address_, base::Random(2)};
};

}  // namespace

std::unique_ptr<Backend> MakeRemoteBackend() { return std::make_unique<RemoteBackend>(); }

}  // namespace tokamak::directory
