// A remote directory, its server and the faked calls between them, in virtual time.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "lib/directory/local.h"
#include "lib/directory/remote/remote.h"
#include "lib/directory/remote/server.h"
#include "sim/sim_loop.h"
#include "tests/directory/fake_caller.h"

namespace tokamak::directory {

constexpr base::Duration kDeadline = base::Seconds(2);
constexpr base::Duration kLease = base::Seconds(3600);

class RemoteDirectoryTest : public testing::Test {
 protected:
  static NodeInfo Node(const NodeId& id) { return {id, 1, {"10.0.0.1:7000"}, "soft", 1 << 20}; }
  static base::ObjectId Id(const std::string& name) { return base::ObjectId::FromName(name); }

  absl::Status Join(const NodeId& id) {
    absl::Status status = absl::InternalError("no answer");
    remote_.Join(Node(id), kLease, kDeadline, [&](absl::StatusOr<JoinResult> result) { status = result.status(); });
    scheduler_.RunFor(kDeadline);
    return status;
  }
  absl::Status Announce(const std::string& object, const NodeId& node) {
    absl::Status status = absl::InternalError("no answer");
    remote_.Announce(Id(object), 1, 2, node, kDeadline, [&](const absl::Status& s) { status = s; });
    scheduler_.RunFor(kDeadline);
    return status;
  }
  absl::StatusOr<ObjectInfo> Locate(const std::string& object, base::Duration wait, base::Duration deadline) {
    absl::StatusOr<ObjectInfo> result = absl::InternalError("no answer");
    bool answered = false;
    remote_.Locate(Id(object), wait, deadline, [&](absl::StatusOr<ObjectInfo> info) {
      result = std::move(info);
      answered = true;
    });
    scheduler_.RunUntil([&] { return answered; }, scheduler_.Now() + deadline);
    return result;
  }
  absl::StatusOr<std::vector<NodeInfo>> Nodes() {
    absl::StatusOr<std::vector<NodeInfo>> result = absl::InternalError("no answer");
    remote_.Nodes(kDeadline, [&](absl::StatusOr<std::vector<NodeInfo>> nodes) { result = std::move(nodes); });
    scheduler_.RunFor(kDeadline);
    return result;
  }
  // Makes the server answer with exactly these bytes.
  void AnswerWith(FakeCaller::Bytes bytes) {
    caller_.garble = [bytes](FakeCaller::Bytes& reply) { reply = bytes; };
  }

  sim::Scheduler scheduler_;
  sim::SimLoop server_loop_{scheduler_};
  sim::SimLoop loop_{scheduler_};
  LocalDirectory local_{server_loop_};
  DirectoryServer server_{local_, 16 * 1024};
  FakeCaller caller_{loop_, [this](absl::Span<const uint8_t> request, DirectoryServer::Reply reply) {
                       server_.Handle(request, std::move(reply));
                     }};
  RemoteDirectory remote_{loop_, caller_, *verbs::Address::Parse("10.0.0.1:7000")};
};

}  // namespace tokamak::directory
