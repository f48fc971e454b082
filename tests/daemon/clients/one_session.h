// A session at a node that is alone: the test is its program.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "lib/client/protocol/frame.h"
#include "lib/daemon/clients/session.h"
#include "sim/time/sim_loop.h"
#include "tests/daemon/clients/lonely_node.h"

namespace tokamak::daemon {

using Bytes = std::vector<uint8_t>;

constexpr uint64_t kTimeout = 1'000'000;  // microseconds

inline base::ObjectId Id(const std::string& name) { return base::ObjectId::FromName(name); }

// A program's session, and what it is sent.
class OneSession : public testing::Test {
 protected:
  struct Sent {
    Bytes frame;
    Descriptors descriptors;
  };

  OneSession() { Open(); }
  ~OneSession() override {
    session_.reset();
    Settle();
    const absl::Status consistent = node_.store().CheckConsistency();
    EXPECT_TRUE(consistent.ok()) << consistent;
    EXPECT_EQ(node_.store().statistics().pins, 0u);
    EXPECT_EQ(node_.store().statistics().unsealed_objects, 0u);
    EXPECT_EQ(node_.store().statistics().waiting, 0u);
  }

  void Open() {
    session_ = std::make_unique<Session>(
        node_.context(), "pid 1 test",
        [this](Bytes frame, Descriptors descriptors) {
          sent_.push_back({std::move(frame), descriptors});
        },
        [this] { return congested_; }, share_.get());
  }

  // A new session that has said hello.
  void OpenAndGreet(Access access = Access::kReadAndCreate) {
    Open();
    client::HelloRequest hello;
    hello.access = access;
    Ask(hello);
    sent_.clear();
  }

  void Settle() { scheduler_.RunFor(base::Milliseconds(10)); }

  template <typename Request>
  absl::Status Tell(const Request& request, uint64_t id = 1) {
    return session_->Handle(client::Encode(id, request));
  }

  // Sends a request that keeps the protocol and lets a little time pass.
  template <typename Request>
  void Ask(const Request& request, uint64_t id = 1) {
    const absl::Status status = Tell(request, id);
    EXPECT_TRUE(status.ok()) << status;
    Settle();
  }

  // The one answer that came, to request `id`: its status.
  absl::Status Answered(uint64_t id = 1) {
    EXPECT_EQ(sent_.size(), 1u);
    if (sent_.empty()) return absl::InternalError("no answer");
    last_ = sent_.front().frame;
    sent_.clear();
    const auto header = client::DecodeHeader(last_);
    EXPECT_TRUE(header.ok());
    EXPECT_EQ(header->request_id, id);
    EXPECT_TRUE(header->kind & client::kReplyBit);
    return client::StatusOf(*header, last_);
  }

  template <typename Reply>
  Reply Body() {
    const auto reply = client::DecodeBody<Reply>(last_);
    EXPECT_TRUE(reply.ok()) << reply.status();
    return reply.ok() ? *reply : Reply();
  }

  void Put(const std::string& name, const Bytes& data) {
    client::CreateAndSealRequest request;
    request.objects.push_back({Id(name), data, {}});
    Ask(request);
    EXPECT_TRUE(Answered().ok());
    EXPECT_EQ(Body<client::CreateAndSealReply>().outcomes.at(0).code, absl::StatusCode::kOk);
  }

  client::GetRequest GetOf(const std::vector<std::string>& names, uint64_t timeout = kTimeout) {
    client::GetRequest get;
    get.timeout_microseconds = timeout;
    for (const std::string& name : names) get.ids.push_back(Id(name));
    return get;
  }

  template <typename Request>
  Request About(const std::string& name) {
    Request request;
    request.id = Id(name);
    return request;
  }

  client::CreateRequest CreateOf(const std::string& name, uint64_t size) {
    client::CreateRequest create;
    create.id = Id(name);
    create.data_size = size;
    return create;
  }

  alignas(64) uint8_t arena_[256 * 1024] = {};
  sim::Scheduler scheduler_;
  sim::SimLoop loop_{scheduler_};
  LonelyNode node_{loop_, absl::MakeSpan(arena_)};
  // The share of the program's connections together.
  std::unique_ptr<ProgramShare> share_ = std::make_unique<ProgramShare>(64 << 20);
  bool congested_ = false;
  std::vector<Sent> sent_;
  Bytes last_;
  std::unique_ptr<Session> session_;
};

}  // namespace tokamak::daemon
