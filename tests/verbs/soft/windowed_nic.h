// A NIC with memory windows, whose peer is the test.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/verbs/soft/one_nic.h"

namespace tokamak::verbs::soft {

// With a region for windows, and one window.
class WindowedNic : public OneNic {
 protected:
  void OpenWithWindow() {
    Open();
    MakeWindow();
  }
  void MakeWindow() {
    ground_ = *domain_->RegisterMemory(absl::MakeSpan(memory_), kLocalWrite | kWindowBind);
    window_ = *domain_->CreateMemoryWindow();
  }
  SendRequest BindRequest(uint64_t id, size_t offset, size_t length, Access access) {
    SendRequest request;
    request.id = id;
    request.opcode = Opcode::kBindWindow;
    request.flags = kSignaled;
    request.bind = {window_.get(), ground_.get(), memory_.data() + offset, length, access};
    return request;
  }
  static SendRequest InvalidateRequest(uint64_t id, uint32_t rkey, SendFlags flags = kSignaled) {
    SendRequest request;
    request.id = id;
    request.opcode = Opcode::kLocalInvalidate;
    request.flags = flags;
    request.rkey = rkey;
    return request;
  }
  PostResult PostRequest(const SendRequest& request) { return queue_pair_->PostSend({&request, 1}); }
  void MustBind(size_t offset, size_t length, Access access) {
    ASSERT_TRUE(PostRequest(BindRequest(1, offset, length, access)).ok());
    Run();
    ASSERT_THAT(Outcomes(Poll()), testing::ElementsAre(testing::Pair(1, CompletionStatus::kSuccess)));
  }
  Packet WriteTo(uint32_t index, size_t offset, uint32_t rkey) {
    return To(Request(PacketOpcode::kWriteOnly, index, payload_), Remote(offset), rkey,
              static_cast<uint32_t>(payload_.size()));
  }
  Packet Invalidating(PacketOpcode opcode, uint32_t index, uint32_t rkey,
                      absl::Span<const uint8_t> payload = {}) const {
    Packet packet = Request(opcode, index, payload);
    packet.rkey = rkey;
    return packet;
  }
  // `packet` is refused, and so ends the connection.
  void ExpectRefused(const Packet& packet, uint8_t syndrome = kRemoteAccessNak) {
    TakeSent();
    fabric_.Deliver({&packet, 1});
    const auto sent = TakeSent();
    ASSERT_THAT(sent, testing::SizeIs(1));
    EXPECT_EQ(sent[0].packet.syndrome, syndrome);
    EXPECT_EQ(sent[0].packet.psn, packet.psn);
    EXPECT_EQ(queue_pair_->state(), QueuePairState::kError);
  }

  std::vector<uint8_t> payload_ = Bytes(100, 1);
  std::unique_ptr<MemoryRegion> ground_;
  std::unique_ptr<MemoryWindow> window_;
};

}  // namespace tokamak::verbs::soft
