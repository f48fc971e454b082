#include "lib/base/text/printable.h"

#include <string>

#include "gtest/gtest.h"

namespace tokamak::base {
namespace {

TEST(PrintableTest, ControlCharactersAndInvalidUtf8AreEscaped) {
  EXPECT_EQ(Printable("plain, gr\xc3\xbcn, \xe2\x82\xac, \xf0\x9f\x99\x82, back\\slash"),
            "plain, gr\xc3\xbcn, \xe2\x82\xac, \xf0\x9f\x99\x82, back\\slash");
  EXPECT_EQ(Printable(std::string("a\nb\tc\x1b[2J\x7f") + '\0'), "a\\x0ab\\x09c\\x1b[2J\\x7f\\x00");
  EXPECT_EQ(Printable("\xc2\x9b"), "\\xc2\\x9b");  // a control character of Latin 1
  // Alone, cut off, overlong, a surrogate, beyond Unicode.
  EXPECT_EQ(Printable("a\xff"
                      "b\x80"
                      "c"),
            "a\\xffb\\x80c");
  EXPECT_EQ(Printable("\xe2\x82"), "\\xe2\\x82");
  EXPECT_EQ(Printable("\xc0\xaf"), "\\xc0\\xaf");
  EXPECT_EQ(Printable("\xe0\x80\xaf"), "\\xe0\\x80\\xaf");
  EXPECT_EQ(Printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");
  EXPECT_EQ(Printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
}

TEST(PrintableTest, OnlyInvalidUtf8IsEscapedForJson) {
  EXPECT_EQ(ToUtf8("a\n\x1b\xff gr\xc3\xbcn"), "a\n\x1b\\xff gr\xc3\xbcn");
  EXPECT_TRUE(IsUtf8("gr\xc3\xbcn\n"));
  EXPECT_FALSE(IsUtf8("a\xff"));
}

TEST(PrintableTest, TextWithoutEscapesIsPrintable) {
  EXPECT_TRUE(IsPrintable(""));
  EXPECT_TRUE(IsPrintable("plain, gr\xc3\xbcn, back\\slash"));
  EXPECT_FALSE(IsPrintable("a\n"));
  EXPECT_FALSE(IsPrintable("\xc2\x9b"));
  EXPECT_FALSE(IsPrintable("a\xff"));
}

}  // namespace
}  // namespace tokamak::base
