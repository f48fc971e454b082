#include <memory>

#include "gtest/gtest.h"
#include "lib/directory/redis/redis_directory.h"
#include "lib/os/epoll_loop.h"
#include "tests/directory/conformance/fixture.h"
#include "tests/directory/redis_server.h"

namespace tokamak::directory {
namespace {

class RedisBackend final : public Backend {
 public:
  RedisBackend() { AwaitServer(); }

  base::EventLoop& loop() override { return loop_; }
  bool RunUntil(const std::function<bool()>& done, base::Duration limit) override {
    return loop_.RunUntil(done, loop_.Now() + limit);
  }
  base::Duration tardiness() const override { return base::Seconds(20); }
  Directory& here() override { return *here_; }
  Directory& there() override { return *there_; }
  void DropHere() override { here_.reset(); }
  void Restart() override {
    server_.Kill();
    server_.Start();
    AwaitServer();
  }
  base::Duration recovery() const override { return base::Seconds(2); }
  void CutOff() override { server_.Freeze(); }
  void Heal() override { server_.Thaw(); }

 private:
  std::unique_ptr<redis::RedisDirectory> Open() {
    redis::Options options;
    options.target = server_.target();
    options.recovery = recovery();
    options.tombstones = kFewTombstones;
    auto directory = redis::RedisDirectory::Open(loop_, options);
    return directory.ok() ? *std::move(directory) : nullptr;
  }

  // Both clients get answers.
  void AwaitServer() {
    for (Directory* client : {here_.get(), there_.get()}) {
      bool answers = false;
      while (!answers) {
        bool answered = false;
        const base::Pending asked = client->Nodes(base::Seconds(1), [&](const auto& nodes) {
          answered = true;
          answers = nodes.ok();
        });
        loop_.RunUntil([&] { return answered; }, loop_.Now() + base::Seconds(2));
        loop_.RunUntil([] { return false; }, loop_.Now() + base::Milliseconds(answers ? 0 : 1));
      }
    }
  }

  os::EpollLoop loop_;
  redis::RedisServer server_;
  std::unique_ptr<redis::RedisDirectory> here_ = Open();
  std::unique_ptr<redis::RedisDirectory> there_ = Open();
};

const BackendCase kRedis{"Redis", [] { return std::unique_ptr<Backend>(new RedisBackend()); }};

INSTANTIATE_TEST_SUITE_P(Real, DirectoryConformance, testing::Values(kRedis), BackendCaseName);
INSTANTIATE_TEST_SUITE_P(Real, DirectoryOutageConformance, testing::Values(kRedis), BackendCaseName);

}  // namespace
}  // namespace tokamak::directory
