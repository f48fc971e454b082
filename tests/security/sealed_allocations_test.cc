// Nothing is allocated for a sealed message, neither by us nor by OpenSSL.
#include <openssl/crypto.h>

#include <atomic>
#include <cstdlib>

#include "gtest/gtest.h"
#include "tests/security/two_sides.h"
#include "tests/support/allocations.h"

namespace tokamak::security {
namespace {

std::atomic<int64_t> taken{0};  // what OpenSSL took from the heap

void* Take(size_t size, const char*, int) {
  ++taken;
  return std::malloc(size);
}
void* TakeAgain(void* memory, size_t size, const char*, int) {
  ++taken;
  return std::realloc(memory, size);
}
void GiveBack(void* memory, const char*, int) { std::free(memory); }

// Before OpenSSL takes anything.
const bool counting = CRYPTO_set_mem_functions(Take, TakeAgain, GiveBack) == 1;

class SealedAllocationsTest : public testing::TestWithParam<CipherSuite> {};

TEST_P(SealedAllocationsTest, SealingAndOpeningTakeNothingFromTheHeap) {
  ASSERT_TRUE(counting);
  TwoChannels both(GetParam());
  ASSERT_GT(taken, 0);
  const Bytes header(48, 1);
  Bytes message(4096);
  const auto exchange = [&] {
    const bool sealed = both.initiator->channel.Seal(header, absl::MakeSpan(message)).ok();
    return sealed && both.responder->channel.Open(header, absl::MakeSpan(message)).ok();
  };
  ASSERT_TRUE(exchange());
  const int64_t before = support::Allocations(), taken_before = taken;
  bool well = true;
  for (int i = 0; i < 1000; ++i) well = well && exchange();
  const int64_t after = support::Allocations(), taken_after = taken;
  EXPECT_TRUE(well);
  EXPECT_EQ(after - before, 0);
  EXPECT_EQ(taken_after - taken_before, 0);
}

INSTANTIATE_TEST_SUITE_P(Suites, SealedAllocationsTest, testing::Values(CipherSuite::kAesGcm, CipherSuite::kChaChaPoly),
                         [](const testing::TestParamInfo<CipherSuite>& param) {
                           return param.param == CipherSuite::kAesGcm ? "AesGcm" : "ChaChaPoly";
                         });

}  // namespace
}  // namespace tokamak::security
