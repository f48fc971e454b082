// The fixture of the conformance tests: calls that are waited for, and that are checked to be
// answered once and never inside.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "tests/directory/conformance/backend.h"

namespace tokamak::directory {

using Ids = std::vector<NodeId>;

// A call, and what it was answered with.
template <typename T>
struct Answer {
  std::vector<T> values;
  base::Pending handle;
  bool cancelled = false;  // no answer is to come

  bool answered() const { return !values.empty(); }
  const T& value() const { return values.front(); }
  void Cancel() {
    cancelled = true;
    handle.reset();
  }
};
template <typename T>
using AnswerOf = std::shared_ptr<Answer<T>>;

class DirectoryConformance : public testing::TestWithParam<BackendCase> {
 protected:
  friend class History;  // history_test.cc

  // A lease or a wait that lasts as long as any test; one that is to end; and how long a test waits
  // for what must come.
  static constexpr base::Duration kLong = base::Seconds(50);
  static constexpr base::Duration kShort = base::Milliseconds(40);
  static constexpr base::Duration kPatience = base::Seconds(30);
  static constexpr base::Duration kDeadline = base::Seconds(55);

  void SetUp() override;
  void TearDown() override;

  Directory& here() { return backend_->here(); }
  Directory& there() { return backend_->there(); }
  base::EventLoop& loop() { return backend_->loop(); }
  void Pass(base::Duration duration) {
    backend_->RunUntil([] { return false; }, duration);
  }

  // Makes a call without waiting for its answer. It must be answered once, outside of the call; or
  // never, when it was cancelled.
  template <typename T>
  AnswerOf<T> Start(const std::function<base::Pending(std::function<void(T)>)>& call) {
    auto answer = std::make_shared<Answer<T>>();
    checks_.push_back([answer, this] {
      const bool may_be_open = answer->cancelled || dropped_;
      EXPECT_LE(answer->values.size(), answer->cancelled ? 0u : 1u) << "a callback ran too often";
      EXPECT_TRUE(answer->answered() || may_be_open) << "a callback did not run";
    });
    calling_ = true;
    answer->handle = call([this, weak = std::weak_ptr<Answer<T>>(answer)](T value) {
      EXPECT_FALSE(calling_) << "a callback ran inside the call";
      if (const auto noted = weak.lock()) noted->values.push_back(std::move(value));
    });
    calling_ = false;
    return answer;
  }
  template <typename T>
  T Await(const AnswerOf<T>& answer) {
    EXPECT_TRUE(backend_->RunUntil([&] { return answer->answered(); }, kPatience)) << "no answer";
    return answer->answered() ? answer->value() : T(absl::InternalError("no answer"));
  }

  using Joined = absl::StatusOr<JoinReply>;
  using Updated = absl::StatusOr<UpdateStatuses>;
  using Located = absl::StatusOr<LocatedObject>;
  using Deleted = absl::StatusOr<DeleteReply>;
  using Verified = absl::StatusOr<std::vector<uint32_t>>;
  using NodeList = absl::StatusOr<std::vector<NodeInfo>>;
  using RosterList = absl::StatusOr<std::vector<RosterEntry>>;

  static NodeInfo Node(const NodeId& id, uint64_t incarnation = 1, const std::string& engine = "10.0.0.1:7000");
  static base::ObjectVersion Version(const std::string& object, uint64_t generation);
  static JoinRequest JoinOf(const NodeInfo& node, base::Duration lease = kLong, base::Duration grace = kLong);
  static directory::Update AnnouncementOf(const std::string& object, uint64_t generation = 1, bool established = false);
  static directory::Update WithdrawalOf(const std::string& object, uint64_t generation = 1);

  AnswerOf<Joined> StartJoin(Directory& directory, const JoinRequest& request, base::Duration deadline = kDeadline);
  // As of what its last Join said.
  AnswerOf<Updated> StartUpdate(Directory& directory, const NodeId& node, const std::vector<Update>& updates,
                                base::Duration deadline = kDeadline);
  AnswerOf<Located> StartLocate(Directory& directory, const std::string& object, base::Duration wait,
                                base::Duration deadline = kDeadline, const NodeId& puller = "");
  AnswerOf<Deleted> StartDelete(Directory& directory, const DeleteRequest& request,
                                base::Duration deadline = kDeadline);

  // Calls through here() that are waited for.
  Joined Join(const JoinRequest& request);
  Joined Join(const NodeId& node, uint64_t incarnation = 1, base::Duration lease = kLong,
              base::Duration grace = kLong) {
    return Join(JoinOf(Node(node, incarnation), lease, grace));
  }
  absl::Status Leave(const NodeId& node, uint64_t incarnation = 1);
  std::vector<absl::Status> Update(const NodeId& node, const std::vector<directory::Update>& updates);
  absl::Status Announce(const NodeId& node, const std::string& object, uint64_t generation = 1,
                        bool established = false) {
    return Update(node, {AnnouncementOf(object, generation, established)}).front();
  }
  absl::Status Withdraw(const NodeId& node, const std::string& object, uint64_t generation = 1) {
    return Update(node, {WithdrawalOf(object, generation)}).front();
  }
  Located Locate(const std::string& object, base::Duration wait = {}, const NodeId& puller = "") {
    return Await(StartLocate(here(), object, wait, kDeadline, puller));
  }
  Deleted Delete(const std::string& object, uint64_t generation = 0, const Ids& dropped = {}, const NodeId& after = "");
  Verified Verify(const NodeId& node, const std::vector<base::ObjectVersion>& versions);
  // All pages of what `node` is taken to hold, sorted.
  std::vector<base::ObjectVersion> Held(const NodeId& node);
  absl::StatusOr<HeldReply> HeldPage(const NodeId& node, const std::string& after = "");
  NodeList Nodes();
  RosterList Roster();

  // Joins these nodes, and has each announce generation 1 of `object`, which another node put
  // first.
  void JoinAndAnnounce(const Ids& nodes, const std::string& object);

  // The directory no longer counts as one that has just begun.
  void PassRecovery() { Pass(backend_->recovery()); }

  // A node that was in a directory before comes back. `mark`: what that directory said.
  Joined Return(const NodeId& node, bool complete = false, const std::string& mark = "");

  // `holder` puts as many contents as are remembered when they are deleted, and deletes them.
  void DeleteMoreThanIsRemembered(const NodeId& holder);

  // Deletes "x" while its holder `a` is gone. Sets `mark` to the last that `a` got from the
  // directory. Defined in deletion_test.cc.
  void DeleteWhileGone(std::string* mark);

  // Sorted, so that tests need not know an order that nobody promises; empty where the object is
  // not found.
  Ids Holders(const std::string& object);
  Ids NodeIds();

  std::unique_ptr<Backend> backend_;
  bool calling_ = false;
  bool dropped_ = false;  // calls may stay without an answer
  uint64_t last_generation_ = 1000;
  std::map<NodeId, std::string> as_of_;  // JoinReply::as_of, the last
  std::vector<std::function<void()>> checks_;
};

// For directories that can be out of reach.
class DirectoryOutageConformance : public DirectoryConformance {};

inline std::string BackendCaseName(const testing::TestParamInfo<BackendCase>& info) { return info.param.name; }

}  // namespace tokamak::directory
