// The chosen GID, and the reasons against the others.
#include "lib/verbs/ibv/translation/gid.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tokamak::verbs::ibv {
namespace {

using testing::HasSubstr;

Gid Ip(const char* text) { return Address::Parse(text)->ip; }

GidEntry Entry(uint32_t index, const char* ip, GidType type = GidType::kRoceV2, bool up = true,
               const char* net_device = "v0") {
  GidEntry entry;
  entry.index = index;
  entry.gid = Ip(ip);
  entry.type = type;
  entry.net_device = net_device;
  entry.net_device_up = up;
  return entry;
}

// The index that is chosen; -1: none.
int Chosen(const GidChoice& choice) { return choice.entry() == nullptr ? -1 : static_cast<int>(choice.entry()->index); }

std::string ReasonOf(const GidChoice& choice, uint32_t index) {
  for (const GidVerdict& verdict : choice.verdicts) {
    if (verdict.entry.index == index) return verdict.reason;
  }
  return "no such entry";
}

TEST(GidTest, RoceTakesVersion2WithAnIpv4Address) {
  // As mlx5 lists one IPv4 and one link-local address.
  const std::vector<GidEntry> table = {Entry(0, "fe80::1", GidType::kRoceV1), Entry(1, "fe80::1"),
                                       Entry(2, "10.0.0.1", GidType::kRoceV1), Entry(3, "10.0.0.1")};
  const GidChoice choice = ChooseGid(LinkKind::kRoce, table);
  EXPECT_EQ(Chosen(choice), 3);
  EXPECT_THAT(ReasonOf(choice, 0), HasSubstr("RoCE v1"));
  EXPECT_THAT(ReasonOf(choice, 1), HasSubstr("IPv4 comes first"));
  EXPECT_THAT(ReasonOf(choice, 2), HasSubstr("RoCE v1"));
  EXPECT_THAT(ReasonOf(choice, 3), HasSubstr("v0 is up"));
}

TEST(GidTest, AddressesRankFromIpv4ToLinkLocal) {
  std::vector<GidEntry> table = {Entry(0, "fe80::1"), Entry(1, "fd00::1"), Entry(2, "2001:db8::1"),
                                 Entry(3, "10.0.0.1")};
  for (int best = 3; best >= 0; --best) {
    EXPECT_EQ(Chosen(ChooseGid(LinkKind::kRoce, table)), best);
    table.pop_back();
  }
  EXPECT_EQ(Chosen(ChooseGid(LinkKind::kRoce, table)), -1);
}

TEST(GidTest, AnIndexThatAQueuePairCannotNameIsSkipped) {
  const std::vector<GidEntry> table = {Entry(255, "fd00::1"), Entry(256, "10.0.0.1")};
  EXPECT_EQ(Chosen(ChooseGid(LinkKind::kRoce, table)), 255);
}

// The index that is gone on with after `used`; -1: none.
int Again(const std::vector<GidEntry>& table, const char* used, std::optional<uint32_t> index = std::nullopt) {
  const GidEntry* const entry = ChooseAgain(LinkKind::kRoce, table, Ip(used), index);
  return entry == nullptr ? -1 : static_cast<int>(entry->index);
}

TEST(GidTest, AMovedGidIsUsedAtItsNewIndex) {
  const std::vector<GidEntry> table = {Entry(0, "fe80::1"), Entry(1, "10.9.0.1"),
                                       Entry(2, "10.0.0.1", GidType::kRoceV1), Entry(3, "10.0.0.1"),
                                       Entry(4, "10.0.0.7", GidType::kRoceV2, false)};
  EXPECT_EQ(Again(table, "10.0.0.1"), 3) << "of the same version";
  EXPECT_EQ(Again(table, "fe80::1"), 0) << "though better ones have come";
  EXPECT_EQ(Again(table, "10.0.0.2"), 1) << "gone: the best";
  EXPECT_EQ(Again(table, "10.0.0.7"), 1) << "down: the best";
  EXPECT_EQ(Again({}, "10.0.0.1"), -1);
}

TEST(GidTest, ARequestedIndexIsKept) {
  const std::vector<GidEntry> table = {Entry(1, "10.9.0.1"), Entry(2, "10.0.0.1")};
  EXPECT_EQ(Again(table, "10.0.0.1", 1), 1);
  EXPECT_EQ(Again(table, "10.0.0.1", 2), 2);
  EXPECT_EQ(Again(table, "10.0.0.1", 3), -1);
}

TEST(GidTest, TheLowerIndexWinsAmongEquals) {
  const std::vector<GidEntry> table = {Entry(5, "10.0.0.2"), Entry(4, "10.0.0.1")};
  const GidChoice choice = ChooseGid(LinkKind::kRoce, table);
  EXPECT_EQ(Chosen(choice), 4);
  EXPECT_THAT(ReasonOf(choice, 5), HasSubstr("as good as index 4"));
}

TEST(GidTest, ANetDeviceThatIsDownOrMissingIsNotUsed) {
  const std::vector<GidEntry> table = {Entry(0, "10.0.0.1", GidType::kRoceV2, false),
                                       Entry(1, "10.0.0.2", GidType::kRoceV2, false, ""), Entry(2, "fe80::1")};
  const GidChoice choice = ChooseGid(LinkKind::kRoce, table);
  EXPECT_EQ(Chosen(choice), 2);
  EXPECT_THAT(ReasonOf(choice, 0), HasSubstr("v0 is down"));
  EXPECT_THAT(ReasonOf(choice, 1), HasSubstr("no net device"));
}

TEST(GidTest, EachUnusableEntryIsReportedWithItsReason) {
  const std::vector<GidEntry> table = {Entry(0, "10.0.0.1", GidType::kRoceV1),
                                       Entry(1, "10.0.0.1", GidType::kRoceV2, false)};
  const GidChoice choice = ChooseGid(LinkKind::kRoce, table);
  EXPECT_EQ(Chosen(choice), -1);
  EXPECT_THAT(ReasonOf(choice, 0), HasSubstr("RoCE v1"));
  EXPECT_THAT(ReasonOf(choice, 1), HasSubstr("is down"));
}

TEST(GidTest, AnIndexOverrulesTheRanking) {
  const std::vector<GidEntry> table = {Entry(0, "10.0.0.1", GidType::kRoceV1), Entry(1, "10.0.0.1")};
  const GidChoice choice = ChooseGid(LinkKind::kRoce, table, 0);
  EXPECT_EQ(Chosen(choice), 0);
  EXPECT_THAT(ReasonOf(choice, 0), HasSubstr("although: RoCE v1"));
  EXPECT_THAT(ReasonOf(choice, 1), HasSubstr("index 0 was asked for"));
}

TEST(GidTest, AMissingOrEmptyIndexIsNotChosen) {
  const std::vector<GidEntry> table = {Entry(0, "10.0.0.1"), Entry(1, "::")};
  EXPECT_EQ(Chosen(ChooseGid(LinkKind::kRoce, table, 7)), -1);
  EXPECT_EQ(Chosen(ChooseGid(LinkKind::kRoce, table, 1)), -1);
}

TEST(GidTest, AnIndexThatRdmaCmWouldNotUseIsRefused) {
  EXPECT_TRUE(CheckForRdmaCm(LinkKind::kRoce, Entry(3, "10.0.0.1")).ok());
  const absl::Status first = CheckForRdmaCm(LinkKind::kRoce, Entry(2, "10.0.0.1", GidType::kRoceV1));
  EXPECT_TRUE(absl::IsInvalidArgument(first)) << first;
  EXPECT_THAT(std::string(first.message()), HasSubstr("10.0.0.1 as RoCE v2"));
  for (const LinkKind link : {LinkKind::kInfiniBand, LinkKind::kIwarp}) {
    const absl::Status other = CheckForRdmaCm(link, Entry(1, "fe80::1", GidType::kInfiniBand));
    EXPECT_TRUE(absl::IsInvalidArgument(other)) << other;
    EXPECT_THAT(std::string(other.message()), HasSubstr("leave @1 out"));
  }
}

TEST(GidTest, InfiniBandTakesTheFirst) {
  const std::vector<GidEntry> table = {Entry(0, "fe80::1", GidType::kInfiniBand, false, ""),
                                       Entry(1, "fe80::2", GidType::kInfiniBand, false, "")};
  const GidChoice choice = ChooseGid(LinkKind::kInfiniBand, table);
  EXPECT_EQ(Chosen(choice), 0);
  EXPECT_THAT(ReasonOf(choice, 1), HasSubstr("index 0"));
}

TEST(GidTest, TheScreenShowsEachEntryAndMarksTheChosenOne) {
  const std::string text = ChooseGid(LinkKind::kRoce, {Entry(0, "fe80::1"), Entry(1, "10.0.0.1")}).ToString();
  EXPECT_THAT(text, HasSubstr("   0  fe80::1 "));
  EXPECT_THAT(text, HasSubstr("*   1  10.0.0.1 "));
}

}  // namespace
}  // namespace tokamak::verbs::ibv
