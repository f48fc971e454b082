// Messages between nodes about objects, as bytes.
#include "lib/node/calls/object_messages.h"

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "lib/directory/directory.h"
#include "tests/node/node_fixture.h"
#include "tests/support/hex.h"

namespace tokamak::node {
namespace {

using base::Microseconds;
using base::Seconds;
using testing::ElementsAre;
using testing::Optional;
using WireBytes = std::vector<uint8_t>;

// An id of 20 bytes that count up from `first`.
base::ObjectId CountingId(uint8_t first) {
  std::array<uint8_t, base::ObjectId::kSize> bytes{};
  for (uint8_t& byte : bytes) byte = first++;
  return base::ObjectId(bytes);
}

const base::ObjectVersion kX{CountingId(1), base::Generation{0x0807060504030201}};
const base::ObjectVersion kY{CountingId(0xa0), base::Generation{9}};
const verbs::Address kNode = *verbs::Address::Parse("10.0.0.9:7000");
const verbs::Address kOtherNode = *verbs::Address::Parse("[fd00::1]:7000@4792");
const WireBytes kContents = {'d', 'a', 't', 'a', 'm'};

constexpr char kXId[] = "0102030405060708090a0b0c0d0e0f1011121314";
constexpr char kXVersion[] = "0102030405060708090a0b0c0d0e0f10111213140102030405060708";
constexpr char kYId[] = "a0a1a2a3a4a5a6a7a8a9aaabacadaeafb0b1b2b3";
constexpr char kYVersion[] = "a0a1a2a3a4a5a6a7a8a9aaabacadaeafb0b1b2b30900000000000000";
constexpr char kNodeText[] = "0d00000031302e302e302e393a37303030";
constexpr char kOtherNodeText[] = "130000005b666430303a3a315d3a373030304034373932";

template <typename... Pieces>
WireBytes Hex(const Pieces&... pieces) {
  return support::BytesOfHex(absl::StrCat(pieces...));
}

// One of each call.
std::vector<ObjectRequest> AllRequests() {
  return {DropRequest{kX},
          KeepRequest{kX, 0x1122334455667788, 3},
          VouchRequest{kX, kNode},
          DropCopyRequest{kX},
          BringRequest{kX, kOtherNode},
          BringAllRequest{{kX, kY}},
          PushRequest{Microseconds(1'500'000), {kX.id, kY.id}},
          HowFarRequest{{kX, kY}}};
}

template <typename Request>
Request Decoded(const WireBytes& bytes) {
  const auto decoded = DecodeRequest(bytes);
  if (!decoded.has_value() || !std::holds_alternative<Request>(*decoded)) {
    ADD_FAILURE() << "not decoded, or another call";
    return {};
  }
  return std::get<Request>(*decoded);
}

bool IsTaken(const ObjectRequest& request) { return DecodeRequest(EncodeRequest(request)).has_value(); }

// ---- requests

// Nodes of different releases understand each other: these bytes never change.
TEST(ObjectRequestsTest, TheBytesAreFixed) {
  const std::vector<ObjectRequest> requests = AllRequests();
  EXPECT_EQ(EncodeRequest(requests[0]), Hex("01", kXVersion));
  EXPECT_EQ(EncodeRequest(requests[1]), Hex("02", kXVersion, "88776655443322110300000000000000"));
  EXPECT_EQ(EncodeRequest(requests[2]), Hex("03", kXVersion, kNodeText));
  EXPECT_EQ(EncodeRequest(requests[3]), Hex("04", kXVersion));
  EXPECT_EQ(EncodeRequest(requests[4]), Hex("05", kXVersion, kOtherNodeText));
  EXPECT_EQ(EncodeRequest(requests[5]), Hex("0602000000", kXVersion, kYVersion));
  EXPECT_EQ(EncodeRequest(requests[6]), Hex("0760e316000000000002000000", kXId, kYId));
  EXPECT_EQ(EncodeRequest(requests[7]), Hex("0802000000", kXVersion, kYVersion));
}

TEST(ObjectRequestsTest, EncodingsComeBackUnchanged) {
  for (const ObjectRequest& request : AllRequests()) {
    const WireBytes bytes = EncodeRequest(request);
    const auto decoded = DecodeRequest(bytes);
    ASSERT_TRUE(decoded.has_value()) << "call " << int{bytes[0]};
    EXPECT_EQ(decoded->index(), request.index());
    EXPECT_EQ(EncodeRequest(*decoded), bytes);
  }
}

TEST(ObjectRequestsTest, TheFieldsComeBack) {
  EXPECT_EQ(Decoded<DropRequest>(Hex("01", kXVersion)).version, kX);
  const auto keep = Decoded<KeepRequest>(Hex("02", kXVersion, "88776655443322110300000000000000"));
  EXPECT_EQ(keep.version, kX);
  EXPECT_EQ(keep.data_size, 0x1122334455667788u);
  EXPECT_EQ(keep.metadata_size, 3u);
  EXPECT_EQ(Decoded<VouchRequest>(Hex("03", kXVersion, kNodeText)).node, kNode);
  EXPECT_EQ(Decoded<DropCopyRequest>(Hex("04", kXVersion)).version, kX);
  EXPECT_EQ(Decoded<BringRequest>(Hex("05", kXVersion, kOtherNodeText)).node, kOtherNode);
  EXPECT_THAT(Decoded<BringAllRequest>(Hex("0602000000", kXVersion, kYVersion)).versions, ElementsAre(kX, kY));
  const auto push = Decoded<PushRequest>(Hex("0760e316000000000002000000", kXId, kYId));
  EXPECT_EQ(push.timeout, Microseconds(1'500'000));
  EXPECT_THAT(push.ids, ElementsAre(kX.id, kY.id));
  EXPECT_THAT(Decoded<HowFarRequest>(Hex("0802000000", kXVersion, kYVersion)).versions, ElementsAre(kX, kY));
}

TEST(ObjectRequestsTest, TruncatedRequestsAreRefused) {
  for (const ObjectRequest& request : AllRequests()) {
    const WireBytes bytes = EncodeRequest(request);
    for (size_t size = 0; size < bytes.size(); ++size) {
      EXPECT_FALSE(DecodeRequest(absl::MakeConstSpan(bytes).first(size)).has_value())
          << "call " << int{bytes[0]} << " of " << size << " bytes";
    }
  }
}

TEST(ObjectRequestsTest, TrailingBytesAreRefused) {
  for (const ObjectRequest& request : AllRequests()) {
    WireBytes bytes = EncodeRequest(request);
    bytes.push_back(0);
    EXPECT_FALSE(DecodeRequest(bytes).has_value()) << "call " << int{bytes[0]};
  }
}

TEST(ObjectRequestsTest, UnknownCallsAreRefused) {
  for (int call = 0; call < 256; ++call) {
    if (call >= static_cast<int>(ObjectCall::kDrop) && call <= static_cast<int>(ObjectCall::kHowFar)) continue;
    WireBytes bytes = Hex("00", kXVersion);
    bytes[0] = static_cast<uint8_t>(call);
    EXPECT_FALSE(DecodeRequest(bytes).has_value()) << call;
  }
}

TEST(ObjectRequestsTest, OnlyAHowFarRequestMayNameNoContent) {
  const base::ObjectVersion none{kX.id, base::kNoGeneration};
  EXPECT_FALSE(IsTaken(DropRequest{none}));
  EXPECT_FALSE(IsTaken(KeepRequest{none, 1, 1}));
  EXPECT_FALSE(IsTaken(VouchRequest{none, kNode}));
  EXPECT_FALSE(IsTaken(DropCopyRequest{none}));
  EXPECT_FALSE(IsTaken(BringRequest{none, kNode}));
  EXPECT_FALSE(IsTaken(BringAllRequest{{kX, none}}));
  EXPECT_TRUE(IsTaken(HowFarRequest{{none}}));
}

TEST(ObjectRequestsTest, AnInvalidNodeIsRefused) {
  EXPECT_FALSE(DecodeRequest(Hex("03", kXVersion, "0100000078")).has_value());
  EXPECT_FALSE(DecodeRequest(Hex("05", kXVersion, "00000000")).has_value());
}

TEST(ObjectRequestsTest, RequestsBeyondTheirBoundAreRefused) {
  std::vector<base::ObjectVersion> versions;
  for (size_t i = 0; i < BringAllRequest::kMaxObjects; ++i) versions.push_back({kX.id, base::Generation{i + 1}});
  EXPECT_TRUE(IsTaken(BringAllRequest{versions}));
  versions.push_back(kX);
  EXPECT_FALSE(IsTaken(BringAllRequest{versions}));
  EXPECT_TRUE(IsTaken(HowFarRequest{std::vector<base::ObjectVersion>(HowFarRequest::kMaxAskedAbout, kX)}));
  EXPECT_FALSE(IsTaken(HowFarRequest{std::vector<base::ObjectVersion>(HowFarRequest::kMaxAskedAbout + 1, kX)}));
  EXPECT_TRUE(IsTaken(PushRequest{Seconds(1), std::vector<base::ObjectId>(PushRequest::kMaxPushed)}));
  EXPECT_FALSE(IsTaken(PushRequest{Seconds(1), std::vector<base::ObjectId>(PushRequest::kMaxPushed + 1)}));
}

TEST(ObjectRequestsTest, ALiarsCountIsRefused) {
  EXPECT_FALSE(DecodeRequest(Hex("06ffffffff")).has_value());
  EXPECT_FALSE(DecodeRequest(Hex("08ffffffff")).has_value());
  EXPECT_FALSE(DecodeRequest(Hex("070000000000000000ffffffff")).has_value());
}

TEST(ObjectRequestsTest, OnlyAHowFarRequestMayBeEmpty) {
  EXPECT_FALSE(IsTaken(BringAllRequest{}));
  EXPECT_FALSE(IsTaken(PushRequest{Seconds(1), {}}));
  EXPECT_TRUE(IsTaken(HowFarRequest{}));
}

TEST(ObjectRequestsTest, ABringAllNamesEachVersionOnce) {
  EXPECT_FALSE(IsTaken(BringAllRequest{{kX, kY, kX}}));
  EXPECT_TRUE(IsTaken(BringAllRequest{{kX, {kX.id, base::Generation{77}}}})) << "an object in two contents";
}

TEST(ObjectRequestsTest, APushWaitsForADayAtMost) {
  EXPECT_TRUE(IsTaken(PushRequest{Seconds(86'400), {kX.id}}));
  EXPECT_FALSE(IsTaken(PushRequest{Seconds(86'401), {kX.id}}));
  EXPECT_FALSE(IsTaken(PushRequest{Seconds(-1), {kX.id}}));
}

// ---- answers

TEST(ObjectAnswersTest, TheBytesAreFixed) {
  EXPECT_EQ(EncodeDropAnswer(true), Hex("02"));
  EXPECT_EQ(EncodeDropAnswer(false), Hex("01"));
  EXPECT_EQ(EncodeKeepAnswer(KeepAnswer::kKept), Hex("01"));
  EXPECT_EQ(EncodeKeepAnswer(KeepAnswer::kLeaving), Hex("06"));
  EXPECT_EQ(EncodeHowFarAnswer({5, uint64_t{1} << 40}), Hex("0500000000000000", "0000000000010000"));
  EXPECT_EQ(EncodeVouchAnswer(Seconds(70)), Hex("801d2c0400000000"));
  EXPECT_EQ(EncodeVouchAnswer(std::nullopt), WireBytes());
  EXPECT_EQ(EncodeDropCopyAnswer({kNode, kOtherNode}), Hex("02000000", kNodeText, kOtherNodeText));
  EXPECT_EQ(EncodeDropCopyAnswer({}), Hex("00000000"));
  EXPECT_EQ(EncodeBringAnswer(BringAnswer{Seconds(6), 4, 1, kContents}),
            Hex("808d5b0000000000", "0400000000000000", "0100000000000000", "646174616d"));
  EXPECT_EQ(EncodeBringAnswer(std::nullopt), WireBytes());
  EXPECT_EQ(EncodePushAnswer({absl::OkStatus(), absl::NotFoundError(""), absl::UnauthenticatedError("")}),
            Hex("000510"));
  BringAllAnswer all(2);
  all.Bring(kContents);
  all.LeaveOut();
  EXPECT_EQ(all.Take(), Hex("02000000", "0105000000646174616d", "0000000000"));
}

TEST(ObjectAnswersTest, AnyByteConfirmsADrop) {
  EXPECT_THAT(DecodeDropAnswer(EncodeDropAnswer(true)), Optional(true));
  EXPECT_THAT(DecodeDropAnswer(EncodeDropAnswer(false)), Optional(false));
  EXPECT_THAT(DecodeDropAnswer({0}), Optional(false));
  EXPECT_THAT(DecodeDropAnswer({255}), Optional(false));
  EXPECT_EQ(DecodeDropAnswer({}), std::nullopt);
  EXPECT_EQ(DecodeDropAnswer({2, 2}), std::nullopt);
}

TEST(ObjectAnswersTest, OnlyKnownReasonsAnswerAKeep) {
  constexpr int kLast = static_cast<int>(KeepAnswer::kLeaving);
  for (int i = 1; i <= kLast; ++i) {
    const auto answer = static_cast<KeepAnswer>(i);
    EXPECT_THAT(DecodeKeepAnswer(EncodeKeepAnswer(answer)), Optional(answer));
  }
  EXPECT_EQ(DecodeKeepAnswer({}), std::nullopt);
  EXPECT_EQ(DecodeKeepAnswer({0}), std::nullopt);
  EXPECT_EQ(DecodeKeepAnswer({kLast + 1}), std::nullopt);
  EXPECT_EQ(DecodeKeepAnswer({1, 1}), std::nullopt);
}

TEST(ObjectAnswersTest, AHowFarAnswerCoversEachRequestedObject) {
  const std::vector<uint64_t> far = {5, uint64_t{1} << 40};
  EXPECT_THAT(DecodeHowFarAnswer(EncodeHowFarAnswer(far), 2), Optional(far));
  EXPECT_EQ(DecodeHowFarAnswer(EncodeHowFarAnswer(far), 1), std::nullopt);
  EXPECT_EQ(DecodeHowFarAnswer(EncodeHowFarAnswer(far), 3), std::nullopt);
  EXPECT_EQ(DecodeHowFarAnswer({}, 1), std::nullopt);
}

TEST(ObjectAnswersTest, AVouchIsGoodForADayAtMost) {
  for (const base::Duration good_for : {Microseconds(1), Seconds(70), Seconds(86'400)}) {
    EXPECT_THAT(DecodeVouchAnswer(EncodeVouchAnswer(good_for)), Optional(good_for));
  }
  EXPECT_THAT(DecodeVouchAnswer(EncodeVouchAnswer(Seconds(90'000))), Optional(Seconds(86'400)));
  EXPECT_EQ(DecodeVouchAnswer(EncodeVouchAnswer(std::nullopt)), std::nullopt);
  EXPECT_EQ(DecodeVouchAnswer(EncodeVouchAnswer(base::Duration())), std::nullopt);
  const WireBytes endless(8, 0xff), short_one(7, 1), long_one(9, 1);
  for (const WireBytes* bytes : {&endless, &short_one, &long_one}) EXPECT_EQ(DecodeVouchAnswer(*bytes), std::nullopt);
}

TEST(ObjectAnswersTest, TheCopiesOfADroppedCopyAreNamedUpToABound) {
  const std::vector<verbs::Address> nodes(DropCopyRequest::kMaxNamed, kNode);
  EXPECT_THAT(DecodeDropCopyAnswer(EncodeDropCopyAnswer(nodes)), Optional(nodes));
  const std::vector<verbs::Address> many(DropCopyRequest::kMaxNamed + 1, kNode);
  EXPECT_EQ(DecodeDropCopyAnswer(EncodeDropCopyAnswer(many)), std::nullopt);
}

TEST(ObjectAnswersTest, MalformedNamesOfCopiesAreRefused) {
  const WireBytes bytes = EncodeDropCopyAnswer({kNode, kOtherNode});
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_EQ(DecodeDropCopyAnswer(absl::MakeConstSpan(bytes).first(size)), std::nullopt) << size;
  }
  WireBytes long_one = bytes;
  long_one.push_back(0);
  EXPECT_EQ(DecodeDropCopyAnswer(long_one), std::nullopt);
  EXPECT_EQ(DecodeDropCopyAnswer(Hex("010000000100000078")), std::nullopt) << "no address";
  EXPECT_EQ(DecodeDropCopyAnswer(Hex("ffffffff")), std::nullopt);
}

TEST(ObjectAnswersTest, ABroughtObjectIsInTheAnswersBytes) {
  const WireBytes bytes = EncodeBringAnswer(BringAnswer{Seconds(6), 4, 1, kContents});
  const auto answer = DecodeBringAnswer(bytes);
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->good_for, Seconds(6));
  EXPECT_EQ(answer->data_size, 4u);
  EXPECT_EQ(answer->metadata_size, 1u);
  EXPECT_EQ(answer->contents, absl::MakeConstSpan(kContents));
  EXPECT_EQ(answer->contents.data(), bytes.data() + BringAnswer::kBesideContents);
}

TEST(ObjectAnswersTest, ABroughtObjectHasTheStatedSizes) {
  WireBytes bytes = EncodeBringAnswer(BringAnswer{Seconds(6), 4, 1, kContents});
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(DecodeBringAnswer(absl::MakeConstSpan(bytes).first(size)).has_value()) << size;
  }
  bytes.push_back(0);
  EXPECT_FALSE(DecodeBringAnswer(bytes).has_value());
  EXPECT_FALSE(DecodeBringAnswer(EncodeBringAnswer(BringAnswer{base::Duration(), 4, 1, kContents})).has_value());
  const WireBytes large(directory::kMaxBrought + 1);
  EXPECT_FALSE(DecodeBringAnswer(EncodeBringAnswer(BringAnswer{Seconds(6), large.size(), 0, large})).has_value());
  EXPECT_FALSE(DecodeBringAnswer(EncodeBringAnswer(BringAnswer{Seconds(6), UINT64_MAX, 6, kContents})).has_value());
}

TEST(ObjectAnswersTest, SeveralObjectsAreBroughtOrSkipped) {
  BringAllAnswer all(3);
  all.Bring(kContents);
  all.LeaveOut();
  all.Bring({});
  const WireBytes bytes = all.Take();
  const auto objects = BringAllAnswer::Decode(bytes, 3);
  ASSERT_EQ(objects.size(), 3u);
  EXPECT_EQ(*objects[0], absl::MakeConstSpan(kContents));
  EXPECT_TRUE(absl::IsNotFound(objects[1].status()));
  EXPECT_TRUE(objects[2]->empty());
}

TEST(ObjectAnswersTest, ObjectsBeforeAMalformedOneCount) {
  const auto outcomes = [](const WireBytes& bytes) {
    std::vector<absl::StatusCode> codes;
    for (const auto& object : BringAllAnswer::Decode(bytes, 2)) codes.push_back(object.status().code());
    return codes;
  };
  constexpr auto kOk = absl::StatusCode::kOk, kMalformed = absl::StatusCode::kUnavailable;
  EXPECT_THAT(outcomes(Hex("02000000", "010100000078", "010100000079")), ElementsAre(kOk, kOk));
  EXPECT_THAT(outcomes(Hex("02000000", "010100000078", "0101000000")), ElementsAre(kOk, kMalformed)) << "cut";
  EXPECT_THAT(outcomes(Hex("02000000", "010100000078", "010100000079", "00")), ElementsAre(kOk, kMalformed));
  EXPECT_THAT(outcomes(Hex("02000000", "020100000078", "010100000079")), ElementsAre(kMalformed, kOk));
  EXPECT_THAT(outcomes(Hex("02000000", "010110000000", "010100000079")), ElementsAre(kMalformed, kMalformed))
      << "too large";
  EXPECT_THAT(outcomes(Hex("01000000", "010100000078")), ElementsAre(kMalformed, kMalformed)) << "another count";
  EXPECT_THAT(outcomes({}), ElementsAre(kMalformed, kMalformed));
}

TEST(ObjectAnswersTest, APushIsAnsweredWithACodeForEachObject) {
  const WireBytes bytes = EncodePushAnswer({absl::OkStatus(), absl::NotFoundError("not here")});
  EXPECT_THAT(DecodePushAnswer(bytes, 2), Optional(ElementsAre(absl::StatusCode::kOk, absl::StatusCode::kNotFound)));
  EXPECT_EQ(DecodePushAnswer(bytes, 1), std::nullopt);
  EXPECT_EQ(DecodePushAnswer({}, 1), std::nullopt);
  EXPECT_THAT(DecodePushAnswer({16, 17, 255}, 3),
              Optional(ElementsAre(absl::StatusCode::kUnauthenticated, absl::StatusCode::kUnknown,
                                   absl::StatusCode::kUnknown)));
}

// ---- at a node

class ObjectCallsTest : public NodeTest {
 protected:
  // Returns node 0's answer to node 1.
  WireBytes AnswerTo(WireBytes request) {
    request.insert(request.begin(), static_cast<uint8_t>(Service::kObjects));
    std::optional<WireBytes> answer;
    const base::Pending call = at(1).engine().Call(at(0).engine().address(), request, Seconds(5),
                                                   [&](const absl::StatusOr<absl::Span<const uint8_t>>& reply) {
                                                     ASSERT_TRUE(reply.ok()) << reply.status();
                                                     answer.emplace(reply->begin(), reply->end());
                                                   });
    EXPECT_TRUE(cluster_->RunUntil([&] { return answer.has_value(); }, Seconds(5)));
    return answer.value_or(WireBytes());
  }
};

TEST_F(ObjectCallsTest, AMalformedRequestIsAnsweredWithNothing) {
  Build(2);
  EXPECT_EQ(AnswerTo({}), WireBytes());
  EXPECT_EQ(AnswerTo(Hex("00", kXVersion)), WireBytes());
  EXPECT_EQ(AnswerTo(Hex("09", kXVersion)), WireBytes());
  EXPECT_EQ(AnswerTo(Hex("01", kXVersion, "00")), WireBytes());
  EXPECT_EQ(AnswerTo(Hex("0600000000")), WireBytes());
}

TEST_F(ObjectCallsTest, EachCallIsAnsweredForAMissingObject) {
  Build(2);
  EXPECT_EQ(AnswerTo(EncodeRequest(DropRequest{kX})), EncodeDropAnswer(false));
  EXPECT_EQ(AnswerTo(EncodeRequest(KeepRequest{kY, 10, 0})), EncodeKeepAnswer(KeepAnswer::kGone));
  EXPECT_EQ(AnswerTo(EncodeRequest(VouchRequest{kX, kNode})), WireBytes());
  EXPECT_EQ(AnswerTo(EncodeRequest(DropCopyRequest{kX})), EncodeDropCopyAnswer({}));
  EXPECT_EQ(AnswerTo(EncodeRequest(BringRequest{kX, kNode})), WireBytes());
  EXPECT_EQ(AnswerTo(EncodeRequest(BringAllRequest{{kX, kY}})), Hex("02000000", "0000000000", "0000000000"));
  EXPECT_EQ(AnswerTo(EncodeRequest(PushRequest{Microseconds(1), {kX.id}})).size(), 1u);
  EXPECT_EQ(AnswerTo(EncodeRequest(HowFarRequest{{kX, kY}})), EncodeHowFarAnswer({0, 0}));
}

}  // namespace
}  // namespace tokamak::node
