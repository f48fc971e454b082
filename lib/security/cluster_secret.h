// ClusterSecret is what the nodes of one cluster share and nobody else has: 32 random bytes, kept
// in a file for each node.
//
//   # our cluster, since March
//   toksecret1_0f1e...      64 digits of the secret and 8 of a checksum, in one line
//   toksecret1_77ab...      during a rotation: the other one that is valid
//
// A connection is asked for with the first secret of the file, and accepted with either. So a
// secret is rotated without a stop: the new one is added as second everywhere, then made the first
// everywhere, then the old one is removed everywhere.
//
// A secret is wiped when it is destroyed, and no error, log or id has it: an id is a hash of it,
// which says which secret is meant and nothing about it. Thread rule: plain values.
#pragma once

#include <array>
#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "lib/security/secret_bytes.h"

namespace tokamak::security {

constexpr absl::string_view kSecretPrefix = "toksecret1_";  // the format's name and version
constexpr size_t kMaxSecretFile = 4096;                     // bytes
constexpr size_t kMaxSecrets = 2;                           // that are valid at a time

// Which secret is meant: public, for hellos, logs and people.
class SecretId final {
 public:
  static constexpr size_t kSize = 8;  // bytes

  SecretId() = default;  // of no secret
  explicit SecretId(const std::array<uint8_t, kSize>& bytes) : bytes_(bytes) {}

  const std::array<uint8_t, kSize>& bytes() const { return bytes_; }
  std::string ToString() const;  // 16 hexadecimal digits

  bool operator==(const SecretId& other) const { return bytes_ == other.bytes_; }
  bool operator!=(const SecretId& other) const { return bytes_ != other.bytes_; }

 private:
  std::array<uint8_t, kSize> bytes_{};
};

class ClusterSecret final {
 public:
  // `random`: 32 bytes that nobody can guess. The caller wipes them.
  explicit ClusterSecret(absl::Span<const uint8_t> random);
  ClusterSecret(ClusterSecret&&) noexcept = default;
  ClusterSecret& operator=(ClusterSecret&&) noexcept = default;

  absl::Span<const uint8_t> bytes() const { return bytes_.bytes(); }  // while this lives
  const SecretId& id() const { return id_; }

  // Returns its line in a file, without the end of the line. It is the secret: the caller wipes it.
  std::string ToText() const;

  friend std::ostream& operator<<(std::ostream&, const ClusterSecret&) = delete;

 private:
  Key bytes_;
  SecretId id_;
};

class ClusterSecrets final {
 public:
  // Reads the text of a file: lines of secrets, comments (#) and nothing. kInvalidArgument: one
  // line that says what is wrong, in which line of the file, and what to do; the caller puts the
  // file's name before it. The caller wipes `text`.
  static absl::StatusOr<ClusterSecrets> Parse(absl::string_view text);

  explicit ClusterSecrets(ClusterSecret only);

  const ClusterSecret& first() const { return secrets_.front(); }
  size_t size() const { return secrets_.size(); }
  const ClusterSecret& at(size_t i) const { return secrets_.at(i); }  // below size(), in their order

  // Returns the valid secret that a peer names; it lives as long as this. kPermissionDenied: none
  // of ours; the text has the ids of both sides and says what to do.
  absl::StatusOr<const ClusterSecret*> Find(const SecretId& id) const;

 private:
  explicit ClusterSecrets(std::vector<ClusterSecret> secrets) : secrets_(std::move(secrets)) {}

  std::vector<ClusterSecret> secrets_;  // one or two
};

}  // namespace tokamak::security
