#include "lib/store/hash.h"

#include <vector>

#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "lib/base/random.h"
#include "tests/store/fixture.h"

namespace tokamak::store {
namespace {

uint64_t HashOf(absl::string_view text) {
  StreamHash hash;
  hash.Add(AsBytes(text));
  return hash.hash();
}

// The values that XXH64 with seed 0 is published with.
TEST(StreamHashTest, AgreesWithXxh64) {
  EXPECT_EQ(HashOf(""), 0xef46db3751d8e999u);
  EXPECT_EQ(HashOf("a"), 0xd24ec4f1a98c6e5bu);
  EXPECT_EQ(HashOf("abc"), 0x44bc2cf5ad770999u);
  EXPECT_EQ(HashOf("Nobody inspects the spammish repetition"), 0xfbcea83c8a378bf1u);
}

TEST(StreamHashTest, TheHashDoesNotDependOnHowTheStreamIsCut) {
  base::Random random(7);
  std::vector<uint8_t> bytes(5000);
  for (uint8_t& b : bytes) b = static_cast<uint8_t>(random.Next());
  StreamHash whole;
  whole.Add(bytes);

  for (int round = 0; round < 100; ++round) {
    StreamHash cut;
    absl::Span<const uint8_t> rest(bytes);
    while (!rest.empty()) {
      const size_t size = std::min<size_t>(rest.size(), random.Below(100));
      cut.Add(rest.subspan(0, size));
      rest.remove_prefix(size);
    }
    ASSERT_EQ(cut.hash(), whole.hash());
  }
}

TEST(StreamHashTest, OneChangedBitChangesTheHash) { EXPECT_NE(HashOf("tokamak"), HashOf("tokamaj")); }

}  // namespace
}  // namespace tokamak::store
