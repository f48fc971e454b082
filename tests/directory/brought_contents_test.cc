// Small objects of the directory's own node come with the answer to the node that looks for them.
#include <cstdint>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/directory/remote_fixture.h"

namespace tokamak::directory {
namespace {

using Bytes = std::vector<uint8_t>;

class BroughtContentsTest : public RemoteDirectoryTest {
 protected:
  // "server" is the directory's node, and holds `object` with this contents; "other" holds it, too.
  void Hold(const std::string& object, Bytes contents) {
    for (const char* node : {"other", "server", "asker"}) ASSERT_TRUE(Join(node).ok());
    held_ = std::move(contents);
    Update update = Announcement(object, 7);
    update.data_size = held_.size() - kMetadata;
    update.metadata_size = kMetadata;
    for (const char* node : {"other", "server"}) {
      const auto statuses = Answered<absl::StatusOr<UpdateStatuses>>([&](auto done) {
        return remote_.Update(node, {}, {&update, 1}, kDeadline, std::move(done));
      });
      ASSERT_TRUE(statuses.ok() && statuses->front().ok());
    }
    server_->BringFrom("server", [this](const base::ObjectVersion& version) {
      asked_for_ = version;
      return absl::MakeConstSpan(held_);
    });
  }
  // Returns the bytes that the answer brings.
  Bytes Brought(const std::string& object, bool may_bring = true, const NodeId& puller = "asker") {
    Bytes brought;
    LocateRequest request{Id(object), {}, kDeadline, puller, may_bring};
    const base::Pending call = remote_.Locate(request, [&](const absl::StatusOr<LocatedObject>& info) {
      told_ = info;
      if (info.ok()) brought.assign(info->contents.begin(), info->contents.end());
    });
    scheduler_.RunFor(kDeadline);
    return brought;
  }

  static constexpr size_t kMetadata = 3;
  Bytes held_;
  base::ObjectVersion asked_for_;
  absl::StatusOr<LocatedObject> told_ = absl::InternalError("no answer");  // its contents are over
};

TEST_F(BroughtContentsTest, ASmallObjectOfTheDirectorysNodeComesWithTheAnswerAndThatNodeIsNamedFirst) {
  Hold("x", Bytes(kMaxBrought, 0xab));
  EXPECT_EQ(Brought("x"), held_);
  ASSERT_TRUE(told_.ok()) << told_.status();
  EXPECT_EQ(told_->holders, (std::vector<NodeId>{"server", "other"}));
  EXPECT_EQ(asked_for_, (base::ObjectVersion{Id("x"), base::Generation{7}}));
}

TEST_F(BroughtContentsTest, APullerOfABroughtObjectIsKnownToADeletion) {
  Hold("x", Bytes(100, 1));
  EXPECT_EQ(Brought("x"), held_);
  const auto step = Delete("x");
  ASSERT_TRUE(step.ok()) << step.status();
  EXPECT_EQ(step->holders, (std::vector<NodeId>{"asker", "other", "server"}));
}

TEST_F(BroughtContentsTest, NoContentComesUnasked) {
  Hold("x", Bytes(100, 1));
  EXPECT_EQ(Brought("x", false), Bytes());
  EXPECT_TRUE(told_.ok()) << told_.status();
}

TEST_F(BroughtContentsTest, NoContentComesWithoutAPuller) {
  Hold("x", Bytes(100, 1));
  EXPECT_EQ(Brought("x", true, ""), Bytes());
  EXPECT_TRUE(absl::IsInvalidArgument(told_.status())) << told_.status();
}

TEST_F(BroughtContentsTest, ALargerObjectIsToBePulled) {
  Hold("x", Bytes(kMaxBrought + 1, 1));
  EXPECT_EQ(Brought("x"), Bytes());
  ASSERT_TRUE(told_.ok()) << told_.status();
  EXPECT_EQ(told_->holders.size(), 2u);
}

TEST_F(BroughtContentsTest, AnObjectThatTheNodeLostIsToBePulledFromAnother) {
  Hold("x", Bytes(100, 1));
  held_.clear();
  EXPECT_EQ(Brought("x"), Bytes());
  EXPECT_TRUE(told_.ok()) << told_.status();
}

TEST_F(BroughtContentsTest, AnObjectOfAnotherNodeIsNotLookedFor) {
  Hold("x", Bytes(100, 1));
  ASSERT_TRUE(Announce("y", "other").ok());
  EXPECT_EQ(Brought("y"), Bytes());
  EXPECT_EQ(asked_for_, base::ObjectVersion());
}

TEST_F(BroughtContentsTest, AReplyWithoutRoomBringsNothing) {
  UseSmallReplies();
  Hold("x", Bytes(400, 1));
  EXPECT_EQ(Brought("x"), Bytes());
  EXPECT_TRUE(told_.ok()) << told_.status();
}

TEST_F(BroughtContentsTest, AWrongNumberOfBytesIsMalformed) {
  Hold("x", Bytes(100, 1));
  caller_.garble = [](FakeCaller::Bytes& reply) {
    reply.pop_back();
    for (size_t at = 0; at + 4 <= reply.size(); ++at) {  // the length of the contents
      if (base::LoadLittle<uint32_t>(&reply[at]) == 100 && reply.size() - at == 4 + 99) {
        base::StoreLittle<uint32_t>(&reply[at], 99);
      }
    }
  };
  EXPECT_EQ(Brought("x"), Bytes());
  EXPECT_TRUE(absl::IsUnavailable(told_.status())) << told_.status();
}

}  // namespace
}  // namespace tokamak::directory
