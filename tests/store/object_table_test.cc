#include "lib/store/object_table.h"

#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/store/fixture.h"

namespace tokamak::store {
namespace {

constexpr Owner kAlice{1};
constexpr Owner kBob{2};

class ObjectTableTest : public testing::Test {
 protected:
  Object& Insert(std::string_view name, Owner creator = kAlice) {
    StoredObject info;
    info.id = Id(name);
    info.location = {0, 100, 10};
    return table_.Insert(info, creator, Allocation{});
  }

  ObjectTable table_;
};

TEST_F(ObjectTableTest, FindsExactlyTheInsertedObjects) {
  Object& object = Insert("x");
  EXPECT_EQ(table_.Find(Id("x")), &object);
  EXPECT_EQ(table_.Find(Id("y")), nullptr);
}

TEST_F(ObjectTableTest, CountsObjectsAndBytesByState) {
  Insert("x");
  Object& y = Insert("y");
  table_.Enter(y, State::kSealed);
  EXPECT_EQ(table_.counts().unsealed_objects, 1u);
  EXPECT_EQ(table_.counts().unsealed_bytes, 110u);
  EXPECT_EQ(table_.counts().sealed_objects, 1u);
  EXPECT_EQ(table_.counts().sealed_bytes, 110u);
}

TEST_F(ObjectTableTest, PinsAreCountedForEachOwner) {
  Object& object = Insert("x");
  table_.Pin(object, kAlice);
  table_.Pin(object, kAlice);
  table_.Pin(object, kBob);
  EXPECT_EQ(object.info.pins, 3u);
  EXPECT_EQ(table_.PinnedBy(kAlice).size(), 2u);
  EXPECT_EQ(table_.PinnedBy(kBob).size(), 1u);
  EXPECT_EQ(table_.counts().pinned_objects, 1u);
  EXPECT_EQ(table_.CheckConsistency(), absl::OkStatus());
}

TEST_F(ObjectTableTest, AnOwnerCannotGiveBackThePinOfAnother) {
  Object& object = Insert("x");
  table_.Pin(object, kAlice);
  EXPECT_FALSE(table_.Unpin(object, kBob));
  EXPECT_TRUE(table_.Unpin(object, kAlice));
  EXPECT_FALSE(table_.Unpin(object, kAlice));
  EXPECT_EQ(table_.counts().pins, 0u);
}

TEST_F(ObjectTableTest, KnowsTheUnsealedObjectsOfEachCreator) {
  Insert("x");
  Insert("y", kBob);
  Object& z = Insert("z");
  table_.Enter(z, State::kSealed);
  EXPECT_EQ(table_.UnsealedOf(kAlice), std::vector<base::ObjectId>{Id("x")});
  EXPECT_EQ(table_.UnsealedOf(kBob), std::vector<base::ObjectId>{Id("y")});
}

TEST_F(ObjectTableTest, ListsByIdInPages) {
  for (int i = 0; i < 10; ++i) Insert(absl::StrCat("object ", i));
  std::vector<base::ObjectId> ids;
  const base::ObjectId* after = nullptr;
  for (auto page = table_.List(after, 3); !page.empty(); page = table_.List(after, 3)) {
    EXPECT_LE(page.size(), 3u);
    for (const Object* object : page) ids.push_back(object->info.id);
    after = &ids.back();
  }
  EXPECT_EQ(ids.size(), 10u);
  EXPECT_TRUE(std::is_sorted(ids.begin(), ids.end()));
}

using ObjectTableDeathTest = ObjectTableTest;

TEST_F(ObjectTableDeathTest, ASealedObjectCannotBeAborted) {
  Object& object = Insert("x");
  table_.Enter(object, State::kSealed);
  EXPECT_DEATH(table_.Enter(object, State::kAborted), "cannot be aborted: it is sealed");
}

TEST_F(ObjectTableDeathTest, ADeletedObjectNeverComesBack) {
  Object& object = Insert("x");
  table_.Enter(object, State::kSealed);
  table_.Enter(object, State::kDeleted);
  EXPECT_DEATH(table_.Enter(object, State::kSealed), "cannot be sealed: it is deleted");
}

TEST_F(ObjectTableDeathTest, AnObjectThatHasNotEndedCannotBeErased) {
  Object& object = Insert("x");
  EXPECT_DEATH(table_.Erase(object), "would be lost");
}

TEST_F(ObjectTableDeathTest, APinnedObjectCannotBeErased) {
  Object& object = Insert("x");
  table_.Pin(object, kAlice);
  table_.Enter(object, State::kAborted);
  EXPECT_DEATH(table_.Erase(object), "is pinned");
}

}  // namespace
}  // namespace tokamak::store
