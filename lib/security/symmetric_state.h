// SymmetricState is what both sides of a handshake have hashed and mixed so far: the object of the
// same name of the Noise Protocol Framework, revision 34, section 5.2.
//
// One owner, one thread.
#pragma once

#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "lib/security/cipher_state.h"
#include "lib/security/cipher_suite.h"
#include "lib/security/digest.h"

namespace tokamak::security {

class SymmetricState final {
 public:
  // InitializeSymmetric with the suite's name.
  explicit SymmetricState(CipherSuite suite);

  void MixHash(absl::Span<const uint8_t> data);
  void MixKey(absl::Span<const uint8_t> input);
  void MixKeyAndHash(absl::Span<const uint8_t> input);

  // Appends the sealed `plain` to `message`. A key has been mixed in: plain text never leaves.
  void EncryptAndHash(absl::Span<const uint8_t> plain, std::vector<uint8_t>* message);
  // Returns false, and changes nothing, if `sealed` is not what the peer with the same state
  // sealed.
  [[nodiscard]] bool DecryptAndHash(absl::Span<const uint8_t> sealed, std::vector<uint8_t>* plain);

  // Returns the ciphers of the messages afterwards: the initiator's, the responder's.
  std::pair<CipherState, CipherState> Split() const;

  // Returns a key for another purpose, independent of those of Split: the HKDF of the chaining key
  // with `label`, which is not empty, as input (Split's is empty).
  Key Export(absl::string_view label) const;

  const Hash& hash() const { return hash_; }  // of all that was mixed in

 private:
  CipherSuite suite_;
  CipherState cipher_;
  Key chaining_key_;
  Hash hash_{};
};

}  // namespace tokamak::security
