#include "lib/base/codec.h"

#include "gtest/gtest.h"
#include "lib/base/random.h"

namespace tokamak::base {
namespace {

TEST(CodecTest, WrittenValuesAreReadBack) {
  Writer writer;
  writer.Integer<uint8_t>(7);
  writer.Integer<uint64_t>(0x0123456789abcdef);
  writer.Id(ObjectId::FromName("x"));
  writer.Text("tokamak");
  writer.Bytes({});
  Reader reader(writer.bytes());
  EXPECT_EQ(reader.Integer<uint8_t>(), 7);
  EXPECT_EQ(reader.Integer<uint64_t>(), 0x0123456789abcdefu);
  EXPECT_EQ(reader.Id(), ObjectId::FromName("x"));
  EXPECT_EQ(reader.Text(16), "tokamak");
  EXPECT_TRUE(reader.Bytes(16).empty());
  EXPECT_TRUE(reader.Complete());
}

TEST(CodecTest, IntegersAreLittleEndian) {
  Writer writer;
  writer.Integer<uint32_t>(0x01020304);
  EXPECT_EQ(writer.bytes()[0], 4);
  EXPECT_EQ(writer.bytes()[3], 1);
}

TEST(CodecTest, EveryTruncationFails) {
  Writer writer;
  writer.Integer<uint16_t>(1);
  writer.Text("abc");
  writer.Id(ObjectId());
  for (size_t size = 0; size < writer.size(); ++size) {
    Reader reader(writer.bytes().first(size));
    reader.Integer<uint16_t>();
    reader.Text(16);
    reader.Id();
    EXPECT_FALSE(reader.Complete()) << size;
  }
}

TEST(CodecTest, BytesBeyondTheLimitFail) {
  Writer writer;
  writer.Text("abcdef");
  Reader reader(writer.bytes());
  EXPECT_EQ(reader.Text(5), "");
  EXPECT_FALSE(reader.ok());
}

TEST(CodecTest, BytesLeftOverAreNotComplete) {
  Writer writer;
  writer.Integer<uint16_t>(1);
  Reader reader(writer.bytes());
  reader.Integer<uint8_t>();
  EXPECT_TRUE(reader.ok());
  EXPECT_FALSE(reader.Complete());
}

TEST(CodecTest, AnImpossibleCountFails) {
  Writer writer;
  writer.Integer<uint32_t>(1000);
  writer.Integer<uint64_t>(0);
  Reader reader(writer.bytes());
  EXPECT_EQ(reader.Count(4096, 8), 0u);
  EXPECT_FALSE(reader.ok());
}

TEST(CodecTest, RandomBytesNeverReadBeyondTheEnd) {
  Random random(1);
  for (int round = 0; round < 2000; ++round) {
    std::vector<uint8_t> bytes(random.Below(64));
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random.Next());
    Reader reader(bytes);
    while (reader.ok() && reader.rest() > 0) {
      const size_t before = reader.rest();
      random.Chance(0.5) ? void(reader.Text(32)) : void(reader.Integer<uint32_t>());
      EXPECT_LE(reader.rest(), before);
    }
  }
}

}  // namespace
}  // namespace tokamak::base
