#include "tests/fuzz/setup.h"

#include "glog/logging.h"
#include "gtest/gtest.h"

namespace tokamak::fuzz {

void Prepare() {
  FLAGS_minloglevel = google::GLOG_FATAL;  // hostile input is what the log would be full of
  FLAGS_logtostderr = true;
  GTEST_FLAG_SET(break_on_failure, true);  // the tests' fakes complain with EXPECT: that shall end the process
}

}  // namespace tokamak::fuzz

extern "C" int LLVMFuzzerInitialize(int*, char***);  // libFuzzer's name for what it calls first
extern "C" int LLVMFuzzerInitialize(int*, char***) {
  tokamak::fuzz::Prepare();
  return 0;
}
