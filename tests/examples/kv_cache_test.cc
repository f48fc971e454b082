// The key-value cache of docs/applications.md: right tokens, layers that overlap with computing,
// and nothing left in the stores when either side is killed.
#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "examples/kv_cache/cache_model.h"
#include "examples/kv_cache/decode.h"
#include "examples/kv_cache/prefill.h"
#include "tests/examples/applications_fixture.h"

namespace tokamak::example {
namespace {

class KvCacheTest : public ApplicationsTest {
 protected:
  static CacheShape Shape() {
    CacheShape shape;
    shape.layers = 6;
    shape.tokens = 128;
    shape.width = 128;
    shape.work = 1;
    return shape;
  }

  // The tokens of a decoder that has computed the cache itself.
  static std::vector<uint64_t> Tokens(const CacheShape& shape, uint64_t seed, size_t count) {
    std::vector<std::vector<float>> blocks(shape.layers, std::vector<float>(shape.block_floats()));
    PrefillModel prefill(shape, seed);
    for (auto& block : blocks) prefill.ComputeLayer(block);
    DecodeModel decode(shape, seed);
    std::vector<uint64_t> tokens;
    while (tokens.size() < count) {
      for (const auto& block : blocks) decode.Attend(block);
      tokens.push_back(decode.EndToken());
    }
    return tokens;
  }

  std::unique_ptr<App> RunPrefill(const Strings& more = {}) {
    Strings argv = {"examples/kv_cache/kv_cache", "prefill", "--socket", nodes_[1]->socket(), "--moments"};
    argv.insert(argv.end(), more.begin(), more.end());
    return Run(argv);
  }
  std::unique_ptr<App> RunDecode(const Strings& more = {}) {
    Strings argv = {"examples/kv_cache/kv_cache",
                    "decode",
                    "--socket",
                    nodes_[2]->socket(),
                    "--moments",
                    "--layers",
                    "6",
                    "--tokens",
                    "128",
                    "--width",
                    "128",
                    "--work",
                    "1"};
    argv.insert(argv.end(), more.begin(), more.end());
    return Run(argv);
  }
};

TEST_F(KvCacheTest, TheDecoderMatchesOneThatComputedTheCacheItself) {
  StartNodes(2);
  const auto prefill = RunPrefill();
  const auto decode = RunDecode({"--rounds", "3", "--decode", "3", "--check"});
  decode->ExpectCode(0);
  prefill->ExpectCode(0);
  EXPECT_TRUE(absl::StrContains(prefill->text(), "6 requests served, 0 given up")) << prefill->text();
  for (uint64_t round = 0; round < 3; ++round) {
    std::string tokens = "tokens";
    for (const uint64_t token : Tokens(Shape(), round, 3)) absl::StrAppend(&tokens, absl::StrFormat(" %016x", token));
    const Strings lines = decode->lines();
    EXPECT_EQ(std::count_if(lines.begin(), lines.end(), [&](const auto& l) { return absl::EndsWith(l, tokens); }), 2)
        << tokens << "\n"
        << decode->text();
  }
  EXPECT_TRUE(absl::StrContains(decode->text(), "overlap: ")) << decode->text();
  ExpectStoresAreEmpty();
}

// The moments of both, in their order; one may wait for the other.
class Happened final {
 public:
  void Note(const std::string& moment) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      moments_.push_back(moment);
    }
    changed_.notify_all();
  }
  bool Await(const std::string& moment) {
    std::unique_lock<std::mutex> lock(mutex_);
    return changed_.wait_for(lock, kPatience, [&] { return Place(moment) < moments_.size(); });
  }
  bool Before(const std::string& one, const std::string& other) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return Place(one) < Place(other) && Place(other) < moments_.size();
  }

 private:
  size_t Place(const std::string& moment) const {
    return static_cast<size_t>(std::find(moments_.begin(), moments_.end(), moment) - moments_.begin());
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  Strings moments_;
};

// Request 0 by layers: the prefill does not compute the last layer before the first was used.
// Request 1 the other way: there is nothing to use before all are put.
TEST_F(KvCacheTest, DecodingBeginsWhileLayersAreStillComputed) {
  StartNodes(2);
  Client here = nodes_[1]->Connect();
  Client there = nodes_[2]->Connect();
  Happened happened;
  bool overlapped = false;
  Status served;
  std::thread prefill([&] {
    PrefillOptions options;
    options.name = "overlap";
    options.idle = kPatience;
    options.deadline = kPatience;
    options.on_moment = [&](const std::string& moment) {
      if (moment == "layer 0 5") overlapped = happened.Await("used 0 0");
      happened.Note(moment);
    };
    served = Prefill(here, options).Serve();
  });
  for (const bool by_layers : {true, false}) {
    DecodeOptions options;
    options.name = "overlap";
    options.number = by_layers ? 0 : 1;
    options.prompt.shape = Shape();
    options.prompt.seed = 7;
    options.prompt.by_layers = by_layers;
    options.prompt.last = !by_layers;
    options.tokens = 2;
    options.deadline = kPatience + kPatience;
    options.on_moment = [&](const std::string& moment) { happened.Note(moment); };
    const auto report = Decode(there, options);
    EXPECT_TRUE(report.ok()) << report.status();
    if (!report.ok()) continue;
    EXPECT_EQ(report->tokens, Tokens(Shape(), 7, 2));
    EXPECT_LE(report->used.front(), report->first_token);
  }
  prefill.join();
  EXPECT_TRUE(served.ok()) << served;
  EXPECT_TRUE(overlapped);
  EXPECT_TRUE(happened.Before("used 0 0", "put 0 5"));
  EXPECT_TRUE(happened.Before("layer 1 5", "put 1 0"));
  EXPECT_TRUE(happened.Before("layer 1 5", "used 1 0"));
  ExpectStoresAreEmpty();
}

TEST_F(KvCacheTest, APrefillThatIsKilledEndsTheDecoderWithOneLine) {
  StartNodes(2);
  const auto decode = RunDecode({"--deadline", "3s"});
  RunPrefill({"--kill-at", "layer 0 3"})->ExpectKilled();
  decode->ExpectFailure(1, {"layer ", "of 6", "did not come within 3", "kv_cache prefill --name chat"});
  EXPECT_TRUE(absl::StrContains(decode->text(), "at used 0 2\n")) << decode->text();
  EXPECT_FALSE(absl::StrContains(decode->text(), "at used 0 3\n")) << decode->text();
  ExpectStoresAreEmpty();
}

TEST_F(KvCacheTest, ADecoderThatIsKilledOrGivesUpLeavesNothingEither) {
  StartNodes(2);
  const auto prefill = RunPrefill({"--deadline", "1s"});
  RunDecode({"--kill-at", "used 0 2"})->ExpectKilled();
  prefill->ExpectFailure(1, {"chat/0/prompt", "not done within 1"});
  ExpectStoresAreEmpty();

  // The prefill stands still until the decoder has given up.
  const auto slow = RunPrefill({"--stop-at", "layer 0 3", "--name", "slow"});
  const auto impatient = RunDecode({"--deadline", "2s", "--name", "slow", "--no-compare"});
  slow->AwaitMoment("layer 0 3");
  impatient->ExpectFailure(1, {"did not come within 2"});
  slow->Continue();
  slow->ExpectCode(0);
  EXPECT_TRUE(absl::StrContains(slow->text(), "0 requests served, 1 given up")) << slow->text();
  ExpectStoresAreEmpty();
}

TEST_F(KvCacheTest, AnInvalidPromptIsRefused) {
  StartNodes(2);
  Client client = nodes_[2]->Connect();
  const Strings texts = {"hello", "{}", R"({"layers":4000000000,"tokens":1,"width":4,"work":1,"seed":1})",
                         Prompt{{6, 1u << 31, 1u << 31, 1}, 1, true, true}.ToJson(), std::string(5000, ' ')};
  for (size_t i = 0; i < texts.size(); ++i) {
    const std::string name = absl::StrCat("bad", i);
    const ObjectName prompt = RequestNames(name, 0).Prompt();
    ASSERT_TRUE(client.Put(prompt.id(), std::vector<uint8_t>(texts[i].begin(), texts[i].end())).ok());
    RunPrefill({"--name", name})->ExpectFailure(1, {name, "is no prompt: "});
    RunDecode({"--name", name})->ExpectFailure(1, {"choose another --name"});
    EXPECT_TRUE(client.Delete(prompt.id()).ok());
  }
  ExpectStoresAreEmpty();
}

}  // namespace
}  // namespace tokamak::example
