// The program of ci/full_store, for some seconds instead of minutes.
#include "tests/daemon/full_store/full_store.h"

#include <iostream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/test_devices.h"

namespace tokamak::daemon {
namespace {

TEST(FullStoreTest, TheStoreAddsUpWhateverProgramsDoAndWhereverTheyAreKilled) {
  if (!testing_support::OnSoftwareNic()) GTEST_SKIP() << "a guest has one processor, of which eight programs take all";
  FullStoreOptions options;
  options.memory = "4MiB";  // full within a moment, also on a machine with other things to do
  FullStore store(options);
  const FullStoreReport report = store.Run(std::cout);
  std::cout << report.Summary() << std::endl;
  EXPECT_THAT(report.wrong, testing::IsEmpty());
}

}  // namespace
}  // namespace tokamak::daemon
