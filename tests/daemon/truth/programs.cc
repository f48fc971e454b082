#include "tests/daemon/truth/programs.h"

#include <poll.h>

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace tokamak::daemon {
namespace {

using Clock = std::chrono::steady_clock;

std::string IdOf(uint64_t series, uint64_t place) { return absl::StrCat("s", series, "-", place); }

}  // namespace

Programs::Programs(Witness& witness, const std::vector<std::unique_ptr<TokdProcess>>& nodes, uint64_t first_series)
    : witness_(witness), first_series_(first_series), beyond_(nodes.size()) {
  for (size_t node = 1; node < nodes.size(); ++node) {
    if (nodes[node] == nullptr) continue;
    for (int i = 0; i < kForEachNode; ++i) {
      const uint64_t seed = node * kForEachNode + static_cast<uint64_t>(i) + (first_series << 8);
      threads_.emplace_back([this, node, seed, socket = nodes[node]->socket()] {
        Run(static_cast<uint32_t>(node), socket, base::Random(seed));
      });
    }
  }
}

Programs::~Programs() {
  stop_ = true;
  for (std::thread& thread : threads_) thread.join();
}

uint64_t Programs::series() const {
  return first_series_ +
         static_cast<uint64_t>((Clock::now() - began_) / std::chrono::microseconds(kSeries.microseconds()));
}

std::vector<std::string> Programs::AllIds() const {
  std::vector<std::string> ids;
  for (uint64_t series = first_series_; series <= this->series(); ++series) {
    for (uint64_t place = 0; place < kIdsAtOnce; ++place) ids.push_back(IdOf(series, place));
  }
  return ids;
}

base::Duration Programs::longest_beyond_deadline(const std::set<size_t>& but) const {
  int64_t longest = 0;
  for (size_t node = 0; node < beyond_.size(); ++node) {
    if (but.count(node) == 0) longest = std::max(longest, beyond_[node].load());
  }
  return base::Duration::Picoseconds(longest);
}

void Programs::Run(uint32_t node, const std::string& socket, base::Random random) {
  ClientOptions options;
  options.call_timeout = kPatience;
  while (!stop_) {
    auto client = Client::Connect(socket, options);
    if (!client.ok()) poll(nullptr, 0, 5);  // the daemon is being restarted
    while (client.ok() && client->status().ok() && !stop_) Act(node, *client, random);
  }
}

void Programs::Act(uint32_t node, Client& client, base::Random& random) {
  const std::string id = IdOf(series(), random.Below(kIdsAtOnce));
  switch (random.Below(10)) {
    case 0:
      return (void)witness_.Put(client, node, id, /*confirmed=*/false);
    case 1:
    case 2:
      return (void)witness_.Put(client, node, id, /*confirmed=*/true);
    case 3:
      return (void)witness_.Delete(client, node, id);
    default:
      break;
  }
  const std::chrono::milliseconds timeout(static_cast<int64_t>(random.Below(200)));
  const Clock::time_point begin = Clock::now();
  (void)witness_.Get(client, node, id, timeout);
  const auto took = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - begin);
  const int64_t beyond = base::Microseconds((took - timeout).count()).picoseconds();
  std::atomic<int64_t>& longest = beyond_[node];
  int64_t known = longest;
  while (beyond > known && !longest.compare_exchange_weak(known, beyond)) {
  }
}

}  // namespace tokamak::daemon
