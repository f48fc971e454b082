#include "tests/verbs/conformance/ends/end.h"

#include <algorithm>

namespace tokamak::verbs::conformance {
namespace {

// Counts device calls on the stack.
class Calling final {
 public:
  explicit Calling(int* depth) : depth_(depth) { ++*depth_; }
  ~Calling() { --*depth_; }
  Calling(const Calling&) = delete;
  Calling& operator=(const Calling&) = delete;

 private:
  int* const depth_;
};

}  // namespace

Completions PollNow(CompletionQueue& queue, size_t most) {
  Completions all;
  Completion batch[16];
  while (all.size() < most) {
    const size_t count = queue.Poll(absl::MakeSpan(batch, std::min(most - all.size(), std::size(batch))));
    if (count == 0) break;
    all.insert(all.end(), batch, batch + count);
  }
  return all;
}

Completions Await(Backend& backend, CompletionQueue& queue, size_t count) {
  Completions all;
  backend.Drive(
      [&] {
        const Completions more = PollNow(queue, count - all.size());
        all.insert(all.end(), more.begin(), more.end());
        return all.size() == count;
      },
      backend.patience());
  EXPECT_EQ(all.size(), count) << "completions are missing. " << backend.Counters();
  return all;
}

End::End(Backend& world, size_t device_index, const EndOptions& end_options, End* home)
    : backend(world),
      index(device_index),
      options(end_options),
      device(world.device(device_index)),
      loop(world.loop(device_index)),
      home_(home == nullptr ? *this : *home) {
  if (home == nullptr) {
    auto made = device.CreateProtectionDomain();
    EXPECT_TRUE(made.ok()) << made.status();
    if (made.ok()) domain = *std::move(made);
    sends = MakeCompletionQueue(options.send_completions, &send_events, &on_send_event);
    if (!options.one_completion_queue) {
      receives = MakeCompletionQueue(options.receive_completions, &receive_events, &on_receive_event);
    }
  }
  MakeQueuePair();
}

std::unique_ptr<CompletionQueue> End::MakeCompletionQueue(uint32_t depth, int* events_seen,
                                                          std::function<void()>* handler) {
  auto queue = device.CreateCompletionQueue(loop, depth, [this, events_seen, handler] {
    EXPECT_EQ(calling_, 0) << "a completion event ran inside a call";
    ++*events_seen;
    if (*handler) (*handler)();
  });
  EXPECT_TRUE(queue.ok()) << queue.status();
  return queue.ok() ? *std::move(queue) : nullptr;
}

void End::MakeQueuePair() {
  QueuePairOptions request;
  request.send_queue = home_.sends.get();
  request.receive_queue = (options.one_completion_queue ? home_.sends : home_.receives).get();
  request.max_send_requests = options.max_send_requests;
  request.max_receive_requests = options.max_receive_requests;
  request.max_sges = options.max_sges;
  request.max_inline = options.max_inline;
  request.remote_access = options.remote_access;
  request.may_be_made_later = options.may_be_made_later;
  queue_pair.reset();
  auto made = home_.domain->CreateQueuePair(request);
  EXPECT_TRUE(made.ok()) << made.status();
  if (made.ok()) queue_pair = *std::move(made);
}

PostResult End::Post(std::vector<Work> batch) {
  const Calling calling(&home_.calling_);
  return conformance::Post(*queue_pair, std::move(batch));
}

PostResult End::PostReceives(const std::vector<Receive>& batch) {
  const Calling calling(&home_.calling_);
  return conformance::PostReceives(*queue_pair, batch);
}

void End::MustPost(std::vector<Work> batch) {
  const size_t count = batch.size();
  const PostResult result = Post(std::move(batch));
  EXPECT_TRUE(result.ok()) << result.status;
  EXPECT_EQ(result.accepted, count);
}

void End::MustPostReceives(const std::vector<Receive>& batch) {
  const PostResult result = PostReceives(batch);
  EXPECT_TRUE(result.ok()) << result.status;
  EXPECT_EQ(result.accepted, batch.size());
}

void End::Arm(CompletionQueue& queue, bool solicited_only) {
  const Calling calling(&home_.calling_);
  queue.RequestNotify(solicited_only);
}

absl::Status End::Connect(const Address& service, const ConnectOptions& connect_options) {
  const Calling calling(&calling_);
  auto made = device.connection_manager().Connect(*queue_pair, service, connect_options, Handler());
  if (made.ok()) connection = *std::move(made);
  return made.status();
}

absl::Status End::Accept(ConnectionRequest& request, const ConnectOptions& connect_options) {
  const Calling calling(&calling_);
  auto made = request.Accept(*queue_pair, connect_options, Handler());
  if (made.ok()) connection = *std::move(made);
  return made.status();
}

ConnectionHandler End::Handler() {
  return [this](const ConnectionEvent& event) {
    EXPECT_EQ(calling_, 0) << "a connection event ran inside a call";
    events.push_back(event.kind);
    statuses.push_back(event.status);
    private_data.assign(event.private_data.begin(), event.private_data.end());
    if (event.kind == ConnectionEvent::Kind::kEstablished) {
      path_mtu = event.path_mtu;
      peer_queue_pair = event.peer_queue_pair;
    }
    if (on_event) on_event(event);
  };
}

bool End::Saw(ConnectionEvent::Kind kind) const {
  return std::find(events.begin(), events.end(), kind) != events.end();
}

}  // namespace tokamak::verbs::conformance
