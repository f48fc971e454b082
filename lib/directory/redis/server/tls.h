// Tls makes streams that are encrypted by TLS 1.2 or later, with OpenSSL: the server must show a
// certificate that a known authority has signed for its name, and gets ours if there is one.
//
// Thread rule: one thread.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "lib/directory/redis/server/stream.h"

struct ssl_ctx_st;

namespace tokamak::directory::redis {

struct TlsOptions {
  std::string ca;    // a PEM file of authorities, or a folder of them (c_rehash); empty: the system's
  std::string cert;  // PEM files: ours, if asked for
  std::string key;
  std::string name;    // in the server's certificate; empty: the host
  bool verify = true;  // false: trusts any server
};

class Tls final {
 public:
  // kInvalidArgument: a file is missing or wrong.
  static absl::StatusOr<std::unique_ptr<Tls>> Create(const TlsOptions& options);
  ~Tls();
  Tls(const Tls&) = delete;
  Tls& operator=(const Tls&) = delete;

  // `host`: a name or an address.
  std::unique_ptr<Stream> Wrap(std::unique_ptr<Stream> plain, const std::string& host) const;

 private:
  explicit Tls(const TlsOptions& options);
  absl::Status Load();

  const TlsOptions options_;
  ssl_ctx_st* const context_;
};

}  // namespace tokamak::directory::redis
