// TroubleDirectory stands before a local directory: it notes what is said to it, answers late, not at all, or is out of reach.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lib/directory/local.h"

namespace tokamak::node {

class TroubleDirectory final : public directory::Directory {
 public:
  explicit TroubleDirectory(base::EventLoop& loop)
      : loop_(loop), local_(std::make_unique<directory::LocalDirectory>(loop)) {}

  // From now on: how long every call takes; whether calls get nowhere until their deadline; whether they are carried out, and
  // only their answers get nowhere.
  base::Duration delay = base::Microseconds(10);
  bool out_of_reach = false;
  bool answers_get_lost = false;

  // It forgets everything.
  void Restart() { local_ = std::make_unique<directory::LocalDirectory>(loop_); }

  // "join", "leave", "announce", "withdraw", "locate", "nodes", in order; those of objects with the object's first byte.
  std::vector<std::string> said;
  size_t Count(const std::string& what) const {
    return static_cast<size_t>(std::count(said.begin(), said.end(), what));
  }
  // The most announcements and withdrawals that were under way at once, and for one object.
  size_t most_updates = 0;
  size_t most_updates_of_one = 0;

  directory::LocalDirectory& local() { return *local_; }

  void Join(const directory::NodeInfo& node, base::Duration lease, base::Duration deadline,
            JoinCallback done) override {
    said.push_back("join");
    Run<absl::StatusOr<directory::JoinResult>>(
        deadline, std::move(done), [=](auto answer) { local_->Join(node, lease, deadline, std::move(answer)); });
  }
  void Leave(const directory::NodeId& node, uint64_t incarnation, base::Duration deadline,
             StatusCallback done) override {
    said.push_back("leave");
    Run<absl::Status>(deadline, std::move(done),
                      [=](auto answer) { local_->Leave(node, incarnation, deadline, std::move(answer)); });
  }
  void Announce(const base::ObjectId& id, uint64_t data_size, uint64_t metadata_size, const directory::NodeId& node,
                base::Duration deadline, StatusCallback done) override {
    said.push_back("announce");
    Run<absl::Status>(deadline, Counted(id, std::move(done)), [=](auto answer) {
      local_->Announce(id, data_size, metadata_size, node, deadline, std::move(answer));
    });
  }
  void Withdraw(const base::ObjectId& id, const directory::NodeId& node, base::Duration deadline,
                StatusCallback done) override {
    said.push_back("withdraw");
    Run<absl::Status>(deadline, Counted(id, std::move(done)),
                      [=](auto answer) { local_->Withdraw(id, node, deadline, std::move(answer)); });
  }
  void Locate(const base::ObjectId& id, base::Duration wait, base::Duration deadline, LocateCallback done) override {
    said.push_back("locate");
    Run<absl::StatusOr<directory::ObjectInfo>>(
        deadline, std::move(done), [=](auto answer) { local_->Locate(id, wait, deadline, std::move(answer)); });
  }
  void Nodes(base::Duration deadline, NodesCallback done) override {
    said.push_back("nodes");
    Run<absl::StatusOr<std::vector<directory::NodeInfo>>>(
        deadline, std::move(done), [=](auto answer) { local_->Nodes(deadline, std::move(answer)); });
  }

 private:
  template <typename T>
  void Run(base::Duration deadline, std::function<void(T)> done, std::function<void(std::function<void(T)>)> call) {
    if (out_of_reach) {
      return Later(deadline, [done] { done(absl::DeadlineExceededError("out of reach")); });
    }
    if (answers_get_lost) {
      Later(delay, [call] { call([](const T&) {}); });
      return Later(deadline, [done] { done(absl::DeadlineExceededError("no answer")); });
    }
    Later(delay, [done, call] { call(done); });
  }

  StatusCallback Counted(const base::ObjectId& id, StatusCallback done) {
    most_updates_of_one = std::max(most_updates_of_one, ++updates_of_[id]);
    most_updates = std::max(most_updates, ++updates_);
    return [this, id, done = std::move(done)](const absl::Status& status) {
      --updates_of_[id];
      --updates_;
      done(status);
    };
  }

  void Later(base::Duration wait, base::Task task) {
    const uint64_t number = ++last_number_;
    timers_[number] = loop_.RunAfter(wait, [this, number, task = std::move(task)] {
      const base::Timer ran = std::move(timers_[number]);
      timers_.erase(number);
      task();
    });
  }

  base::EventLoop& loop_;
  std::unique_ptr<directory::LocalDirectory> local_;
  uint64_t last_number_ = 0;
  std::map<uint64_t, base::Timer> timers_;
  std::map<base::ObjectId, size_t> updates_of_;
  size_t updates_ = 0;
};

}  // namespace tokamak::node
