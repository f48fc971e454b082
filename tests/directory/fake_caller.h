// FakeCaller carries calls to a server in the same process, in virtual time, and lets tests decide what becomes of each.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "lib/base/event_loop.h"
#include "lib/transport/caller.h"

namespace tokamak::directory {

class FakeCaller final : public transport::Caller {
 public:
  using Bytes = std::vector<uint8_t>;
  using Server =
      std::function<void(absl::Span<const uint8_t> request, std::function<void(absl::Span<const uint8_t>)> reply)>;

  FakeCaller(base::EventLoop& loop, Server server) : loop_(loop), server_(std::move(server)) {}

  // From now on: how long each way takes, whether anything gets through at all, and what becomes of replies.
  base::Duration one_way = base::Microseconds(5);
  bool cut = false;
  std::function<void(Bytes& reply)> garble;
  bool lose_replies = false;

  void Call(const verbs::Address&, absl::Span<const uint8_t> request, base::Duration deadline,
            CallCallback done) override {
    ++calls_;
    const uint64_t number = ++last_number_;
    Pending& pending = pending_[number];
    pending.done = std::move(done);
    pending.deadline =
        loop_.RunAfter(deadline, [this, number] { End(number, absl::DeadlineExceededError("no reply in time")); });
    if (cut) return;
    Later([this, number, bytes = Bytes(request.begin(), request.end())] {
      server_(bytes, [this, number](absl::Span<const uint8_t> reply) { Reply(number, reply); });
    });
  }
  uint32_t max_call_size() const override { return 16 * 1024; }

  uint64_t calls() const { return calls_; }
  size_t pending() const { return pending_.size(); }

 private:
  struct Pending {
    CallCallback done;
    base::Timer deadline;
  };

  void Reply(uint64_t number, absl::Span<const uint8_t> reply) {
    if (cut || lose_replies) return;
    Bytes bytes(reply.begin(), reply.end());
    if (garble) garble(bytes);
    Later([this, number, bytes = std::move(bytes)] { End(number, absl::MakeConstSpan(bytes)); });
  }

  void End(uint64_t number, absl::StatusOr<absl::Span<const uint8_t>> reply) {
    auto ended = pending_.extract(number);
    if (!ended.empty()) ended.mapped().done(std::move(reply));
  }

  void Later(base::Task task) {
    const uint64_t number = ++last_number_;
    travelling_[number] = loop_.RunAfter(one_way, [this, number, task = std::move(task)] {
      const base::Timer keep = std::move(travelling_[number]);
      travelling_.erase(number);
      task();
    });
  }

  base::EventLoop& loop_;
  const Server server_;
  uint64_t last_number_ = 0;
  uint64_t calls_ = 0;
  std::map<uint64_t, Pending> pending_;
  std::map<uint64_t, base::Timer> travelling_;
};

}  // namespace tokamak::directory
