#include "lib/security/cluster_secret.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "lib/security/digest.h"

namespace tokamak::security {
namespace {

constexpr size_t kChecksumSize = 4;  // bytes
constexpr size_t kDigits = 2 * (Key::kSize + kChecksumSize);
constexpr absl::string_view kPrefixOfAllVersions = "toksecret";
constexpr absl::string_view kCopyAgain = "copy the whole line again from a node that has it";

void AppendHex(absl::Span<const uint8_t> bytes, std::string* text) {
  for (const uint8_t byte : bytes) {
    text->push_back("0123456789abcdef"[byte >> 4]);
    text->push_back("0123456789abcdef"[byte & 15]);
  }
}

// The value of a lower-case hexadecimal digit, or -1.
int ValueOf(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  return -1;
}

std::array<uint8_t, kChecksumSize> ChecksumOf(absl::Span<const uint8_t> secret) {
  const Hash hash = Sha256({BytesOf("tokamak secret checksum"), BytesOf(kSecretPrefix), secret});
  std::array<uint8_t, kChecksumSize> checksum{};
  std::copy_n(hash.begin(), checksum.size(), checksum.begin());
  return checksum;
}

SecretId IdOf(const Key& secret) {
  const Key hash = HmacSha256(secret.bytes(), {BytesOf("tokamak secret id")});
  std::array<uint8_t, SecretId::kSize> id{};
  std::copy_n(hash.bytes().begin(), id.size(), id.begin());
  return SecretId(id);
}

absl::Status Wrong(size_t line, absl::string_view what, absl::string_view remedy) {
  return absl::InvalidArgumentError(absl::StrCat("line ", line, ": ", what, ": ", remedy));
}

absl::StatusOr<ClusterSecret> ParseSecret(absl::string_view text, size_t line) {
  if (!absl::StartsWith(text, kSecretPrefix)) {
    if (absl::StartsWith(text, kPrefixOfAllVersions)) {
      return Wrong(line, absl::StrCat("a secret of another format than ", kSecretPrefix, ", or one that is cut off"),
                   "use a secret that this version's tok secret new made");
    }
    return Wrong(line, absl::StrCat("no secret: those begin with ", kSecretPrefix),
                 "make one with tok secret new, or begin a comment with #");
  }
  text.remove_prefix(kSecretPrefix.size());
  if (text.size() != kDigits) {
    return Wrong(line, absl::StrCat("the secret has ", text.size(), " of ", kDigits, " digits"), kCopyAgain);
  }
  SecretBytes<kDigits / 2> bytes;
  for (size_t i = 0; i < kDigits; ++i) {
    const int value = ValueOf(text[i]);
    if (value < 0)
      return Wrong(line, absl::StrCat("digit ", i + 1, " of the secret is none of 0-9 and a-f"), kCopyAgain);
    uint8_t& byte = bytes.writable()[i / 2];
    byte = static_cast<uint8_t>(byte << 4 | value);
  }
  const absl::Span<const uint8_t> secret = bytes.bytes().first(Key::kSize);
  const std::array<uint8_t, kChecksumSize> checksum = ChecksumOf(secret);
  if (!std::equal(checksum.begin(), checksum.end(), bytes.bytes().begin() + Key::kSize)) {
    return Wrong(line, "a digit of the secret is another than it was (its checksum differs)", kCopyAgain);
  }
  return ClusterSecret(secret);
}

}  // namespace

std::string SecretId::ToString() const {
  std::string text;
  AppendHex(bytes_, &text);
  return text;
}

ClusterSecret::ClusterSecret(absl::Span<const uint8_t> random) : bytes_(random), id_(IdOf(bytes_)) {}

std::string ClusterSecret::ToText() const {
  std::string text;
  text.reserve(kSecretPrefix.size() + kDigits);  // at once: a text that grows leaves copies behind
  text.append(kSecretPrefix.data(), kSecretPrefix.size());
  AppendHex(bytes_.bytes(), &text);
  AppendHex(ChecksumOf(bytes_.bytes()), &text);
  return text;
}

absl::StatusOr<ClusterSecrets> ClusterSecrets::Parse(absl::string_view text) {
  if (text.size() > kMaxSecretFile) {
    return absl::InvalidArgumentError(absl::StrCat("has ", text.size(), " bytes, and a secret file has at most ",
                                                   kMaxSecretFile, ": name the file that tok secret new made"));
  }
  std::vector<ClusterSecret> secrets;
  size_t first_line = 0;  // where the first secret is
  for (size_t line = 1; !text.empty(); ++line) {
    const size_t end = text.find('\n');
    const absl::string_view content = absl::StripAsciiWhitespace(text.substr(0, end));
    text.remove_prefix(end == absl::string_view::npos ? text.size() : end + 1);
    if (content.empty() || content.front() == '#') continue;
    absl::StatusOr<ClusterSecret> secret = ParseSecret(content, line);
    if (!secret.ok()) return secret.status();
    if (secrets.size() == kMaxSecrets) {
      return Wrong(line, "a third secret, and at most two are valid at a time",
                   "remove the one that no node uses any more");
    }
    if (!secrets.empty() && secrets.front().id() == secret->id()) {
      return Wrong(line, absl::StrCat("the same secret as in line ", first_line), "remove one of the two");
    }
    if (secrets.empty()) first_line = line;
    secrets.push_back(*std::move(secret));
  }
  if (secrets.empty()) return absl::InvalidArgumentError("has no secret: make one with tok secret new");
  return ClusterSecrets(std::move(secrets));
}

ClusterSecrets::ClusterSecrets(ClusterSecret only) { secrets_.push_back(std::move(only)); }

absl::StatusOr<const ClusterSecret*> ClusterSecrets::Find(const SecretId& id) const {
  for (const ClusterSecret& secret : secrets_) {
    if (secret.id() == id) return &secret;
  }
  std::string ours = first().id().ToString();
  if (size() > 1) absl::StrAppend(&ours, " and ", secrets_.back().id().ToString());
  return absl::PermissionDeniedError(absl::StrCat("the peer uses secret ", id.ToString(), ", and here is ", ours,
                                                  ": give both nodes the same secret file"));
}

}  // namespace tokamak::security
