// Messages between two programs that tune come back as they were sent, and other bytes are refused.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "lib/cli/tune/ask.h"

namespace tokamak::cli::tune {
namespace {

TEST(TuneAskTest, MessagesComeBackUnchanged) {
  const std::vector<TestObject> objects = {{ObjectId::FromName("a"), 1024}, {ObjectId::FromName("b"), 7}};
  const auto read = DecodeAsk(EncodeAsk(objects), 2000);
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->size(), 2u);
  EXPECT_EQ((*read)[0].id, objects[0].id);
  EXPECT_EQ((*read)[0].size, 1024u);
  EXPECT_EQ((*read)[1].size, 7u);
  EXPECT_TRUE(DecodeAsk("", 0)->empty()) << "the end";
  EXPECT_EQ(*DecodeSession(EncodeSession(UINT64_MAX)), UINT64_MAX);
}

TEST(TuneAskTest, OtherBytesAreRefused) {
  const std::string id = ObjectId::FromName("a").ToHex();
  for (const std::string& text : {std::string("hello"), id, absl::StrCat(id, " -1"), absl::StrCat(id, " 1 2"),
                                  absl::StrCat("1234 ", id), std::string("\0\1", 2)}) {
    EXPECT_FALSE(DecodeAsk(text, 1000).ok()) << text;
  }
  EXPECT_FALSE(DecodeAsk(absl::StrCat(id, " 600\n", id, " 401\n"), 1000).ok()) << "together too many bytes";
  EXPECT_FALSE(DecodeAsk(absl::StrCat(id, " 18446744073709551615\n", id, " 2\n"), 1000).ok());
  std::string many;
  for (size_t i = 0; i <= kMaxAsked; ++i) absl::StrAppend(&many, id, " 1\n");
  EXPECT_FALSE(DecodeAsk(many, 1000).ok());
  for (const char* text : {"", "x", "-1", "18446744073709551616", "123456789012345678901"}) {
    EXPECT_FALSE(DecodeSession(text).ok()) << text;
  }
}

}  // namespace
}  // namespace tokamak::cli::tune
