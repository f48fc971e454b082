#include "lib/base/text/object_name.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace tokamak::base {
namespace {

absl::StatusOr<ObjectName> NameOf(const std::string& name) { return ObjectName::For(ObjectId::FromName(name), name); }

TEST(ObjectNameTest, ANameIsKeptAsItIs) {
  const std::string longest(ObjectName::kMaxSize, 'x');
  for (const std::string& name : {std::string("weights/7"), std::string("gr\xc3\xbcn \xe2\x82\xac"), longest}) {
    const absl::StatusOr<ObjectName> kept = NameOf(name);
    ASSERT_TRUE(kept.ok()) << kept.status();
    EXPECT_EQ(kept->text(), name);
    EXPECT_FALSE(kept->empty());
    EXPECT_EQ(kept->memory(), name.size() + 1);
    EXPECT_TRUE(ObjectName::MayBeKept(name));
  }
}

TEST(ObjectNameTest, NoNameTakesOnlyAPointer) {
  EXPECT_EQ(sizeof(ObjectName), sizeof(void*));
  const ObjectName none;
  EXPECT_TRUE(none.empty());
  EXPECT_EQ(none.text(), "");
  EXPECT_EQ(none.memory(), 0u);
  EXPECT_EQ(*ObjectName::For(ObjectId::FromName("whatever"), ""), none);
}

TEST(ObjectNameTest, TheNameOfAnotherObjectIsRefused) {
  const absl::Status refused = ObjectName::For(ObjectId::FromName("x"), "y").status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(refused.message(), "the name 'y' is not that of object " + ObjectId::FromName("x").ToHex() +
                                   ": make the id of it, which is " + ObjectId::FromName("y").ToHex() +
                                   ", or put the object without it");
}

TEST(ObjectNameTest, AnUnprintableNameIsRefused) {
  for (const std::string& name : {std::string("a\nb"), std::string("a\x1b[2J"), std::string(1, '\0'),
                                  std::string("\x7f"), std::string("a\xff"), std::string("\xc2\x9b")}) {
    EXPECT_FALSE(ObjectName::MayBeKept(name));
    const absl::Status refused = NameOf(name).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_NE(refused.message().find("put the object without it"), std::string::npos) << refused;
  }
  EXPECT_EQ(
      NameOf("a\nb").status().message(),
      "the name 'a\\x0ab' cannot be kept, as it has control characters or is no UTF-8: put the object without it");
}

TEST(ObjectNameTest, ATooLongNameIsRefused) {
  const std::string name(ObjectName::kMaxSize + 1, 'x');
  EXPECT_FALSE(ObjectName::MayBeKept(name));
  EXPECT_FALSE(ObjectName::MayBeKept(""));
  EXPECT_EQ(NameOf(name).status(),
            absl::InvalidArgumentError(
                "a name of 256 bytes is too long to be kept (at most 255): put the object without it"));
}

TEST(ObjectNameTest, ACopyIsAValueOfItsOwn) {
  ObjectName name = *NameOf("first");
  const ObjectName copy = name;
  name = *NameOf("second");
  EXPECT_EQ(copy.text(), "first");
  EXPECT_NE(copy, name);
  ObjectName& itself = name;
  name = itself;
  EXPECT_EQ(name.text(), "second");
  const ObjectName moved = std::move(name);
  EXPECT_EQ(moved.text(), "second");
  name = ObjectName();
  EXPECT_TRUE(name.empty());
}

}  // namespace
}  // namespace tokamak::base
