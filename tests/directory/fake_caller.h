// FakeCaller carries calls to a server in the same process, in virtual time, and lets tests decide
// what becomes of each.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "lib/base/event_loop.h"
#include "lib/base/lifetime.h"
#include "lib/transport/caller.h"

namespace tokamak::directory {

class FakeCaller final : public transport::Caller {
 public:
  using Bytes = std::vector<uint8_t>;

  FakeCaller(base::EventLoop& loop, transport::CallHandler server) : loop_(loop), server_(std::move(server)) {}

  // From now on: how long each way takes, whether anything gets through at all, and what becomes of
  // replies.
  base::Duration one_way = base::Microseconds(5);
  bool cut = false;
  std::function<void(Bytes& reply)> garble;
  bool lose_replies = false;

  base::Pending Call(const verbs::Address& server, absl::Span<const uint8_t> request, base::Duration deadline,
                     CallCallback done) override {
    ++calls_;
    last_server_ = server;
    const uint64_t number = ++last_number_;
    OneCall& call = under_way_[number];
    call.done = std::move(done);
    call.deadline = loop_.RunAfter(deadline, [this, number] {
      DropWork(number);
      End(number, absl::DeadlineExceededError("no reply in time"));
    });
    if (!cut) {
      Later([this, number, bytes = Bytes(request.begin(), request.end())] { Serve(number, bytes); });
    }
    return std::make_unique<Canceller>(*this, number);
  }
  uint32_t max_call_size() const override { return 16 * 1024; }

  uint64_t calls() const { return calls_; }
  const verbs::Address& last_server() const { return last_server_; }
  size_t pending() const { return under_way_.size(); }

 private:
  struct OneCall {
    CallCallback done;
    base::Timer deadline;
  };
  class Canceller final : public base::Handle {
   public:
    Canceller(FakeCaller& caller, uint64_t number)
        : caller_(caller), gone_(caller.lifetime_.Watched()), number_(number) {}
    ~Canceller() override {
      if (gone_.over() || caller_.under_way_.erase(number_) == 0) return;
      caller_.DropWork(number_);
    }

   private:
    FakeCaller& caller_;
    const base::Lifetime::Watch gone_;
    const uint64_t number_;
  };
  // The right to answer one call. Dropped unused, it reports an error to the caller.
  class Ticket final {
   public:
    Ticket(FakeCaller& caller, uint64_t number) : caller_(caller), gone_(caller.lifetime_.Watched()), number_(number) {}
    Ticket(const Ticket&) = delete;
    Ticket& operator=(const Ticket&) = delete;
    ~Ticket() {
      if (!gone_.over() && !used_) caller_.OnDropped(number_);
    }
    void Use(absl::Span<const uint8_t> reply) {
      if (!gone_.over() && !std::exchange(used_, true)) caller_.OnReply(number_, reply);
    }

   private:
    FakeCaller& caller_;
    const base::Lifetime::Watch gone_;
    const uint64_t number_;
    bool used_ = false;
  };

  void Serve(uint64_t number, const Bytes& request) {
    const auto ticket = std::make_shared<Ticket>(*this, number);
    base::Pending work = server_(request, [ticket](absl::Span<const uint8_t> reply) { ticket->Use(reply); });
    if (work != nullptr) work_[number] = std::move(work);
  }

  void OnReply(uint64_t number, absl::Span<const uint8_t> reply) {
    DropWork(number);
    if (cut || lose_replies) return;
    Bytes bytes(reply.begin(), reply.end());
    if (garble) garble(bytes);
    Later([this, number, bytes = std::move(bytes)] { End(number, absl::MakeConstSpan(bytes)); });
  }

  void OnDropped(uint64_t number) {
    if (cut) return;
    Later([this, number] { End(number, absl::UnavailableError("the call was dropped without an answer")); });
  }

  // Tells the server that nobody waits for its answer any more.
  void DropWork(uint64_t number) {
    Later([this, number] { const auto work = work_.extract(number); });
  }

  void End(uint64_t number, absl::StatusOr<absl::Span<const uint8_t>> reply) {
    auto ended = under_way_.extract(number);
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
  const transport::CallHandler server_;
  uint64_t last_number_ = 0;
  verbs::Address last_server_;
  uint64_t calls_ = 0;
  std::map<uint64_t, OneCall> under_way_;
  std::map<uint64_t, base::Pending> work_;
  std::map<uint64_t, base::Timer> travelling_;
  const base::Lifetime lifetime_;
};

}  // namespace tokamak::directory
