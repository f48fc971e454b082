#include "lib/verbs/kernel/program/command.h"

#include <rdma/ib_user_verbs.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "gtest/gtest.h"

namespace tokamak::verbs::kernel {
namespace {

constexpr uint16_t Words(size_t bytes, size_t word) { return static_cast<uint16_t>(bytes / word); }

struct Basic {
  ib_uverbs_cmd_hdr header{};
  uint64_t response = 0;
  uint32_t cq = 0;
  uint32_t cqe = 0;
};

struct Extended {
  ib_uverbs_cmd_hdr header{};
  ib_uverbs_ex_cmd_hdr more{};
  uint64_t request = 0;
  uint64_t driver = 0;
};

class CommandTest : public ::testing::Test {
 protected:
  CommandTest() {
    basic_.header.command = IB_USER_VERBS_CMD_RESIZE_CQ;
    basic_.header.in_words = Words(sizeof(basic_), 4);
    basic_.header.out_words = Words(sizeof(out_), 4);
    basic_.response = reinterpret_cast<uint64_t>(&out_);
    extended_.header.command = IB_USER_VERBS_CMD_FLAG_EXTENDED | IB_USER_VERBS_EX_CMD_QUERY_DEVICE;
    extended_.header.in_words = 1;
    extended_.header.out_words = 1;
    extended_.more.provider_in_words = 1;
    extended_.more.provider_out_words = 1;
    extended_.more.response = reinterpret_cast<uint64_t>(&out_);
  }

  int DecodeBasic() { return Command::Decode(&basic_, sizeof(basic_), &command_); }
  int DecodeExtended() { return Command::Decode(&extended_, sizeof(extended_), &command_); }

  Basic basic_;
  Extended extended_;
  uint64_t out_[2] = {~uint64_t{0}, ~uint64_t{0}};
  Command command_;
};

TEST_F(CommandTest, ABasicCommandHasItsNumberItsRequestAndItsResponse) {
  basic_.cq = 7;
  ASSERT_EQ(DecodeBasic(), 0);
  EXPECT_EQ(command_.number(), uint32_t{IB_USER_VERBS_CMD_RESIZE_CQ});
  EXPECT_FALSE(command_.extended());
  ib_uverbs_resize_cq request;
  ASSERT_EQ(command_.Get(&request), 0);
  EXPECT_EQ(request.cq_handle, 7u);
  const uint64_t answer = 5;
  const uint64_t driver = 6;
  ASSERT_EQ(command_.Put(answer, driver), 0);
  EXPECT_EQ(out_[0], 5u);
  EXPECT_EQ(out_[1], 6u);
}

TEST_F(CommandTest, ALengthOtherThanTheWrittenOneIsRefused) {
  for (const uint16_t words : {0, 1, 5, 7, 0xffff}) {
    basic_.header.in_words = words;
    EXPECT_EQ(DecodeBasic(), EINVAL) << words;
  }
  EXPECT_EQ(Command::Decode(&basic_, 7, &command_), EINVAL);
  EXPECT_EQ(Command::Decode(&basic_, 0, &command_), EINVAL);
}

TEST_F(CommandTest, UndefinedBitsAreRefused) {
  basic_.header.command |= 0x100;
  EXPECT_EQ(DecodeBasic(), EINVAL);
  extended_.more.cmd_hdr_reserved = 1;
  EXPECT_EQ(DecodeExtended(), EINVAL);
}

TEST_F(CommandTest, ARequestThatIsTooShortHasNoSpace) {
  ASSERT_EQ(DecodeBasic(), 0);
  ib_uverbs_create_cq request;
  EXPECT_EQ(command_.Get(&request), ENOSPC);
}

TEST_F(CommandTest, AResponseToNowhereIsAFault) {
  basic_.response = 8;
  ASSERT_EQ(DecodeBasic(), 0);
  EXPECT_EQ(command_.Put(uint64_t{1}), EFAULT);
}

TEST_F(CommandTest, AResponseThatDoesNotFitHasNoSpace) {
  basic_.header.out_words = 1;
  ASSERT_EQ(DecodeBasic(), 0);
  EXPECT_EQ(command_.Put(uint64_t{1}), ENOSPC);
  EXPECT_EQ(command_.Put(uint32_t{1}, uint32_t{2}), EINVAL);
  EXPECT_EQ(out_[0], ~uint64_t{0});
}

TEST_F(CommandTest, AnExtendedCommandHasAPartForTheDriver) {
  extended_.driver = 9;
  ASSERT_EQ(DecodeExtended(), 0);
  EXPECT_TRUE(command_.extended());
  uint64_t driver = 0;
  ASSERT_EQ((command_.GetDriver<uint64_t>(&driver)), 0);
  EXPECT_EQ(driver, 9u);
  ASSERT_EQ(command_.Put(uint64_t{3}, uint64_t{4}), 0);
  EXPECT_EQ(out_[0], 3u);
  EXPECT_EQ(out_[1], 4u);
}

TEST_F(CommandTest, AnOlderProgramGetsAShorterExtendedResponse) {
  struct Long {
    uint64_t first = 1;
    uint64_t second = 2;
  };
  ASSERT_EQ(DecodeExtended(), 0);
  EXPECT_EQ(command_.Taken<Long>(), 8u);
  ASSERT_EQ(command_.Put(Long()), 0);
  EXPECT_EQ(out_[0], 1u);
  EXPECT_EQ(out_[1], ~uint64_t{0});
}

TEST_F(CommandTest, RoomWithoutAResponseAndAResponseWithoutRoomAreRefused) {
  extended_.more.response = 0;
  EXPECT_EQ(DecodeExtended(), EINVAL);
  extended_.more.response = 8;
  extended_.header.out_words = 0;
  extended_.more.provider_out_words = 0;
  EXPECT_EQ(DecodeExtended(), EINVAL);
}

}  // namespace
}  // namespace tokamak::verbs::kernel
