#include "lib/node/calls/node_numbers.h"

#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace tokamak::node {
namespace {

NodeNumbers Numbers(const std::string& page, std::vector<NodeNumber> numbers) {
  NodeNumbers made;
  made.page = page;
  made.numbers = std::move(numbers);
  return made;
}

TEST(NodeNumbersTest, EncodingsComeBackUnchanged) {
  const auto decoded = NodeNumbers::Decode(
      NodeNumbers::Encode(Numbers("[fd00::1]:9464", {{"store_used_bytes", 5}, {"rail0_bytes_total", UINT64_MAX}})));
  ASSERT_TRUE(decoded.has_value());
  EXPECT_EQ(decoded->page, "[fd00::1]:9464");
  ASSERT_EQ(decoded->numbers.size(), 2u);
  EXPECT_EQ(decoded->numbers[0].name, "store_used_bytes");
  EXPECT_EQ(decoded->numbers[1].value, UINT64_MAX);
  EXPECT_TRUE(NodeNumbers::Decode(NodeNumbers::Encode(NodeNumbers())).has_value());
}

TEST(NodeNumbersTest, NumbersBeyondTheBoundAreNotSent) {
  const std::vector<NodeNumber> many(NodeNumbers::kMaxNumbers + 1, {"x", 1});
  const auto decoded = NodeNumbers::Decode(NodeNumbers::Encode(Numbers("", many)));
  ASSERT_TRUE(decoded.has_value());
  EXPECT_EQ(decoded->numbers.size(), NodeNumbers::kMaxNumbers);
}

TEST(NodeNumbersTest, CharactersThatATerminalOrAPageInterpretsAreRefused) {
  for (const char* name : {"", "a b", "A", "\x1b[2J", "<b>", "a{program}"}) {
    EXPECT_FALSE(NodeNumbers::Decode(NodeNumbers::Encode(Numbers("", {{name, 1}}))).has_value()) << name;
  }
  const std::string long_name(NodeNumbers::kMaxName + 1, 'a');
  EXPECT_FALSE(NodeNumbers::Decode(NodeNumbers::Encode(Numbers("", {{long_name, 1}}))).has_value());
  for (const char* page : {"x", "javascript:alert(1)", "10.0.0.1:80/evil", "a b:80", "10.0.0.1"}) {
    EXPECT_FALSE(NodeNumbers::Decode(NodeNumbers::Encode(Numbers(page, {}))).has_value()) << page;
  }
}

TEST(NodeNumbersTest, TruncatedAndTrailingBytesAreRefused) {
  std::vector<uint8_t> bytes = NodeNumbers::Encode(Numbers("10.0.0.1:80", {{"x", 1}}));
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(NodeNumbers::Decode(absl::MakeConstSpan(bytes).first(size)).has_value()) << size;
  }
  bytes.push_back(0);
  EXPECT_FALSE(NodeNumbers::Decode(bytes).has_value());
}

}  // namespace
}  // namespace tokamak::node
