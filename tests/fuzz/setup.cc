#include "tests/fuzz/setup.h"

#include "gtest/gtest.h"
#include "lib/base/log.h"

namespace tokamak::fuzz {

void Prepare() {
  base::SetLogLevel(base::Severity::kFatal);  // hostile input is what the log would be full of
  GTEST_FLAG_SET(break_on_failure, true);     // the tests' fakes complain with EXPECT: that shall end the process
}

}  // namespace tokamak::fuzz

extern "C" int LLVMFuzzerInitialize(int*, char***);  // libFuzzer's name for what it calls first
extern "C" int LLVMFuzzerInitialize(int*, char***) {
  tokamak::fuzz::Prepare();
  return 0;
}
