// Nothing is allocated for a sealed message, neither by us nor by OpenSSL.
#include <openssl/crypto.h>

#include <atomic>
#include <cstdlib>
#include <utility>

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
  constexpr uint64_t kMessagesForAKey = 10;  // so keys change meanwhile as well
  CipherState ours[2] = {CipherState(GetParam()), CipherState(GetParam())};
  CipherState theirs[2] = {CipherState(GetParam()), CipherState(GetParam())};
  for (uint8_t direction = 0; direction < 2; ++direction) {
    ours[direction].SetKey(Key(Bytes(Key::kSize, direction)));
    theirs[direction].SetKey(Key(Bytes(Key::kSize, direction)));
  }
  SealedChannel initiator(Role::kInitiator, std::move(ours[0]), std::move(ours[1]), kMessagesForAKey);
  SealedChannel responder(Role::kResponder, std::move(theirs[0]), std::move(theirs[1]), kMessagesForAKey);
  ASSERT_GT(taken, 0);
  const Bytes header(48, 1);
  Bytes message(4096);
  const auto exchange = [&] {
    const bool sealed = initiator.Seal(header, absl::MakeSpan(message)).ok();
    return sealed && responder.Open(header, absl::MakeSpan(message)).ok();
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
