// NamedServer finds a server at one given place.
//
// Thread rule: one loop.
#pragma once

#include <string>
#include <vector>

#include "lib/base/answers.h"
#include "lib/base/event_loop.h"
#include "lib/directory/redis/server/finder.h"

namespace tokamak::directory::redis {

class NamedServer final : public Finder {
 public:
  enum class Role : uint8_t {
    kMaster,    // must be fit for the directory: ServerInfo::Check
    kSentinel,  // anything: asking it for a master shows what it is
  };

  // `loop` must outlive it.
  NamedServer(base::EventLoop& loop, Place place, Role role) : place_(std::move(place)), role_(role), answers_(loop) {}

  base::Pending Find(base::Duration deadline, FoundCallback found) override;
  std::vector<Command> Questions() const override;
  absl::Status Judge(const Place& place, const std::vector<Reply>& replies) override;
  void Failed(const Place&, const std::string&) override {}
  bool IsStillRight(const Place&) const override { return true; }
  base::Pending Confirm(const Place& place, base::Duration deadline, StatusCallback done) override;
  bool needs_confirmation() const override { return false; }
  std::string name() const override { return place_.ToString(); }

 private:
  const Place place_;
  const Role role_;
  base::Answers answers_;
};

// Judges by INFO whether the server can keep the directory.
absl::Status JudgeInfo(const Reply& reply, Target::Kind kind);

}  // namespace tokamak::directory::redis
