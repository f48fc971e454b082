// The remote directory over real endpoints: software NICs on a network in virtual time.
#include "lib/directory/local.h"
#include "lib/directory/remote/remote.h"
#include "lib/directory/remote/server.h"
#include "tests/directory/conformance/backend.h"
#include "tests/transport/world.h"

namespace tokamak::directory {
namespace {

class TransportBackend final : public Backend {
 public:
  TransportBackend() {
    Restart();
    world_.node(0).endpoint->SetCallHandler([this](absl::Span<const uint8_t> request, transport::Reply reply) {
      return server_->Handle(request, std::move(reply));
    });
  }
  ~TransportBackend() override {
    // Callers without an answer yet get an error, as their replies are dropped unused.
    world_.node(0).endpoint->SetCallHandler(nullptr);
    server_.reset();
  }

  base::EventLoop& loop() override { return world_.node(1).loop; }
  bool RunUntil(const std::function<bool()>& done, base::Duration limit) override {
    return world_.RunUntil(done, limit);
  }
  // A round trip, and the connection's own making.
  base::Duration tardiness() const override { return base::Milliseconds(1); }
  size_t most_nodes() const override { return kMaxNodes / 2; }  // the rest is for other hosts
  Directory& here() override { return *here_; }
  Directory& there() override { return there_; }
  void DropHere() override { here_.reset(); }
  void Restart() override {
    server_.reset();
    directory_ = std::make_unique<LocalDirectory>(world_.node(0).loop, WithFewTombstones());
    server_ =
        std::make_unique<DirectoryServer>(world_.node(0).loop, *directory_, world_.node(0).endpoint->max_call_size());
  }
  void CutOff() override {
    world_.network->Cut(world_.node(0).address, world_.node(1).address);
    world_.network->Cut(world_.node(1).address, world_.node(0).address);
  }
  void Heal() override { world_.network->Heal(); }

 private:
  struct ThreeNodes : transport::testing::World {
    ThreeNodes() {
      for (int i = 0; i < 3; ++i) Add();
    }
  };

  std::unique_ptr<RemoteDirectory> Open(size_t node) {
    return std::make_unique<RemoteDirectory>(world_.node(node).loop, *world_.node(node).endpoint,
                                             world_.node(0).service, base::Random(node));
  }

  ThreeNodes world_;
  std::unique_ptr<LocalDirectory> directory_;
  std::unique_ptr<DirectoryServer> server_;
  std::unique_ptr<RemoteDirectory> here_ = Open(1);
  RemoteDirectory there_{world_.node(2).loop, *world_.node(2).endpoint, world_.node(0).service, base::Random(2)};
};

}  // namespace

std::unique_ptr<Backend> MakeTransportBackend() { return std::make_unique<TransportBackend>(); }

}  // namespace tokamak::directory
