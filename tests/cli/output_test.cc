#include "lib/cli/output.h"

#include <gtest/gtest.h>

#include <string>

namespace tokamak::cli {
namespace {

TEST(OutputTest, ControlCharactersAndOtherThanUtf8AreEscapedForPeople) {
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

TEST(OutputTest, JsonIsValidWhateverBytesATextHas) {
  EXPECT_EQ(ToText({{"a", "x\xff"}, {"b", {"\n\xc3\xbc"}}}), "{\"a\":\"x\\\\xff\",\"b\":[\"\\n\xc3\xbc\"]}");
}

TEST(OutputTest, AnErrorIsOneLine) {
  testing::internal::CaptureStderr();
  PrintError(false, absl::NotFoundError("no\nsuch thing"));
  PrintError(true, absl::NotFoundError("no\nsuch thing"));
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "tok: no\\x0asuch thing\n"
            "{\"error\":\"NOT_FOUND\",\"message\":\"no\\nsuch thing\"}\n");
}

TEST(OutputTest, TheCellsOfATableArePrintable) { EXPECT_EQ(FormatTable({{"a\x1b", "b"}}), "a\\x1b  b\n"); }

TEST(OutputTest, ColumnsLineUpAndLinesEndWithoutSpaces) {
  EXPECT_EQ(FormatTable({{"NAME", "SIZE", "NOTE"}, {"a", "17 B", ""}, {"longer", "512 MiB", "x"}}, {1}),
            "NAME       SIZE  NOTE\n"
            "a          17 B\n"
            "longer  512 MiB  x\n");
}

TEST(OutputTest, RowsMayHaveFewerColumns) { EXPECT_EQ(FormatTable({{"a", "b"}, {"ccc"}}), "a    b\nccc\n"); }

TEST(OutputTest, AnEmptyTableIsNothing) { EXPECT_EQ(FormatTable({}), ""); }

TEST(OutputTest, ProgressShowsPartRateAndRest) {
  EXPECT_EQ(FormatProgress("put", uint64_t{256} << 20, uint64_t{1} << 30, 1.0, 8),
            "put  [##......]   25 %  256 MiB/s  3 s left");
}

TEST(OutputTest, ProgressIsWholeAtItsEndAndForNothing) {
  EXPECT_NE(FormatProgress("get", 10, 10, 2.0, 4).find("[####]  100 %"), std::string::npos);
  EXPECT_NE(FormatProgress("get", 0, 0, 0.0, 4).find("[####]  100 %"), std::string::npos);
  EXPECT_NE(FormatProgress("get", 20, 10, 2.0, 4).find("[####]  100 %"), std::string::npos);
}

TEST(OutputTest, NoBarIsDrawnWhereNoTerminalWatches) {
  testing::internal::CaptureStderr();
  {
    Progress progress("put", 100);
    progress.Advance(50);
    progress.Advance(50);
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace tokamak::cli
