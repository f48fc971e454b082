// Memory beside the store, descriptors and registrations of two real daemons while the largest
// object and very many small ones pass between them.
//
//   bazel test //tests/daemon:daemon_test --test_filter=Footprint*
//       --test_env=TOKAMAK_FULL_SIZE=1 --test_output=all
//
// takes 1 GiB and 100,000 objects of 1 KiB; without the variable a smaller run of the same.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/daemon/tokd_process.h"
#include "tests/support/sanitized.h"
#include "tests/support/test_devices.h"

namespace tokamak::daemon {
namespace {

constexpr size_t kSmall = 1024;   // bytes of each of many
constexpr size_t kBatch = 1000;   // of them in one call
constexpr uint64_t kMore = 4096;  // KiB of its own memory that a daemon may take, whatever it moves
// Bytes for each object that it knows of: of its store, and of the directory.
constexpr uint64_t kMoreForEach = 512;

struct Extent {
  size_t large = size_t{64} << 20;  // bytes of one object
  size_t many = 5000;               // objects
  const char* memory = "128MiB";    // of each store
};

Extent ExtentOfRun() {
  if (std::getenv("TOKAMAK_FULL_SIZE") == nullptr) return {};
  return {size_t{1} << 30, 100'000, "1536MiB"};
}

struct Footprint {
  uint64_t memory = 0;  // KiB
  int descriptors = 0;
  uint64_t registrations = 0;
};

Footprint FootprintOf(const TokdProcess& node, Client& client) {
  const auto registered_by = [&](int engine) {
    return Number(client, absl::StrCat("engine", engine, "_regions_registered_total"));
  };
  return {node.own_memory(), node.descriptors(), registered_by(0) + registered_by(1)};
}

ObjectId IdOf(size_t i) { return ObjectId::FromName(absl::StrCat("one of many ", i)); }

// Puts objects on one node, from the first to before the last, and gets them on the other.
void Move(Client& one, Client& two, size_t first, size_t last) {
  std::vector<std::vector<uint8_t>> bytes;
  std::vector<PutObject> objects;
  std::vector<ObjectId> ids;
  for (; first < last; first += kBatch) {
    bytes.clear();
    objects.clear();
    ids.clear();
    for (size_t i = first; i < std::min(first + kBatch, last); ++i) {
      ids.push_back(IdOf(i));
      bytes.push_back(Pattern(kSmall, static_cast<uint8_t>(i * 7)));
    }
    for (size_t i = 0; i < ids.size(); ++i) objects.push_back({ids[i], bytes[i], {}});
    for (const Status& put : one.Put(objects)) ASSERT_TRUE(put.ok()) << put;
    const auto buffers = two.Get(ids, kPatience);
    for (size_t i = 0; i < ids.size(); ++i) {
      ASSERT_TRUE(buffers[i].ok()) << buffers[i].status();
      ASSERT_TRUE(Same(buffers[i]->data(), bytes[i])) << first + i;
    }
  }
}

// The same with one object of `size` bytes, which are words that count up; then it is deleted.
void MoveLarge(Client& one, Client& two, size_t size, const std::string& name) {
  const ObjectId id = ObjectId::FromName(name);
  {
    auto made = one.Create(id, size);
    ASSERT_TRUE(made.ok()) << made.status();
    auto* const words = reinterpret_cast<uint64_t*>(made->data().data());
    std::iota(words, words + size / sizeof(uint64_t), size);
    ASSERT_TRUE(made->Seal().ok());
  }
  {
    const auto got = two.Get(id, kPatience);
    ASSERT_TRUE(got.ok()) << got.status();
    const auto* const words = reinterpret_cast<const uint64_t*>(got->data().data());
    size_t wrong = 0;
    for (size_t i = 0; i < size / sizeof(uint64_t); ++i) wrong += words[i] != size + i;
    ASSERT_EQ(wrong, 0u);
  }
  const Status deleted = one.Delete(id);
  ASSERT_TRUE(deleted.ok()) << deleted;
}

TEST(FootprintTest, TheLargestObjectAndVeryManyStayWithinABoundBesideTheStore) {
  if (support::kSanitized) GTEST_SKIP() << "a sanitizer takes memory of its own";
  if (!testing_support::OnSoftwareNic()) GTEST_SKIP() << "a guest has less memory than this needs";
  const Extent extent = ExtentOfRun();
  const ShortFolder folder;
  TokdProcess holder(folder, 1, {"--memory", extent.memory});
  holder.AwaitReady();
  std::vector<std::string> flags = DirectoryOfNode1();
  flags.insert(flags.end(), {"--memory", extent.memory});
  TokdProcess puller(folder, 2, flags);
  puller.AwaitReady();
  Client one = holder.Connect(), two = puller.Connect();

  // One-time costs: connections, their slots, the first pages of everything.
  Move(one, two, 0, kBatch);
  MoveLarge(one, two, size_t{8} << 20, "warm-up");
  const Footprint before[] = {FootprintOf(holder, one), FootprintOf(puller, two)};

  MoveLarge(one, two, extent.large, "large");
  Move(one, two, kBatch, kBatch + extent.many);
  const Footprint after[] = {FootprintOf(holder, one), FootprintOf(puller, two)};

  const uint64_t bound = kMore + extent.many * kMoreForEach / 1024;
  for (const int node : {0, 1}) {
    const std::string who = node == 0 ? "holder and directory" : "puller";
    std::cout << who << ": " << before[node].memory << " KiB of its own before, " << after[node].memory
              << " after (at most " << bound << " more); descriptors " << before[node].descriptors << ", "
              << after[node].descriptors << "; registrations " << before[node].registrations << ", "
              << after[node].registrations << "\n";
    EXPECT_LE(after[node].memory, before[node].memory + bound) << who;
    EXPECT_EQ(after[node].descriptors, before[node].descriptors) << who;
    EXPECT_EQ(after[node].registrations, before[node].registrations) << who;
  }
}

}  // namespace
}  // namespace tokamak::daemon
