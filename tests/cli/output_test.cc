#include "lib/cli/output.h"

#include <gtest/gtest.h>

#include <string>

namespace tokamak::cli {
namespace {

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
