// The directory is away for a while, under load: do gets of cached and of known objects go on, does
// the memory of the daemons stay bounded, and is everything announced again soon after its return?
// Run by ci/outage.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <iomanip>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "lib/base/check.h"
#include "lib/base/log.h"
#include "lib/base/random.h"
#include "tests/daemon/tokd_process.h"
#include "tests/directory/redis_server.h"

namespace tokamak::daemon {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::seconds;

constexpr int kNodes = 3;
constexpr uint64_t kObjects = 2000;
constexpr size_t kSize = 4096;
constexpr std::chrono::milliseconds kGetTimeout(200);  // one that stands still does not hide the others
constexpr seconds kBeside{5};                          // before and after the outage
constexpr double kAnnounceWithin = 2;                  // seconds after the directory's return
constexpr uint64_t kMostGrowth = 16 << 10;             // KiB of a daemon's own memory, besides the store's

ObjectId Object(uint64_t i) { return ObjectId::FromName(absl::StrCat("object", i)); }

// A program of one node: gets objects at random, evicts the copies from time to time so that they
// are pulled from their known places again, and puts new ones.
class Program final {
 public:
  Program(const TokdProcess& node, int number)
      : client_(node.Connect()),
        number_(number),
        thread_([this] { Run(base::Random(static_cast<uint64_t>(number_))); }) {}
  ~Program() {
    stop_ = true;
    thread_.join();
  }

  void StopPutting() { puts_ = false; }
  uint64_t TakeGets() { return gets_.exchange(0); }
  uint64_t failed() const { return failed_; }
  uint64_t put() const { return put_; }

 private:
  void Run(base::Random random) {
    for (uint64_t turn = 0; !stop_; ++turn) {
      const auto buffer = client_.Get(Object(random.Below(kObjects)), kGetTimeout);
      ++(buffer.ok() ? gets_ : failed_);
      LOG_IF_EVERY_N(WARNING, !buffer.ok(), 100) << "node " << number_ << ": " << buffer.status();
      if (turn % 500 == 0) (void)client_.Evict(kObjects * kSize);
      if (turn % 20 != 0 || !puts_) continue;
      const ObjectId id = ObjectId::FromName(absl::StrCat("new", number_, "-", put_.load()));
      put_ += client_.Put(id, Pattern(64, 1)).ok() ? 1 : 0;
    }
  }

  Client client_;
  const int number_;
  std::atomic<bool> stop_{false};
  std::atomic<bool> puts_{true};
  std::atomic<uint64_t> gets_{0};
  std::atomic<uint64_t> failed_{0};
  std::atomic<uint64_t> put_{0};
  std::thread thread_;
};

int Main(seconds outage) {
  const ShortFolder folder;
  directory::redis::RedisServer redis;
  std::vector<std::unique_ptr<TokdProcess>> nodes;
  std::vector<Client> lookers;
  for (int node = 1; node <= kNodes; ++node) {
    nodes.push_back(std::make_unique<TokdProcess>(
        folder, node, std::vector<std::string>{"--directory", "redis@" + redis.address(), "--memory", "128MiB"}));
    nodes.back()->AwaitReady();
    lookers.push_back(nodes.back()->Connect());
  }
  std::cout << "putting " << kObjects << " objects, and getting each on every node" << std::endl;
  for (uint64_t i = 0; i < kObjects; ++i) CHECK(lookers[i % kNodes].Put(Object(i), Pattern(kSize, 1)).ok());
  for (Client& client : lookers) {
    for (uint64_t i = 0; i < kObjects; ++i) CHECK(client.Get(Object(i), kPatience).ok());
  }
  std::vector<std::unique_ptr<Program>> programs;
  for (int node = 1; node <= kNodes; ++node) programs.push_back(std::make_unique<Program>(*nodes[node - 1], node));

  bool good = true;
  const auto live = [&](const char* phase, seconds time) {
    uint64_t all = 0, least = UINT64_MAX;
    for (seconds second{0}; second < time; ++second) {
      std::this_thread::sleep_for(seconds(1));
      std::cout << phase << ", second " << second.count() + 1 << ": gets";
      for (auto& program : programs) {
        const uint64_t gets = program->TakeGets();
        std::cout << " " << gets;
        all += gets;
        least = std::min(least, gets);
      }
      std::cout << std::endl;
    }
    good = good && least > 0;
    return absl::StrCat(all / static_cast<uint64_t>(time.count()), "/s");
  };
  const std::string before = live("before", kBeside);
  std::array<uint64_t, kNodes> memory{};
  for (size_t i = 0; i < kNodes; ++i) memory[i] = nodes[i]->own_memory();

  redis.Freeze();
  const std::string during = live("without the directory", outage);
  uint64_t behind = 0;
  for (Client& client : lookers) behind += Number(client, "directory_updates_behind");
  for (auto& program : programs) program->StopPutting();
  redis.Thaw();
  const auto back = Clock::now();
  for (Client& client : lookers) {
    const bool announced = Eventually(
        [&] { return Number(client, "directory_away") == 0 && Number(client, "directory_updates_behind") == 0; });
    good = good && announced;
  }
  const double took = std::chrono::duration<double>(Clock::now() - back).count();
  good = good && took <= kAnnounceWithin;
  const std::string after = live("after", kBeside);

  for (size_t i = 0; i < kNodes; ++i) {
    const uint64_t now = nodes[i]->own_memory();
    std::cout << "node" << i + 1 << ": " << memory[i] << " KiB of its own before, " << now << " KiB after; "
              << programs[i]->put() << " puts, " << programs[i]->failed() << " gets failed\n";
    good = good && now <= memory[i] + kMostGrowth;
  }
  programs.clear();
  std::cout << "outage of " << outage.count() << " s: gets " << before << " before, " << during << " during, " << after
            << " after; " << behind << " updates announced within " << std::fixed << std::setprecision(2) << took
            << " s of its return: " << (good ? "good" : "NOT AS PROMISED") << std::endl;
  return good ? 0 : 1;
}

}  // namespace
}  // namespace tokamak::daemon

int main(int argc, char** argv) {
  int seconds = 30;
  if (argc > 2 || (argc == 2 && (!absl::SimpleAtoi(argv[1], &seconds) || seconds < 1))) {
    std::cerr << "usage: outage [SECONDS]\n";
    return 2;
  }
  return tokamak::daemon::Main(std::chrono::seconds(seconds));
}
