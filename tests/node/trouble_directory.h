// TroubleDirectory stands before a local directory: it notes the calls that it gets, answers late,
// not at all, or is out of reach.
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

  // From now on: how long every call takes; whether calls get nowhere until their deadline; whether
  // they are carried out, and only their answers get nowhere.
  base::Duration delay = base::Microseconds(10);
  bool out_of_reach = false;
  bool answers_get_lost = false;

  // It forgets everything. From then on it is as `options` say.
  void Restart() { local_ = std::make_unique<directory::LocalDirectory>(loop_, options); }
  void RestartWithoutRoom() {
    options.objects = 0;
    Restart();
  }
  directory::LocalOptions options;

  // "join", "leave", "announce", "withdraw", "locate", "delete", "verify", "held", "roster", in
  // order.
  std::vector<std::string> said;
  size_t Count(const std::string& what) const {
    return static_cast<size_t>(std::count(said.begin(), said.end(), what));
  }
  size_t update_calls = 0;
  // The most updates that were under way at once, and for one version.
  size_t most_updates = 0;
  size_t most_updates_of_one = 0;
  std::vector<base::ObjectId> announced;  // in order

  directory::LocalDirectory& local() { return *local_; }

  base::Pending Join(const directory::JoinRequest& request, base::Duration deadline, JoinCallback done) override {
    said.push_back("join");
    return Run<absl::StatusOr<directory::JoinReply>>(deadline, std::move(done), [=](JoinCallback answer) {
      return local_->Join(request, deadline, std::move(answer));
    });
  }
  base::Pending Leave(const directory::NodeId& node, uint64_t incarnation, base::Duration deadline,
                      StatusCallback done) override {
    said.push_back("leave");
    return Run<absl::Status>(deadline, std::move(done), [=](StatusCallback answer) {
      return local_->Leave(node, incarnation, deadline, std::move(answer));
    });
  }
  base::Pending Update(const directory::NodeId& node, absl::string_view as_of,
                       absl::Span<const directory::Update> updates, base::Duration deadline,
                       UpdateCallback done) override {
    const std::vector<directory::Update> words(updates.begin(), updates.end());
    ++update_calls;
    for (const directory::Update& word : words) {
      const bool announces = word.kind == directory::Update::Kind::kAnnounce;
      said.push_back(announces ? "announce" : "withdraw");
      if (announces) announced.push_back(word.version.id);
      most_updates_of_one = std::max(most_updates_of_one, ++updates_of_[word.version]);
      most_updates = std::max(most_updates, ++updates_);
    }
    auto counted = [this, words, done = std::move(done)](absl::StatusOr<directory::UpdateStatuses> statuses) {
      for (const directory::Update& word : words) {
        --updates_of_[word.version];
        --updates_;
      }
      done(std::move(statuses));
    };
    return Run<absl::StatusOr<directory::UpdateStatuses>>(
        deadline, counted, [=, as_of = std::string(as_of)](UpdateCallback answer) {
          return local_->Update(node, as_of, words, deadline, std::move(answer));
        });
  }
  base::Pending Locate(const directory::LocateRequest& request, LocateCallback done) override {
    said.push_back("locate");
    return Run<absl::StatusOr<directory::LocatedObject>>(request.deadline, std::move(done), [=](LocateCallback answer) {
      return local_->Locate(request, std::move(answer));
    });
  }
  base::Pending Delete(const directory::DeleteRequest& request, base::Duration deadline, DeleteCallback done) override {
    said.push_back("delete");
    return Run<absl::StatusOr<directory::DeleteReply>>(deadline, std::move(done), [=](DeleteCallback answer) {
      return local_->Delete(request, deadline, std::move(answer));
    });
  }
  base::Pending Verify(const directory::NodeId& node, absl::Span<const base::ObjectVersion> versions,
                       base::Duration deadline, VerifyCallback done) override {
    said.push_back("verify");
    const std::vector<base::ObjectVersion> all(versions.begin(), versions.end());
    return Run<absl::StatusOr<std::vector<uint32_t>>>(deadline, std::move(done), [=](VerifyCallback answer) {
      return local_->Verify(node, all, deadline, std::move(answer));
    });
  }
  base::Pending Held(const directory::NodeId& node, const std::string& after, base::Duration deadline,
                     HeldCallback done) override {
    said.push_back("held");
    return Run<absl::StatusOr<directory::HeldReply>>(deadline, std::move(done), [=](HeldCallback answer) {
      return local_->Held(node, after, deadline, std::move(answer));
    });
  }
  base::Pending Roster(base::Duration deadline, RosterCallback done) override {
    said.push_back("roster");
    return Run<absl::StatusOr<std::vector<directory::RosterEntry>>>(
        deadline, std::move(done), [=](RosterCallback answer) { return local_->Roster(deadline, std::move(answer)); });
  }

 private:
  // A call on its way there, there, and on its way back.
  struct Call final : base::Handle {
    base::Timer timer;
    base::Timer deadline;
    base::Pending there;
  };

  template <typename T>
  base::Pending Run(base::Duration deadline, std::function<void(T)> done,
                    std::function<base::Pending(std::function<void(T)>)> call) {
    auto handle = std::make_unique<Call>();
    Call* const run = handle.get();
    if (out_of_reach || answers_get_lost) {
      run->deadline = loop_.RunAfter(deadline, [done] { done(absl::DeadlineExceededError("out of reach")); });
    }
    if (out_of_reach) return handle;
    if (answers_get_lost) done = [](const T&) {};
    run->timer = loop_.RunAfter(delay, [run, call, done] { run->there = call(done); });
    return handle;
  }

  base::EventLoop& loop_;
  std::unique_ptr<directory::LocalDirectory> local_;
  std::map<base::ObjectVersion, size_t> updates_of_;
  size_t updates_ = 0;
};

}  // namespace tokamak::node
