// The directories that live in virtual time: the local one, and the remote one over calls that are faked.
#include "lib/directory/local.h"
#include "lib/directory/remote/remote.h"
#include "lib/directory/remote/server.h"
#include "sim/sim_loop.h"
#include "tests/directory/conformance/backend.h"
#include "tests/directory/fake_caller.h"

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
  void Restart() override { directory_ = std::make_unique<LocalDirectory>(loop_); }

 private:
  sim::Scheduler scheduler_;
  sim::SimLoop loop_{scheduler_};
  std::unique_ptr<LocalDirectory> directory_ = std::make_unique<LocalDirectory>(loop_);
};

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
    directory_ = std::make_unique<LocalDirectory>(server_loop_);
    server_ = std::make_unique<DirectoryServer>(*directory_, caller_.max_call_size());
  }
  void CutOff() override { caller_.cut = true; }
  void Heal() override { caller_.cut = false; }

 private:
  sim::Scheduler scheduler_;
  sim::SimLoop loop_{scheduler_};
  sim::SimLoop server_loop_{scheduler_};
  std::unique_ptr<LocalDirectory> directory_ = std::make_unique<LocalDirectory>(server_loop_);
  std::unique_ptr<DirectoryServer> server_ = std::make_unique<DirectoryServer>(*directory_, 16 * 1024);
  FakeCaller caller_{loop_, [this](absl::Span<const uint8_t> request, DirectoryServer::Reply reply) {
                       server_->Handle(request, std::move(reply));
                     }};
  std::unique_ptr<RemoteDirectory> here_ =
      std::make_unique<RemoteDirectory>(loop_, caller_, *verbs::Address::Parse("10.0.0.1:7000"));
  RemoteDirectory there_{loop_, caller_, *verbs::Address::Parse("10.0.0.1:7000")};
};

}  // namespace

std::unique_ptr<Backend> MakeLocalBackend() { return std::make_unique<LocalBackend>(); }
std::unique_ptr<Backend> MakeRemoteBackend() { return std::make_unique<RemoteBackend>(); }

}  // namespace tokamak::directory
