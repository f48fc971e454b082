#include "lib/cli/objects/watched_get.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <optional>

#include "lib/base/text/printable.h"
#include "lib/cli/common/as_absl.h"
#include "lib/cli/common/output.h"
#include "tokamak/gets.h"

namespace tokamak::cli {

namespace {

constexpr std::chrono::seconds kSilence(1);                                           // too short to look like a fault
constexpr std::chrono::nanoseconds kLookAtProgress = std::chrono::milliseconds(100);  // or sooner

class Watch final {
 public:
  Watch(Client& client, const std::string& name, const ObjectId& id) : client_(client), name_(name), id_(id) {}

  // True if more has come than ever before.
  bool Look() {
    SayWhatIsMissing();
    const Result<PullProgress> progress = client_.Progress(id_);
    if (!progress.ok() || progress->moved <= most_) return false;
    if (!bar_.has_value()) bar_.emplace("get  " + base::Printable(name_), progress->total);
    bar_->Advance(progress->moved - most_);
    most_ = progress->moved;
    return true;
  }

 private:
  // Once: a mistyped name never exists.
  void SayWhatIsMissing() {
    const bool is_time = !said_ && most_ == 0 && std::chrono::steady_clock::now() - began_ >= kSilence;
    if (!is_time) return;
    said_ = true;
    if (isatty(STDERR_FILENO) == 0) return;
    const StatusCode code = client_.Stat(id_).status().code();
    std::cerr << "tok: " << base::Printable(name_)
              << (code == StatusCode::kNotFound ? ": no node holds it yet, tok ls lists what there is here"
                                                : ": nothing of it has come yet")
              << "; waiting for it, Ctrl-C ends that" << std::endl;
  }

  Client& client_;
  const std::string& name_;
  const ObjectId& id_;
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  bool said_ = false;
  uint64_t most_ = 0;
  std::optional<Progress> bar_;
};

}  // namespace

// The daemon's time-out has the best reason: after progress another get, same time-out, replaces
// this one before it is cancelled, as a pull without waiters ends.
absl::StatusOr<Buffer> WatchedGet(Client& client, const std::string& name, const ObjectId& id, Timeout timeout,
                                  const GetOptions& options) {
  const Timeout look = std::min(kLookAtProgress, timeout.duration() / 10);
  Gets gets(client);
  Watch watch(client, name, id);
  Result<uint64_t> get = gets.Begin(id, timeout, options);
  while (get.ok()) {
    Result<Gets::Answer> answer = gets.Next(look);
    if (answer.ok()) return AsAbsl(std::move(answer->buffer));
    if (answer.status().code() != StatusCode::kDeadlineExceeded) return AsAbsl(answer.status());
    if (!watch.Look()) continue;
    const uint64_t before = *get;
    get = gets.Begin(id, timeout, options);
    gets.Cancel(before);
  }
  return AsAbsl(get.status());
}

}  // namespace tokamak::cli
