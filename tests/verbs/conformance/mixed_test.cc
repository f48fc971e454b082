// Everything at once, against a model: both sides post random requests, and at the end every byte
// and every completion is what the requests, done in order, must give.
#include <algorithm>
#include <deque>

#include "lib/base/random.h"
#include "tests/verbs/conformance/fixture.h"

namespace tokamak::verbs::conformance {
namespace {

constexpr size_t kArea = 40000;      // what one side may write at the other, and read back
constexpr size_t kMessages = 40000;  // where messages are received
constexpr size_t kLargest = 9000;
constexpr uint64_t kRequests = 150;

// One side, and the model of what it does. Its writes go to an area of the peer that only it
// writes, so that the two sides' requests need no order among each other.
class Actor final {
 public:
  Actor(End& end, End& peer, uint64_t seed)
      : end_(end),
        random_(seed),
        source_(*end.domain, kArea, seed),
        sink_(*end.domain, kArea, seed + 1),
        area_(*peer.domain, kArea, seed + 2),
        inbox_(*peer.domain, kMessages, seed + 3),
        peer_(peer),
        area_model_(area_.bytes().begin(), area_.bytes().end()),
        sink_model_(sink_.bytes().begin(), sink_.bytes().end()),
        inbox_model_(inbox_.bytes().begin(), inbox_.bytes().end()) {}

  // Posts what fits now. The model runs ahead: it does each request as it is posted.
  void PostMore() {
    while (posted_ < kRequests && posted_ - completed_ < end_.options.max_send_requests) PostOne(posted_++);
  }

  void Poll() {
    for (const Completion& completion : PollNow(*end_.sends)) {
      EXPECT_EQ(completion.status, CompletionStatus::kSuccess) << ToString(completion.status);
      ASSERT_FALSE(signaled_.empty());
      EXPECT_EQ(completion.id, signaled_.front());
      completed_ = signaled_.front() + 1;
      signaled_.pop_front();
    }
    for (const Completion& completion : PollNow(*peer_.receives)) {
      ASSERT_FALSE(expected_.empty());
      EXPECT_EQ(completion.status, CompletionStatus::kSuccess) << ToString(completion.status);
      EXPECT_EQ(completion.byte_count, expected_.front());
      expected_.pop_front();
    }
  }

  bool done() const { return completed_ == kRequests && expected_.empty(); }

  void ExpectModel() const {
    EXPECT_TRUE(Same(area_.bytes(), area_model_)) << "what was written";
    EXPECT_TRUE(Same(sink_.bytes(), sink_model_)) << "what was read";
    EXPECT_TRUE(Same(inbox_.bytes(), inbox_model_)) << "what was sent";
    EXPECT_TRUE(source_.Untouched());
  }

 private:
  void PostOne(uint64_t id) {
    const size_t length = random_.Chance(0.2) ? 0 : random_.Below(kLargest);
    const size_t here = random_.Below(kArea - length), there = random_.Below(kArea - length);
    Work work;
    switch (random_.Below(3)) {
      case 0: {
        // Consecutive places of the inbox, from its beginning again at its end: the model
        // overwrites alike.
        if (inbox_next_ + length > kMessages) inbox_next_ = 0;
        peer_.MustPostReceives({{id, {inbox_.piece(inbox_next_, length)}}});
        expected_.push_back(static_cast<uint32_t>(length));
        CopyTo(inbox_model_, inbox_next_, source_.bytes(here, length));
        inbox_next_ += length;
        work = Send(id, {source_.piece(here, length)});
        break;
      }
      case 1:
        CopyTo(area_model_, there, source_.bytes(here, length));
        work = Write(id, {source_.piece(here, length)}, area_.remote(there), area_.rkey());
        break;
      default:
        CopyTo(sink_model_, here, absl::MakeConstSpan(area_model_).subspan(there, length));
        // Without the fence, a later WRITE may overtake a READ that has to be asked again.
        fence_ = true;
        work = Read(id, {sink_.piece(here, length)}, area_.remote(there), area_.rkey());
    }
    if (work.request.opcode != Opcode::kRead && fence_) {
      work.With(kFence);
      fence_ = false;
    }
    if (random_.Chance(0.5) && id + 1 < kRequests && (id + 1) % 8 != 0) {
      work.Unsignaled();
    } else {
      signaled_.push_back(id);
    }
    end_.MustPost({work});
  }

  static void CopyTo(std::vector<uint8_t>& bytes, size_t offset, absl::Span<const uint8_t> from) {
    std::copy(from.begin(), from.end(), bytes.begin() + static_cast<ptrdiff_t>(offset));
  }

  End& end_;
  base::Random random_;
  Memory source_, sink_;
  Memory area_, inbox_;  // the peer's
  End& peer_;
  std::vector<uint8_t> area_model_, sink_model_, inbox_model_;
  std::deque<uint64_t> signaled_;
  std::deque<uint32_t> expected_;  // bytes of the messages under way
  size_t inbox_next_ = 0;
  uint64_t posted_ = 0, completed_ = 0;
  bool fence_ = false;
};

class MixedTest : public ConformanceTest {
 protected:
  void RunSeed(uint64_t seed, uint32_t mtu) {
    SCOPED_TRACE(testing::Message() << "seed " << seed << ", path MTU " << mtu);
    PairOptions options;
    options.max_path_mtu = mtu;
    options.active.max_send_requests = options.passive.max_send_requests = 32;
    options.active.max_receive_requests = options.passive.max_receive_requests = 64;
    auto pair = Connect(options);
    if (HasFailure()) return;
    Actor active(pair->active, pair->passive, 10 * seed);
    Actor passive(pair->passive, pair->active, 10 * seed + 5);
    EXPECT_TRUE(Drive([&] {
      for (Actor* actor : {&active, &passive}) {
        actor->Poll();
        actor->PostMore();
      }
      return (active.done() && passive.done()) || HasFailure();
    })) << backend().Counters();
    active.ExpectModel();
    passive.ExpectModel();
  }
};
TOKAMAK_CONFORMANCE(MixedTest);

TEST_P(MixedTest, RandomRequestsInBothDirectionsGiveWhatTheModelGives) {
  for (uint64_t seed = 1; seed <= 5 && !HasFailure(); ++seed) RunSeed(seed, seed % 2 == 0 ? 4096 : 1024);
}

TEST_P(MixedTest, RandomRequestsInTheSmallestPacketsGiveWhatTheModelGives) { RunSeed(99, kMinMtu); }

}  // namespace
}  // namespace tokamak::verbs::conformance
