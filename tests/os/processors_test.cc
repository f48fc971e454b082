#include "lib/os/process/processors.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tokamak::os {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(ProcessorListTest, RangesAndSingleProcessorsAreReadInOrder) {
  EXPECT_THAT(ParseProcessors("8,0-2,10-11\n"), ElementsAre(0, 1, 2, 8, 10, 11));
  EXPECT_THAT(ParseProcessors(""), IsEmpty());
}

TEST(ProcessorListTest, MalformedPartsAreSkippedAndHugeRangesAreBounded) {
  EXPECT_THAT(ParseProcessors("x,3,5-y,-2,7-6"), ElementsAre(3));
  EXPECT_EQ(ParseProcessors("0-2000000000").size(), static_cast<size_t>(kMostProcessors));
}

TEST(AllowedProcessorsTest, AtLeastOneProcessorIsAllowed) { EXPECT_FALSE(AllowedProcessors().empty()); }

}  // namespace
}  // namespace tokamak::os
