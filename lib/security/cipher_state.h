// CipherState is a key, the number of the next message under it, and the cipher: the object of the
// same name of the Noise Protocol Framework, revision 34, section 5.1.
//
// Messages are sealed and opened where they lie, and nothing is allocated for one: OpenSSL's
// context is kept. The number of a message is its nonce, and is not sent, so that both sides must
// count alike: over an ordered queue pair they do.
//
// Law: no number is used twice with one key. One owner, one thread.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/types/span.h"
#include "lib/security/cipher_suite.h"
#include "lib/security/secret_bytes.h"

struct evp_cipher_ctx_st;  // EVP_CIPHER_CTX of OpenSSL

namespace tokamak::security {

constexpr size_t kTagSize = 16;  // bytes that a sealed message is longer by

class CipherState final {
 public:
  // Has no key yet.
  explicit CipherState(CipherSuite suite);
  CipherState(CipherState&&) noexcept;
  CipherState& operator=(CipherState&&) noexcept;
  ~CipherState();

  // Messages count from 0 again. OpenSSL's context keeps a copy of the key, and wipes it.
  void SetKey(Key key);
  bool has_key() const { return has_key_; }
  uint64_t next() const { return next_; }  // the number of the next message

  // Seals all of `message` but its last kTagSize bytes, which become the tag. `additional` is
  // authenticated and not sent. Needs a key, and a number below 2^64 - 1.
  void Seal(absl::Span<const uint8_t> additional, absl::Span<uint8_t> message);

  // Opens a sealed message in place: all but its last kTagSize bytes are then the plain text.
  // Returns false if it is not the next message of the peer with this `additional`; then its bytes
  // are zeros, and the number stays (section 5.1: nothing changes).
  [[nodiscard]] bool Open(absl::Span<const uint8_t> additional, absl::Span<uint8_t> message);

  // Goes over to the key that follows from this one (section 11.3); the number goes on. Who learns
  // the new key cannot find the old one.
  void Rekey();

 private:
  struct ContextDeleter {
    void operator()(evp_cipher_ctx_st* context) const;
  };

  void StartMessage(uint64_t number, bool sealing);
  void SealAs(uint64_t number, absl::Span<const uint8_t> additional, absl::Span<uint8_t> message);

  CipherSuite suite_;
  std::unique_ptr<evp_cipher_ctx_st, ContextDeleter> context_;
  bool has_key_ = false;
  uint64_t next_ = 0;
};

}  // namespace tokamak::security
