#include "tests/verbs/conformance/fixture.h"

#include <algorithm>
#include <utility>

namespace tokamak::verbs::conformance {

using testing::ElementsAre;

void Establish(Backend& backend, End& active, End& passive, ConnectOptions active_options,
               ConnectOptions passive_options) {
  Address any_port = passive.device.address();
  any_port.port = 0;
  absl::Status accepted = absl::UnknownError("no request came");
  auto listener = passive.device.connection_manager().Listen(
      passive.loop, any_port,
      [&](std::unique_ptr<ConnectionRequest> request) { accepted = passive.Accept(*request, passive_options); });
  ASSERT_TRUE(listener.ok()) << listener.status();
  const absl::Status asked = active.Connect((*listener)->address(), active_options);
  ASSERT_TRUE(asked.ok()) << asked;
  constexpr auto kEstablished = ConnectionEvent::Kind::kEstablished;
  backend.Drive([&] { return active.Saw(kEstablished) && passive.Saw(kEstablished); }, backend.patience());
  ASSERT_TRUE(accepted.ok()) << accepted;
  ASSERT_THAT(active.events, ElementsAre(kEstablished)) << backend.Counters();
  ASSERT_THAT(passive.events, ElementsAre(kEstablished)) << backend.Counters();
}

void ConformanceTest::SetUp() {
  backend_.reset();
  auto made = GetParam().make();
  if (absl::IsUnavailable(made.status())) GTEST_SKIP() << "skipped: " << made.status().message();
  ASSERT_TRUE(made.ok()) << made.status();
  backend_ = *std::move(made);
}

ConnectOptions ConformanceTest::ConnectDefaults() const {
  ConnectOptions options;
  options.reliability = backend_->reliability();
  const uint32_t max_reads = std::min(backend_->device(0).limits().max_reads, backend_->device(1).limits().max_reads);
  for (uint8_t* reads : {&options.reliability.reads_outstanding, &options.reliability.reads_served}) {
    *reads = static_cast<uint8_t>(std::min<uint32_t>(*reads, max_reads));
  }
  options.deadline = backend_->patience();
  return options;
}

std::unique_ptr<Pair> ConformanceTest::Connect(const PairOptions& options) {
  auto pair = std::make_unique<Pair>(backend(), options);
  ConnectOptions active = ConnectDefaults();
  ConnectOptions passive = ConnectDefaults();
  if (options.active_reliability) active.reliability = *options.active_reliability;
  if (options.passive_reliability) passive.reliability = *options.passive_reliability;
  active.max_path_mtu = options.max_path_mtu;
  Establish(backend(), pair->active, pair->passive, active, passive);
  return pair;
}

void ConformanceTest::ExpectFault(End& end, Fault fault, uint64_t bad, const std::vector<uint64_t>& rest) {
  ExpectFaultIn(end, end.AwaitSends(1 + rest.size()), fault, bad, rest);
}

void ConformanceTest::ExpectReceiveFault(End& end, Fault fault, uint64_t bad, const std::vector<uint64_t>& rest) {
  ExpectFaultIn(end, end.AwaitReceives(1 + rest.size()), fault, bad, rest);
}

void ConformanceTest::ExpectFaultIn(End& end, const Completions& completions, Fault fault, uint64_t bad,
                                    const std::vector<uint64_t>& rest) {
  ASSERT_EQ(completions.size(), 1 + rest.size());
  EXPECT_EQ(completions[0].id, bad);
  EXPECT_EQ(completions[0].queue_pair_number, end.queue_pair->number());
  EXPECT_TRUE(backend().Accepts(fault, completions[0].status))
      << ToString(completions[0].status) << " is no answer to: " << ToString(fault);
  for (size_t i = 0; i < rest.size(); ++i) {
    EXPECT_THAT(completions[i + 1], Flushed(rest[i])) << "request " << i << " after the failed one";
  }
  EXPECT_EQ(end.state(), QueuePairState::kError);
}

void ConformanceTest::ExpectTakes(base::Duration least, base::Duration most,
                                  const std::function<void(base::Duration* took)>& measure) {
  std::vector<int64_t> all;
  for (const int count = backend().measurements(); static_cast<int>(all.size()) < count;) {
    base::Duration took;
    measure(&took);
    if (IsSkipped() || HasFailure() || (least <= took && took <= most)) return;
    all.push_back(took.microseconds());
  }
  ADD_FAILURE() << testing::PrintToString(all) << " us, where from " << least.microseconds() << " to "
                << most.microseconds() << " are right";
}

void ConformanceTest::ExpectWorks(End& a, End& b) {
  constexpr size_t kSize = 24;
  constexpr uint64_t kReceiveId = 9001, kSendId = 9002;
  for (auto [from, to] : {std::pair<End*, End*>(&a, &b), std::pair<End*, End*>(&b, &a)}) {
    Memory source(from->home_domain(), kSize, 41);
    Memory sink(to->home_domain(), kSize, 42);
    to->MustPostReceives({{kReceiveId, {sink.whole()}}});
    from->MustPost({Send(kSendId, {source.whole()})});
    EXPECT_THAT(to->AwaitReceives(1), ElementsAre(Received(kReceiveId, kSize)));
    EXPECT_THAT(from->AwaitSends(1), ElementsAre(Done(kSendId, CompletionOpcode::kSend)));
    EXPECT_TRUE(sink.Holds(41));
  }
}

}  // namespace tokamak::verbs::conformance
