// The patterns of docs/patterns.md do what they say, wherever verbs run.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "examples/patterns/key_value.h"
#include "examples/patterns/parameter_server.h"
#include "examples/patterns/ring.h"
#include "gtest/gtest.h"
#include "lib/base/random.h"
#include "tests/verbs/conformance/backend.h"

namespace tokamak::verbs::conformance {
inline void PrintTo(const Profile& profile, std::ostream* out) { *out << profile.name; }
}  // namespace tokamak::verbs::conformance

namespace tokamak::example {
namespace {

using verbs::conformance::Backend;
using verbs::conformance::Profile;

class PatternsTest : public testing::TestWithParam<Profile> {
 protected:
  void SetUp() override {
    auto made = GetParam().make();
    ASSERT_TRUE(made.ok()) << made.status();
    backend_ = *std::move(made);
  }

  base::EventLoop& loop(size_t i) { return backend_->loop(i % backend_->device_count()); }
  verbs::Device& device(size_t i) { return backend_->device(i % backend_->device_count()); }
  bool Drive(const std::function<bool()>& done) { return backend_->Drive(done, backend_->patience()); }

  std::unique_ptr<Backend> backend_;
};

INSTANTIATE_TEST_SUITE_P(Examples, PatternsTest, testing::ValuesIn(verbs::conformance::Profiles()),
                         [](const auto& tested) { return tested.param.name; });

// ---- ring

TEST_P(PatternsTest, ARingCarriesMessagesOfAllLengthsInOrder) {
  constexpr uint64_t kCapacity = 16 << 10;
  constexpr size_t kMessages = 500;
  base::Random random(7);
  std::vector<std::vector<uint8_t>> messages(kMessages);
  for (size_t i = 0; i < kMessages; ++i) {
    messages[i].assign(i % 10 == 0 ? random.Below(kCapacity / 2 + 1) : random.Below(200), static_cast<uint8_t>(i));
  }
  std::vector<std::vector<uint8_t>> came;
  RingReceiver receiver(loop(1), device(1), kCapacity,
                        [&](absl::Span<const uint8_t> message) { came.emplace_back(message.begin(), message.end()); });
  ASSERT_TRUE(receiver.Listen().ok());
  size_t sent = 0, refused = 0;
  absl::Status failed;
  RingSender* to_send = nullptr;
  const auto send = [&] {
    while (sent < kMessages && failed.ok()) {
      const absl::Status status = to_send->Send(messages[sent]);
      if (absl::IsResourceExhausted(status)) {
        ++refused;
        return;
      }
      failed = status;
      ++sent;
    }
  };
  RingSender sender(loop(0), device(0), kCapacity, send);
  to_send = &sender;
  ASSERT_TRUE(sender
                  .Connect(receiver.service(),
                           [&](const absl::Status& up) {
                             failed = up;
                             if (up.ok()) send();
                           })
                  .ok());
  EXPECT_TRUE(Drive([&] { return came.size() == kMessages || !failed.ok(); }));
  EXPECT_TRUE(failed.ok()) << failed;
  EXPECT_TRUE(sender.status().ok()) << sender.status();
  EXPECT_TRUE(receiver.status().ok()) << receiver.status();
  EXPECT_TRUE(came == messages);
  EXPECT_GT(refused, 0u) << "the ring was never full";
  EXPECT_FALSE(sender.Send(std::vector<uint8_t>(kCapacity / 2 + 1)).ok());
}

TEST(RingPlacesTest, NoMessageCrossesTheEndAndNoneOverwritesAnother) {
  constexpr uint64_t kCapacity = 1024;
  RingPlaces places(kCapacity);
  base::Random random(3);
  struct Message {
    uint64_t begin, length;
  };
  std::deque<Message> held;
  size_t full = 0;
  for (int i = 0; i < 20'000; ++i) {
    const uint64_t length = random.Below(kCapacity / 2 + 1);
    const auto place = places.Next(length);
    if (place.ok()) {
      ASSERT_EQ(*place % 8, 0u);
      ASSERT_LE(*place + length, kCapacity);
      for (const Message& other : held) {
        ASSERT_TRUE(*place + std::max<uint64_t>(length, 1) <= other.begin ||
                    other.begin + std::max<uint64_t>(other.length, 1) <= *place);
      }
      places.Take(*place, length);
      held.push_back({*place, length});
      continue;
    }
    ++full;
    ASSERT_FALSE(held.empty()) << "an empty ring has room for half of it";
    ASSERT_TRUE(places.Release(1).ok());
    held.pop_front();
  }
  EXPECT_GT(full, 100u);
  EXPECT_FALSE(places.Release(static_cast<uint32_t>(held.size()) + 1).ok());
}

// ---- key-value table

class TablePair {
 public:
  TablePair(base::EventLoop& owner_loop, verbs::Device& owner_device, base::EventLoop& reader_loop,
            verbs::Device& reader_device, const TableShape& shape)
      : owner(owner_loop, owner_device, shape), reader(reader_loop, reader_device, shape) {}

  TableOwner owner;
  TableReader reader;
};

TEST_P(PatternsTest, ATableIsReadWithoutItsOwner) {
  const TableShape shape;
  TablePair pair(loop(1), device(1), loop(0), device(0), shape);
  ASSERT_TRUE(pair.owner.Listen().ok());
  constexpr uint64_t kKeys = 200;
  const auto value_of = [](uint64_t key) { return std::vector<uint8_t>(key % 233, static_cast<uint8_t>(key)); };
  for (uint64_t key = 1; key <= kKeys; ++key) ASSERT_TRUE(pair.owner.Put(key, value_of(key)).ok());
  EXPECT_FALSE(pair.owner.Put(0, {}).ok());
  uint64_t key = 0, right = 0, absent = 0;
  std::function<void()> next = [&] {
    ++key;
    const absl::Status asked = pair.reader.Get(key, [&](absl::StatusOr<absl::Span<const uint8_t>> value) {
      if (value.ok() && *value == absl::Span<const uint8_t>(value_of(key))) ++right;
      if (absl::IsNotFound(value.status())) ++absent;
      if (key < 2 * kKeys) next();
    });
    EXPECT_TRUE(asked.ok()) << asked;
  };
  ASSERT_TRUE(pair.reader
                  .Connect(pair.owner.service(),
                           [&](const absl::Status& up) {
                             ASSERT_TRUE(up.ok()) << up;
                             next();
                           })
                  .ok());
  EXPECT_TRUE(Drive([&] { return right + absent == 2 * kKeys; })) << "at key " << key;
  EXPECT_EQ(right, kKeys);
  EXPECT_EQ(absent, kKeys);
  EXPECT_EQ(pair.owner.completions(), 0u);
}

// A bucket of several packets is changed while it is read: a READ that brings half of the old and
// half of the new value is found out. To the thread sanitizer that is the race that it is.
TEST_P(PatternsTest, ATornValueIsReadAgain) {
#ifdef __SANITIZE_THREAD__
  if (GetParam().name.find("udp") == 0) GTEST_SKIP() << "skipped: the sanitizer reports what this test is about";
#endif
  TableShape shape;
  shape.buckets = 1;
  shape.value_size = 64 << 10;
  TablePair pair(loop(1), device(1), loop(0), device(0), shape);
  ASSERT_TRUE(pair.owner.Listen().ok());
  constexpr uint64_t kKey = 5;
  uint8_t version = 0;
  const auto change = [&] {
    ++version;
    ASSERT_TRUE(pair.owner.Put(kKey, std::vector<uint8_t>(shape.value_size, version)).ok());
  };
  change();
  size_t got = 0, wrong = 0;
  std::function<void()> next = [&] {
    const absl::Status asked = pair.reader.Get(kKey, [&](absl::StatusOr<absl::Span<const uint8_t>> value) {
      ++got;
      if (!value.ok() || value->size() != shape.value_size ||
          std::count(value->begin(), value->end(), value->front()) != int64_t{shape.value_size}) {
        ++wrong;
      }
      if (got < 50) next();
    });
    EXPECT_TRUE(asked.ok()) << asked;
  };
  // The owner writes at times of its own, and not for ever: a reader on a bad network needs a
  // pause.
  base::Timer timer;
  std::function<void()> change_again = [&] {
    change();
    if (version < 200) timer = loop(1).RunAfter(base::Microseconds(7), [&] { change_again(); });
  };
  ASSERT_TRUE(pair.reader
                  .Connect(pair.owner.service(),
                           [&](const absl::Status& up) {
                             ASSERT_TRUE(up.ok()) << up;
                             change_again();
                             next();
                           })
                  .ok());
  EXPECT_TRUE(Drive([&] { return got == 50; }));
  EXPECT_EQ(wrong, 0u);
  // With packets sent again, in virtual time: the same every time.
  if (GetParam().lossy) {
    EXPECT_GT(pair.reader.torn(), 0u) << "the owner never wrote between two packets";
  }
}

// ---- parameter server

// Each worker has a target of its own for every parameter; together they learn the mean.
TEST_P(PatternsTest, WorkersLearnTheModelOfASingleProcess) {
  constexpr uint32_t kSteps = 40;
  const ModelShape shape{1000, 3};
  const auto target = [](uint64_t parameter, uint32_t worker) {
    return static_cast<float>(parameter % 17) + static_cast<float>(worker);
  };
  const auto gradient_of = [&](uint32_t worker, absl::Span<const float> model, absl::Span<float> gradient) {
    for (uint64_t i = 0; i < shape.parameters; ++i) gradient[i] = model[i] - target(i, worker);
  };
  ParameterServer server(loop(0), device(0), shape, 0.5F);
  ASSERT_TRUE(server.Listen().ok());
  std::vector<std::unique_ptr<Worker>> workers;
  for (uint32_t worker = 0; worker < shape.workers; ++worker) {
    workers.push_back(std::make_unique<Worker>(loop(worker + 1), device(worker + 1), shape, worker,
                                               [&, worker](absl::Span<const float> model, absl::Span<float> gradient) {
                                                 gradient_of(worker, model, gradient);
                                               }));
    ASSERT_TRUE(workers.back()->Start(server.service(), kSteps).ok());
  }
  EXPECT_TRUE(Drive(
      [&] { return std::all_of(workers.begin(), workers.end(), [](const auto& worker) { return worker->done(); }); }));
  EXPECT_TRUE(server.status().ok()) << server.status();
  EXPECT_EQ(server.step(), kSteps);

  std::vector<float> alone(shape.parameters);
  for (uint32_t step = 0; step < kSteps; ++step) {
    std::vector<std::vector<float>> gradients(shape.workers, std::vector<float>(shape.parameters));
    for (uint32_t worker = 0; worker < shape.workers; ++worker) {
      gradient_of(worker, alone, absl::MakeSpan(gradients[worker]));
    }
    for (uint64_t i = 0; i < shape.parameters; ++i) {
      float sum = 0;
      for (const auto& gradient : gradients) sum += gradient[i];
      alone[i] -= 0.5F * sum / static_cast<float>(shape.workers);
    }
  }
  for (const auto& worker : workers) {
    EXPECT_TRUE(worker->status().ok()) << worker->status();
    EXPECT_TRUE(std::equal(alone.begin(), alone.end(), worker->model().begin()));
  }
  EXPECT_NEAR(alone[16], 17.0F, 1e-3);
}

}  // namespace
}  // namespace tokamak::example
