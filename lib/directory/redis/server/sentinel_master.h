// SentinelMaster finds the master that Redis Sentinels watch over, and the next one after a
// failover.
//
// The master is the server that more than half of the given Sentinels name. They never go back to
// an older configuration, and no node of ours uses a new master before more than half have it. So
// when two servers both take themselves for the master, a majority asked afterwards (Confirm) names
// the old one only if no node has used the new one yet.
//
// Bounds: Target::kMaxPlaces Sentinels; kMaxQuestions of Find and Confirm.
// Thread rule: its loop.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/answers.h"
#include "lib/base/containers/intrusive_list.h"
#include "lib/base/event_loop.h"
#include "lib/base/handle.h"
#include "lib/base/random.h"
#include "lib/directory/redis/server/finder.h"
#include "lib/directory/redis/server/named_server.h"
#include "lib/directory/redis/server/server_connection.h"

namespace tokamak::directory::redis {

class SentinelMaster final : public Finder {
 public:
  static constexpr base::Duration kAskEvery = base::Seconds(1);
  static constexpr base::Duration kAnswerWithin = base::Seconds(1);
  static constexpr size_t kMaxQuestions = ServerConnection::kMaxPending;

  // `loop` and `dialer` must outlive it. `options`: for the Sentinels.
  SentinelMaster(os::EpollLoop& loop, Dialer& dialer, const Target& target, base::Random random,
                 const ConnectionOptions& options);
  ~SentinelMaster() override;

  base::Pending Find(base::Duration deadline, FoundCallback found) override;
  std::vector<Command> Questions() const override { return {{"INFO"}}; }
  absl::Status Judge(const Place& place, const std::vector<Reply>& replies) override;
  void Failed(const Place&, const std::string&) override { AskAll(); }
  bool IsStillRight(const Place& place) const override;
  base::Pending Confirm(const Place& place, base::Duration deadline, StatusCallback done) override;
  bool needs_confirmation() const override { return true; }
  std::string name() const override;

 private:
  struct Sentinel {
    std::unique_ptr<NamedServer> finder;
    std::unique_ptr<ServerConnection> connection;
    base::Pending asked;
    uint64_t round = 0;  // of its last question
    // Last answer.
    std::optional<Place> master;
    uint64_t answered_round = 0;
    absl::Status trouble;
  };
  // Waits for a majority from round `since` on.
  struct Question final : base::Handle {
    ~Question() override {
      if (owner != nullptr) owner->questions_.Remove(this);
    }

    SentinelMaster* owner = nullptr;  // null: being answered
    uint64_t since = 0;
    FoundCallback done;
    base::Timer deadline;
    base::Pending answer;
    base::Link<Question> link;
  };

  void AskAll();
  void Heard(Sentinel& sentinel, uint64_t round, const absl::StatusOr<Reply>& reply);
  absl::StatusOr<Place> Master(const Reply& reply);
  // Counts answers from round `since` on.
  absl::StatusOr<Place> Majority(uint64_t since) const;
  bool AllHaveAnswered(uint64_t since) const;
  void AnswerQuestions();
  base::Pending Ask(base::Duration deadline, FoundCallback done);
  void Expired(Question& question);

  os::EpollLoop& loop_;
  const std::vector<Place> places_;
  const std::string master_name_;
  std::vector<Sentinel> sentinels_;
  bool warned_ = false;  // true once the log has named Sentinels missing in the target
  uint64_t round_ = 0;
  base::Timer ask_timer_;
  base::Timer ask_soon_;
  base::IntrusiveList<Question, &Question::link> questions_;  // by round
  base::Answers answers_;
};

}  // namespace tokamak::directory::redis
