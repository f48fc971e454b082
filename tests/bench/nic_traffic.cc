#include "tests/bench/nic_traffic.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/log.h"

namespace tokamak::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr base::Duration kPatience = base::Seconds(30);

double SecondsSince(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

MemoryUse PerQueuePair(const MemoryUse& before, const MemoryUse& after, uint64_t queue_pairs) {
  const auto grown = [&](uint64_t was, uint64_t is) { return is < was ? 0 : (is - was) / queue_pairs; };
  return {grown(before.allocated, after.allocated), grown(before.resident, after.resident)};
}

}  // namespace

absl::StatusOr<std::unique_ptr<NicLink>> NicLink::Open(NicPeer& peer, const verbs::Address& address,
                                                       const Setting& setting, absl::Span<uint8_t> arena) {
  std::unique_ptr<NicLink> link(new NicLink(peer, setting));
  if (absl::Status s = peer.Open(setting); !s.ok()) return s;
  if (absl::Status s = link->Connect(address, arena); !s.ok()) return s;
  return link;
}

absl::Status NicLink::Connect(const verbs::Address& address, absl::Span<uint8_t> arena) {
  auto end = NicEnd::Open(address, setting_, arena, [this](const verbs::Completion& completion) {
    if ((completion.id & NicEnd::kReceive) == 0) {
      ++completed_;
    } else {
      received_ = true;
    }
  });
  if (!end.ok()) return end.status();
  end_ = *std::move(end);
  const MemoryUse here = MeasureMemory();
  const auto there = peer_.Memory();
  if (!there.ok()) return there.status();
  auto remote = peer_.Connect(*end_, setting_);
  if (!remote.ok()) return remote.status();
  remote_ = *remote;
  here_ = PerQueuePair(here, MeasureMemory(), setting_.queue_pairs);
  const auto there_after = peer_.Memory();
  if (!there_after.ok()) return there_after.status();
  there_ = PerQueuePair(*there, *there_after, setting_.queue_pairs);
  return absl::OkStatus();
}

NicLink::~NicLink() {
  end_.reset();
  if (absl::Status s = peer_.Close(); !s.ok()) LOG(ERROR) << s;
}

absl::StatusOr<double> NicLink::Run(const Stream& stream) {
  posted_ = completed_ = 0;
  while (posted_ < stream.in_flight) {
    if (absl::Status s = PostNext(stream); !s.ok()) return s;
  }
  absl::Status status;
  auto begin = Clock::now();
  bool warm = false;
  uint64_t counted = 0;
  double took = 0;
  // Keeps as many in flight, until the time is over.
  const auto over = [&] {
    while (status.ok() && posted_ < completed_ + stream.in_flight) status = PostNext(stream);
    took = SecondsSince(begin);
    if (!warm && took >= stream.seconds / 10) {
      warm = true;
      counted = completed_;
      begin = Clock::now();
    }
    return !status.ok() || (warm && took >= stream.seconds);
  };
  os::EpollLoop& loop = end_->loop();
  if (!loop.RunUntil(over, loop.Now() + kPatience)) return absl::DeadlineExceededError("the stream stands");
  if (!status.ok()) return status;
  const double rate = static_cast<double>((completed_ - counted) * stream.message) / took;
  if (!loop.RunUntil([&] { return completed_ == posted_; }, loop.Now() + kPatience)) {
    return absl::DeadlineExceededError(absl::StrCat(posted_ - completed_, " messages did not complete"));
  }
  return rate;
}

absl::Status NicLink::PostNext(const Stream& stream) {
  const uint64_t slots = end_->arena().size() / stream.message;
  const uint64_t offset = posted_ % slots * stream.message;
  const verbs::Sge sge = {end_->arena().data() + offset, stream.message, end_->lkey()};
  verbs::SendRequest request;
  request.opcode = stream.opcode;
  request.flags = verbs::kSignaled;
  request.sges = absl::MakeConstSpan(&sge, 1);
  request.remote_address = remote_.address + offset;
  request.rkey = remote_.rkey;
  const size_t turn = posted_++ % setting_.queue_pairs;
  return end_->queue_pair(turn).PostSend(absl::MakeConstSpan(&request, 1)).status;
}

absl::StatusOr<std::vector<double>> NicLink::PingPong(double seconds) {
  os::EpollLoop& loop = end_->loop();
  const base::Time limit = loop.Now() + base::Nanoseconds(static_cast<int64_t>(seconds * 1e9)) + kPatience;
  std::vector<double> halves;
  const auto begin = Clock::now();
  while (SecondsSince(begin) < seconds) {
    received_ = false;
    const auto sent = Clock::now();
    if (absl::Status s = end_->PostSmall(0); !s.ok()) return s;
    if (!loop.RunUntil([this] { return received_; }, limit)) return absl::DeadlineExceededError("no echo");
    halves.push_back(SecondsSince(sent) / 2);
    if (absl::Status s = end_->PostReceive(0); !s.ok()) return s;
  }
  return halves;
}

}  // namespace tokamak::bench
