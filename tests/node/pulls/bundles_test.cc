// A holder's answer to a request for several small objects.
#include "lib/node/pulls/bundles.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/base/codec.h"
#include "lib/directory/directory.h"

namespace tokamak::node {
namespace {

using testing::ElementsAre;
using Versions = std::vector<base::ObjectVersion>;

base::ObjectVersion Version(uint64_t number) {
  return {base::ObjectId::FromName(absl::StrCat("small", number)), base::Generation{number + 1}};
}

class BundleAnswerTest : public testing::Test {
 protected:
  static constexpr size_t kOverhead = 5;  // of an object

  // Whether each of `versions` went into an answer of at most `max_size` bytes; all are here, and
  // of `size_` bytes.
  std::vector<bool> Encode(const Versions& versions, size_t max_size) {
    const std::vector<uint8_t> bytes(size_, 7);
    const std::vector<uint8_t> answer = Bundles::Answer(
        versions, max_size, [&](const base::ObjectVersion&) { return size_; },
        [&](const base::ObjectVersion& version) {
          copied_.push_back(version);
          return absl::MakeConstSpan(bytes);
        });
    EXPECT_LE(answer.size(), max_size);
    std::vector<bool> brought;
    base::Reader reader(answer);
    EXPECT_EQ(reader.Integer<uint32_t>(), versions.size());
    for (size_t i = 0; i < versions.size(); ++i) {
      brought.push_back(reader.Integer<uint8_t>() == 1);
      EXPECT_EQ(reader.Bytes(size_).size(), brought.back() ? size_ : 0);
    }
    EXPECT_TRUE(reader.Complete());
    return brought;
  }

  uint64_t size_ = 1000;
  Versions copied_;
};

TEST_F(BundleAnswerTest, AnObjectWithoutRoomIsNotCopied) {
  const size_t room = 4 + 4 * kOverhead + 2 * size_;
  EXPECT_THAT(Encode({Version(1), Version(2), Version(3), Version(4)}, room), ElementsAre(true, true, false, false));
  EXPECT_THAT(copied_, ElementsAre(Version(1), Version(2)));
}

TEST_F(BundleAnswerTest, AnObjectTooLargeToBeBroughtIsNotCopied) {
  size_ = directory::kMaxBrought + 1;
  EXPECT_THAT(Encode({Version(1)}, 16384), ElementsAre(false));
  EXPECT_TRUE(copied_.empty());
}

// The holder may find itself cut off between the two.
TEST_F(BundleAnswerTest, AnObjectThatMayNotBeBroughtAnyMoreIsReportedMissing) {
  const std::vector<uint8_t> answer = Bundles::Answer(
      {Version(1)}, 16384, [](const base::ObjectVersion&) { return uint64_t{10}; },
      [](const base::ObjectVersion&) { return absl::Span<const uint8_t>(); });
  ASSERT_EQ(answer.size(), 4 + kOverhead);
  EXPECT_EQ(answer[4], 0);
}

TEST_F(BundleAnswerTest, AMissingObjectIsNotCopied) {
  const std::vector<uint8_t> answer = Bundles::Answer(
      {Version(1)}, 16384, [](const base::ObjectVersion&) { return std::nullopt; },
      [&](const base::ObjectVersion& version) {
        copied_.push_back(version);
        return absl::Span<const uint8_t>();
      });
  EXPECT_EQ(answer.size(), 4 + kOverhead);
  EXPECT_TRUE(copied_.empty());
}

}  // namespace
}  // namespace tokamak::node
