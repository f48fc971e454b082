// A remote directory, its server and the faked calls between them, in virtual time.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "lib/directory/local.h"
#include "lib/directory/remote/remote.h"
#include "lib/directory/remote/server.h"
#include "sim/time/sim_loop.h"
#include "tests/directory/fake_caller.h"

namespace tokamak::directory {

constexpr base::Duration kDeadline = base::Seconds(2);

class RemoteDirectoryTest : public testing::Test {
 protected:
  static constexpr base::Duration kLease = base::Seconds(3600);

  static JoinRequest Node(const NodeId& id) {
    return {{id, 1, {"10.0.0.1:7000"}, "soft", 1 << 20}, kLease, base::Seconds(60), false, false};
  }
  static base::ObjectId Id(const std::string& name) { return base::ObjectId::FromName(name); }
  static Update Announcement(const std::string& object, uint64_t generation = 1) {
    return {Update::Kind::kAnnounce, {Id(object), base::Generation{generation}}, 1, 2};
  }

  // Makes a call, and gives what it is answered with within its deadline.
  template <typename Result, typename Call>
  Result Answered(const Call& call) {
    Result result = absl::InternalError("no answer");
    const base::Pending handle = call([&result](Result answer) { result = std::move(answer); });
    scheduler_.RunFor(kDeadline);
    return result;
  }
  absl::StatusOr<JoinReply> Join(const NodeId& id) {
    return Answered<absl::StatusOr<JoinReply>>(
        [&](auto done) { return remote_.Join(Node(id), kDeadline, std::move(done)); });
  }
  absl::Status Announce(const std::string& object, const NodeId& node) {
    const Update update = Announcement(object);
    const auto statuses = Answered<absl::StatusOr<UpdateStatuses>>([&](auto done) {
      return remote_.Update(node, {}, {&update, 1}, kDeadline, std::move(done));
    });
    return statuses.ok() ? statuses->front() : statuses.status();
  }
  absl::StatusOr<LocatedObject> Locate(const std::string& object) {
    return Answered<absl::StatusOr<LocatedObject>>([&](auto done) {
      return remote_.Locate({Id(object), {}, kDeadline, ""}, std::move(done));
    });
  }
  absl::StatusOr<DeleteReply> Delete(const std::string& object, base::Generation generation = base::kNoGeneration,
                                     const NodeId& after = "") {
    return Answered<absl::StatusOr<DeleteReply>>([&](auto done) {
      return remote_.Delete({Id(object), generation, {}, after}, kDeadline, std::move(done));
    });
  }
  absl::StatusOr<std::vector<uint32_t>> Verify(const NodeId& node, const std::vector<base::ObjectVersion>& versions) {
    return Answered<absl::StatusOr<std::vector<uint32_t>>>(
        [&](auto done) { return remote_.Verify(node, versions, kDeadline, std::move(done)); });
  }
  absl::StatusOr<HeldReply> Held(const NodeId& node, const std::string& after = "") {
    return Answered<absl::StatusOr<HeldReply>>(
        [&](auto done) { return remote_.Held(node, after, kDeadline, std::move(done)); });
  }
  absl::StatusOr<std::vector<NodeInfo>> Nodes() {
    return Answered<absl::StatusOr<std::vector<NodeInfo>>>(
        [&](auto done) { return remote_.Nodes(kDeadline, std::move(done)); });
  }
  // Makes the server answer with exactly these bytes.
  void AnswerWith(FakeCaller::Bytes bytes) {
    caller_.garble = [bytes](FakeCaller::Bytes& reply) { reply = bytes; };
  }
  // From now on replies are as short as any server's may be.
  void UseSmallReplies() {
    server_ = std::make_unique<DirectoryServer>(server_loop_, local_, DirectoryServer::kMinReply);
    caller_.garble = [](FakeCaller::Bytes& reply) { EXPECT_LE(reply.size(), DirectoryServer::kMinReply); };
  }

  sim::Scheduler scheduler_;
  sim::SimLoop server_loop_{scheduler_};
  sim::SimLoop loop_{scheduler_};
  LocalDirectory local_{server_loop_};
  std::unique_ptr<DirectoryServer> server_ = std::make_unique<DirectoryServer>(server_loop_, local_, 16 * 1024);
  FakeCaller caller_{loop_, [this](absl::Span<const uint8_t> request, transport::Reply reply) {
                       return server_->Handle(request, std::move(reply));
                     }};
  RemoteDirectory remote_{loop_, caller_, *verbs::Address::Parse("10.0.0.1:7000"), base::Random(1)};
};

}  // namespace tokamak::directory
