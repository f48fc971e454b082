// The fixture of the conformance tests: calls that are waited for, and that are checked to be answered once and never inside.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "tests/directory/conformance/backend.h"

namespace tokamak::directory {

// What one call was answered with.
template <typename T>
struct Answer {
  std::vector<T> values;
  bool answered() const { return !values.empty(); }
  const T& value() const { return values.front(); }
};

class DirectoryConformance : public testing::TestWithParam<BackendCase> {
 protected:
  // A lease or a wait that lasts as long as any test; one that is to end; and how long a test waits for what must come.
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

  // A callback that notes its answer; every one of them must run exactly once, outside of the call.
  template <typename T>
  std::function<void(T)> Note(const std::shared_ptr<Answer<T>>& answer) {
    once_.push_back([answer] { return answer->values.size(); });
    return [this, answer](T value) {
      EXPECT_FALSE(calling_) << "a callback ran inside the call";
      answer->values.push_back(std::move(value));
    };
  }

  // Makes a call without waiting for its answer.
  template <typename T>
  std::shared_ptr<Answer<T>> Start(const std::function<void(std::function<void(T)>)>& call) {
    auto answer = std::make_shared<Answer<T>>();
    auto note = Note(answer);
    calling_ = true;
    call(std::move(note));
    calling_ = false;
    return answer;
  }
  template <typename T>
  T Await(const std::shared_ptr<Answer<T>>& answer) {
    EXPECT_TRUE(backend_->RunUntil([&] { return answer->answered(); }, kPatience)) << "no answer";
    return answer->answered() ? answer->value() : T(absl::InternalError("no answer"));
  }

  std::shared_ptr<Answer<absl::StatusOr<JoinResult>>> StartJoin(Directory& directory, const NodeInfo& node,
                                                                base::Duration lease, base::Duration deadline);
  std::shared_ptr<Answer<absl::Status>> StartAnnounce(Directory& directory, const std::string& object, uint64_t data,
                                                      uint64_t metadata, const NodeId& node, base::Duration deadline);
  std::shared_ptr<Answer<absl::StatusOr<ObjectInfo>>> StartLocate(Directory& directory, const std::string& object,
                                                                  base::Duration wait, base::Duration deadline);

  // Calls through here() that are waited for.
  absl::StatusOr<JoinResult> Join(const NodeInfo& node, base::Duration lease = kLong);
  absl::StatusOr<JoinResult> Join(const NodeId& node, uint64_t incarnation = 1, base::Duration lease = kLong);
  absl::Status Leave(const NodeId& node, uint64_t incarnation = 1);
  absl::Status Announce(const std::string& object, const NodeId& node, uint64_t data = 100, uint64_t metadata = 10);
  absl::Status Withdraw(const std::string& object, const NodeId& node);
  absl::StatusOr<ObjectInfo> Locate(const std::string& object, base::Duration wait = {});
  absl::StatusOr<std::vector<NodeInfo>> Nodes();

  // Sorted, so that tests need not know an order that nobody promises; empty where the object is not found.
  std::vector<NodeId> Holders(const std::string& object);
  std::vector<NodeId> NodeIds();

  static NodeInfo Node(const NodeId& id, uint64_t incarnation = 1);

  std::unique_ptr<Backend> backend_;
  bool calling_ = false;
  bool dropped_ = false;  // calls may stay without an answer
  std::vector<std::function<size_t()>> once_;
};

// For directories that can be out of reach.
class DirectoryOutageConformance : public DirectoryConformance {};

inline std::string BackendCaseName(const testing::TestParamInfo<BackendCase>& info) { return info.param.name; }

}  // namespace tokamak::directory
