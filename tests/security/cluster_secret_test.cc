#include "lib/security/cluster_secret.h"

#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/security/two_sides.h"

namespace tokamak::security {
namespace {

// The secret 00 01 ... 1f; Python's hashlib computed checksum and id.
constexpr char kText[] = "toksecret1_000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f1176076a";
constexpr char kId[] = "105527cf0e67e7e7";

ClusterSecret Counting() {
  Bytes bytes(32);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i);
  return ClusterSecret(bytes);
}

std::string OtherText() { return ClusterSecret(Bytes(32, 0x5a)).ToText(); }

TEST(ClusterSecretTest, TextAndIdAreThoseOfTheFormat) {
  EXPECT_EQ(Counting().ToText(), kText);
  EXPECT_EQ(Counting().id().ToString(), kId);
}

TEST(ClusterSecretTest, AFileMayHaveCommentsEmptyLinesAndCarriageReturns) {
  const absl::StatusOr<ClusterSecrets> secrets =
      ClusterSecrets::Parse(absl::StrCat("# ours\r\n\n  ", kText, "  \r\n#", OtherText(), "\n"));
  ASSERT_TRUE(secrets.ok()) << secrets.status();
  EXPECT_EQ(secrets->size(), 1u);
  EXPECT_EQ(secrets->first().ToText(), kText);
}

TEST(ClusterSecretTest, TheFirstIsUsedAndBothAreValid) {
  const absl::StatusOr<ClusterSecrets> secrets = ClusterSecrets::Parse(absl::StrCat(kText, "\n", OtherText()));
  ASSERT_TRUE(secrets.ok()) << secrets.status();
  EXPECT_EQ(secrets->first().id().ToString(), kId);
  const SecretId second = ClusterSecret(Bytes(32, 0x5a)).id();
  const absl::StatusOr<const ClusterSecret*> found = secrets->Find(second);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ((*found)->ToText(), OtherText());
  EXPECT_EQ(*secrets->Find(secrets->first().id()), &secrets->first());
}

TEST(ClusterSecretTest, AnUnknownIdIsRefusedWithBothSidesIdsAndTheRemedy) {
  const ClusterSecrets secrets(Counting());
  const absl::Status unknown = secrets.Find(SecretId({1, 2, 3, 4, 5, 6, 7, 8})).status();
  EXPECT_EQ(unknown.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(unknown.message(), absl::StrCat("the peer uses secret 0102030405060708, and here is ", kId,
                                            ": give both nodes the same secret file"));
}

TEST(ClusterSecretTest, EachBadFileIsRefusedInOneLineThatNamesTheRemedyAndNotTheSecret) {
  const std::string good = kText;
  std::string changed = good, moved = good, letter = good, upper = good;
  changed[20] = changed[20] == '0' ? '1' : '0';
  std::swap(moved[12], moved[14]);
  letter[30] = 'g';
  upper[31] = 'A';
  const struct {
    const char* what;
    std::string text;
    const char* error;
    const char* remedy;
  } cases[] = {
      {"nothing", "", "has no secret", "tok secret new"},
      {"comments alone", "# ours\n\n", "has no secret", "tok secret new"},
      {"a password", "hunter2\n", "line 1: no secret", "tok secret new"},
      {"bytes", std::string("\0\xff\x80\n", 4), "line 1: no secret", "tok secret new"},
      {"another version", absl::StrCat("# x\ntoksecret2_", good.substr(11)), "line 2: a secret of another format",
       "this version's"},
      {"cut within its prefix", good.substr(0, 10), "line 1: a secret of another format", "this version's"},
      {"cut in the middle", good.substr(0, 50), "line 1: the secret has 39 of 72 digits", "copy the whole line"},
      {"one digit too few", good.substr(0, good.size() - 1), "71 of 72", "copy the whole line"},
      {"one digit too many", good + "0", "73 of 72", "copy the whole line"},
      {"broken over two lines", absl::StrCat(good.substr(0, 60), "\n", good.substr(60)), "line 1: the secret has",
       "copy the whole line"},
      {"a changed digit", changed, "checksum differs", "copy the whole line"},
      {"digits that changed places", moved, "checksum differs", "copy the whole line"},
      {"a letter beyond f", letter, "digit 20 of the secret", "copy the whole line"},
      {"a capital", upper, "digit 21 of the secret", "copy the whole line"},
      {"a comment behind", good + " # ours", "digits", "copy the whole line"},
      {"words before", "secret=" + good, "line 1: no secret", "tok secret new"},
      {"the same twice", absl::StrCat("\n", good, "\n", good), "line 3: the same secret as in line 2", "remove one"},
      {"three", absl::StrCat(good, "\n", OtherText(), "\n", good), "line 3: a third secret", "remove the one"},
      {"a second one that is cut", absl::StrCat(good, "\n", OtherText().substr(0, 40)), "line 2: the secret has",
       "copy the whole line"},
      {"a long file", std::string(kMaxSecretFile + 1, '\n'), "has 4097 bytes", "tok secret new"},
  };
  for (const auto& bad : cases) {
    const absl::Status status = ClusterSecrets::Parse(bad.text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << bad.what;
    EXPECT_TRUE(absl::StrContains(status.message(), bad.error)) << bad.what << ": " << status;
    EXPECT_TRUE(absl::StrContains(status.message(), bad.remedy)) << bad.what << ": " << status;
    EXPECT_FALSE(absl::StrContains(status.message(), "\n")) << bad.what;
    EXPECT_FALSE(absl::StrContains(status.message(), "0405060708")) << bad.what;
    EXPECT_FALSE(absl::StrContains(status.message(), "hunter2")) << bad.what;
  }
}

TEST(ClusterSecretTest, EveryCutAndEveryChangedDigitIsNoticed) {
  const std::string good = kText;
  for (size_t size = 1; size < good.size(); ++size)
    EXPECT_FALSE(ClusterSecrets::Parse(good.substr(0, size)).ok()) << size;
  for (size_t at = 0; at < good.size(); ++at) {
    for (const char digit : std::string("0123456789abcdefx")) {
      std::string changed = good;
      changed[at] = digit;
      EXPECT_EQ(ClusterSecrets::Parse(changed).ok(), changed == good) << changed;
    }
  }
}

TEST(ClusterSecretTest, MovedSecretsAreWiped) {
  ClusterSecret secret = Counting();
  const ClusterSecret other = std::move(secret);
  EXPECT_EQ(other.ToText(), kText);
  EXPECT_EQ(Bytes(secret.bytes().begin(), secret.bytes().end()), Bytes(32, 0));  // NOLINT: what a move leaves
}

TEST(SecretBytesTest, AreWipedWhenDestroyed) {
  alignas(Key) unsigned char memory[sizeof(Key)];
  Key* const key = new (memory) Key(Bytes(32, 0xab));
  volatile const unsigned char* const seen = memory;
  EXPECT_EQ(seen[31], 0xab);
  key->~Key();
  for (size_t i = 0; i < sizeof(memory); ++i) EXPECT_EQ(seen[i], 0) << i;
}

}  // namespace
}  // namespace tokamak::security
