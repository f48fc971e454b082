#include "lib/cli/common/output.h"

#include <gtest/gtest.h>

#include <string>

namespace tokamak::cli {
namespace {

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

TEST(OutputTest, NoBarIsDrawnWithoutATerminal) {
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
