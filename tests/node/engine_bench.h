// EngineBench is the fixture of tests of engines: calls and pulls through one engine of the nodes
// of a simulated cluster, and their ends.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/node/engines/engine.h"
#include "tests/node/node_fixture.h"

namespace tokamak::node {

// The number of an engine of a simulated node. The first is a LocalEngine, the second, for bulk, a
// ThreadedEngine.
inline constexpr size_t kLocalEngine = 0, kThreadedEngine = 1;

// The names of tests that run with both.
inline constexpr auto kNameOfEngine = [](const testing::TestParamInfo<size_t>& info) {
  return std::string(info.param == kLocalEngine ? "Local" : "Threaded");
};

class EngineBench : public NodeTest {
 protected:
  explicit EngineBench(size_t number) : number_(number) {}

  Engine& EngineOf(size_t host) { return at(host).engine(number_); }
  verbs::Address AddressOf(size_t host) {
    verbs::Address address = at(host).address;
    address.port = static_cast<uint16_t>(7000 + number_);
    return address;
  }

  // ---- calls

  // Calls the objects' service of node `to` with a request of `size` bytes that it has no answer
  // to.
  void Call(size_t from, size_t to, size_t size = 10, base::Duration deadline = base::Seconds(20)) {
    CallBy(EngineOf(from).programs(), AddressOf(to), RequestOf(Service::kObjects, size), deadline);
  }
  // For the node's own life.
  void CallForItself(size_t from, size_t to) {
    CallBy(EngineOf(from), AddressOf(to), RequestOf(Service::kObjects, 10), base::Seconds(20));
  }
  static std::vector<uint8_t> RequestOf(Service service, size_t size) {
    return std::vector<uint8_t>(size, static_cast<uint8_t>(service));
  }
  void CallBy(transport::Caller& caller, const verbs::Address& peer, const std::vector<uint8_t>& request,
              base::Duration deadline) {
    const size_t number = calls_.size();
    in_call_ = true;
    calls_.push_back(
        caller.Call(peer, request, deadline, [this, number](absl::StatusOr<absl::Span<const uint8_t>> reply) {
          EXPECT_FALSE(in_call_);
          answers_.push_back(reply.status());
          order_.push_back(number);
        }));
    in_call_ = false;
  }
  size_t Count(absl::StatusCode code) const {
    return static_cast<size_t>(
        std::count_if(answers_.begin(), answers_.end(), [code](const absl::Status& s) { return s.code() == code; }));
  }
  bool AwaitAnswers(size_t count, base::Duration limit = base::Seconds(120)) {
    return cluster_->RunUntil([&] { return answers_.size() == count; }, limit);
  }

  // ---- pulls

  static constexpr uint64_t kSize = 60'000;

  // One pull by node `to` of an object that node `from` has, into memory of its store.
  struct OnePull {
    absl::Status status = absl::UnknownError("under way");
    transport::TransferReport report;
    std::atomic<uint64_t> moved{0};
    absl::Span<uint8_t> memory;
    base::ObjectId place;  // of the memory
    uint64_t token = 0;
    bool done = false;
  };
  // Returns what the engine says; the pull is the last of pulls_.
  absl::Status Pull(size_t to, size_t from, const std::string& name, uint64_t size) {
    pulls_.push_back(std::make_unique<OnePull>());
    OnePull& pull = *pulls_.back();
    pull.place = Id(absl::StrCat("place ", pulls_.size()));
    const auto place = at(to).store().Create(pull.place, size, 0, at(to).me);
    if (!place.ok()) return place.status();
    pull.memory = at(to).store().Memory(*place);
    transport::PullRequest request;
    request.id = Id(name);
    request.generation = at(from).Has(name) ? GenerationOn(from, name) : base::Generation{7};
    request.owner = AddressOf(from);
    request.size = {size, 0};
    in_call_ = true;
    const auto token = EngineOf(to).Pull(request, pull.memory, pull.moved,
                                         [this, &pull](const absl::Status& status, const auto& report) {
                                           EXPECT_FALSE(in_call_);
                                           EXPECT_FALSE(pull.done) << "a second end";
                                           pull.done = true;
                                           pull.status = status;
                                           pull.report = report;
                                           ended_.push_back(&pull);
                                         });
    in_call_ = false;
    if (!token.ok()) return token.status();
    pull.token = *token;
    return absl::OkStatus();
  }
  bool AwaitPulls(size_t count, base::Duration limit = base::Seconds(120)) {
    return cluster_->RunUntil([&] { return ended_.size() == count; }, limit);
  }
  bool IsLike(size_t from, const std::string& name, const OnePull& pull) {
    const absl::Span<const uint8_t> bytes = at(from).store().Bytes(*at(from).store().Find(Id(name)));
    return std::equal(bytes.begin(), bytes.end(), pull.memory.begin(), pull.memory.end());
  }
  // Gives back the memory of pulls of node `to`.
  void DropPlaces(size_t to) {
    for (const auto& pull : pulls_) (void)at(to).store().Abort(pull->place, at(to).me);
  }

  const size_t number_;
  std::vector<base::Pending> calls_;
  std::vector<absl::Status> answers_;
  std::vector<size_t> order_;  // of the calls answered
  std::vector<std::unique_ptr<OnePull>> pulls_;
  std::vector<OnePull*> ended_;
  bool in_call_ = false;
};

}  // namespace tokamak::node
