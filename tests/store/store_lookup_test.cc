// Looking for an object is what every get begins with, mostly for one that is not here: it allocates nothing.
#include <cstdlib>
#include <new>

#include "gtest/gtest.h"
#include "lib/store/store.h"
#include "tests/store/fixture.h"

namespace {
int g_allocations = 0;
}  // namespace

// All of this program's.
void* operator new(size_t size) {
  ++g_allocations;
  void* const memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) std::abort();
  return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace tokamak::store {
namespace {

TEST_F(StoreTest, LookingAllocatesNothing) {
  Put("here", 100);
  ASSERT_TRUE(Create("unsealed", 100).ok());
  const base::ObjectId here = Id("here"), unsealed = Id("unsealed"), missing = Id("missing");
  const int before = g_allocations;
  const bool found_here = store_->Find(here).has_value();
  const bool found_unsealed = store_->Contains(unsealed), found_missing = store_->Find(missing).has_value();
  EXPECT_EQ(g_allocations, before);
  EXPECT_TRUE(found_here);
  EXPECT_FALSE(found_unsealed);
  EXPECT_FALSE(found_missing);
}

TEST_F(StoreTest, AllocationsAreCounted) {
  const int before = g_allocations;
  EXPECT_FALSE(store_->Acquire(Id("missing"), alice_).ok());  // with a text
  EXPECT_GT(g_allocations, before);
}

}  // namespace
}  // namespace tokamak::store
