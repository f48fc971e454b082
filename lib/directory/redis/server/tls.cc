#include "lib/directory/redis/server/tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "lib/base/check.h"
#include "lib/os/sockets/name_lookup.h"

namespace tokamak::directory::redis {
namespace {

constexpr size_t kStep = 16 << 10;           // bytes read at once: one record
constexpr size_t kMostOutgoing = 256 << 10;  // encrypted, unsent bytes; further ones are refused

std::string LastError() {
  const unsigned long error = ERR_get_error();
  ERR_clear_error();
  const char* const reason = error == 0 ? nullptr : ERR_reason_error_string(error);
  return reason == nullptr ? "no reason is known" : reason;
}

class TlsStream final : public Stream {
 public:
  TlsStream(SSL* ssl, std::unique_ptr<Stream> plain) : ssl_(ssl), plain_(std::move(plain)) {
    SSL_set_bio(ssl_, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));  // the SSL owns both
    SSL_set_connect_state(ssl_);
  }
  ~TlsStream() override { SSL_free(ssl_); }

  absl::StatusOr<bool> Shake() override {
    while (true) {
      ERR_clear_error();
      const int done = SSL_do_handshake(ssl_);
      const int error = SSL_get_error(ssl_, done);
      const absl::Status sent = Send();  // the alert too, if the handshake failed
      if (done == 1) return sent.ok() ? absl::StatusOr<bool>(true) : sent;
      if (error != SSL_ERROR_WANT_READ) return HandshakeFailed();
      if (!sent.ok()) return sent;
      const absl::StatusOr<size_t> got = Receive();
      if (!got.ok()) return absl::UnavailableError(absl::StrCat("TLS: ", got.status().message(), kNoTls));
      if (*got == 0) return false;
    }
  }

  absl::StatusOr<size_t> Read(char* into, size_t size) override {
    while (true) {
      ERR_clear_error();
      const int got = SSL_read(ssl_, into, static_cast<int>(size));
      if (absl::Status sent = Send(); !sent.ok()) return sent;
      if (got > 0) return static_cast<size_t>(got);
      const int error = SSL_get_error(ssl_, got);
      if (error == SSL_ERROR_ZERO_RETURN) return StreamEnded();
      if (error != SSL_ERROR_WANT_READ) return Failed();
      const absl::StatusOr<size_t> more = Receive();
      if (!more.ok() || *more == 0) return more;
    }
  }

  absl::StatusOr<size_t> Write(const char* from, size_t size) override {
    if (absl::Status sent = Send(); !sent.ok()) return sent;
    if (outgoing_.size() >= kMostOutgoing) return 0;
    ERR_clear_error();
    const int taken = SSL_write(ssl_, from, static_cast<int>(std::min(size, kMostOutgoing)));
    if (taken <= 0) {
      if (SSL_get_error(ssl_, taken) == SSL_ERROR_WANT_READ) return 0;
      return Failed();
    }
    if (absl::Status sent = Send(); !sent.ok()) return sent;
    return static_cast<size_t>(taken);
  }

  bool awaits_room() const override { return !outgoing_.empty(); }
  int descriptor() const override { return plain_->descriptor(); }

 private:
  static constexpr char kNoTls[] =
      "; does the server speak TLS on this port? Without it: redis:// in place of rediss://";

  absl::Status HandshakeFailed() {
    const bool verifies = (SSL_get_verify_mode(ssl_) & SSL_VERIFY_PEER) != 0;
    const long verified = verifies ? SSL_get_verify_result(ssl_) : X509_V_OK;
    if (verified == X509_V_ERR_HOSTNAME_MISMATCH || verified == X509_V_ERR_IP_ADDRESS_MISMATCH) {
      return absl::UnavailableError(
          "TLS: the server's certificate is for another name: name the host as the certificate does, or give "
          "--redis-tls-name");
    }
    if (verified != X509_V_OK) {
      return absl::UnavailableError(absl::StrCat("TLS: the server's certificate is not trusted (",
                                                 X509_verify_cert_error_string(verified),
                                                 "): give its authority's file by --redis-tls-ca"));
    }
    return Failed();
  }

  // A missing certificate is reported after the handshake.
  static absl::Status Failed() {
    const std::string reason = LastError();
    if (absl::StrContains(reason, "certificate required")) {
      return absl::UnavailableError(
          "TLS: the server asks for a certificate: give --redis-tls-cert and --redis-tls-key");
    }
    if (absl::StrContains(reason, "wrong version number") || absl::StrContains(reason, "packet length") ||
        absl::StrContains(reason, "record layer")) {
      return absl::UnavailableError(absl::StrCat("TLS: the answer is not TLS", kNoTls));
    }
    return absl::UnavailableError(absl::StrCat("TLS: ", reason));
  }

  // Moves bytes from the socket to OpenSSL; 0: none now.
  absl::StatusOr<size_t> Receive() {
    std::array<char, kStep> bytes;
    const absl::StatusOr<size_t> got = plain_->Read(bytes.data(), bytes.size());
    if (got.ok() && *got > 0) {
      CHECK_EQ(BIO_write(SSL_get_rbio(ssl_), bytes.data(), static_cast<int>(*got)), static_cast<int>(*got));
    }
    return got;
  }

  // Moves bytes from OpenSSL to the socket, as far as there is room.
  absl::Status Send() {
    char* bytes = nullptr;
    const long size = BIO_get_mem_data(SSL_get_wbio(ssl_), &bytes);
    if (size > 0) {
      outgoing_.append(bytes, static_cast<size_t>(size));
      CHECK_EQ(BIO_reset(SSL_get_wbio(ssl_)), 1);
    }
    if (outgoing_.empty()) return absl::OkStatus();
    const absl::StatusOr<size_t> sent = plain_->Write(outgoing_.data(), outgoing_.size());
    if (sent.ok()) outgoing_.erase(0, *sent);
    return sent.status();
  }

  SSL* const ssl_;
  const std::unique_ptr<Stream> plain_;
  std::string outgoing_;  // encrypted, not yet sent
};

absl::Status WrongFile(absl::string_view flag, const std::string& file, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(flag, ": ", file, ": ", why));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Tls>> Tls::Create(const TlsOptions& options) {
  auto tls = std::unique_ptr<Tls>(new Tls(options));
  if (absl::Status status = tls->Load(); !status.ok()) return status;
  return tls;
}

Tls::Tls(const TlsOptions& options) : options_(options), context_(SSL_CTX_new(TLS_client_method())) {
  CHECK(context_ != nullptr) << LastError();
}

Tls::~Tls() { SSL_CTX_free(context_); }

absl::Status Tls::Load() {
  SSL_CTX_set_min_proto_version(context_, TLS1_2_VERSION);
  SSL_CTX_set_options(context_, SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_mode(context_, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_verify(context_, options_.verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, nullptr);
  ERR_clear_error();
  if (options_.ca.empty()) {
    SSL_CTX_set_default_verify_paths(context_);
  } else {
    struct stat info {};
    const bool is_folder = stat(options_.ca.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
    if (SSL_CTX_load_verify_locations(context_, is_folder ? nullptr : options_.ca.c_str(),
                                      is_folder ? options_.ca.c_str() : nullptr) != 1) {
      return WrongFile("--redis-tls-ca", options_.ca,
                       absl::StrCat(LastError(), "; it is to be a PEM file, or a folder"));
    }
  }
  if (options_.cert.empty() != options_.key.empty()) {
    return absl::InvalidArgumentError("--redis-tls-cert and --redis-tls-key go together");
  }
  if (options_.cert.empty()) return absl::OkStatus();
  if (SSL_CTX_use_certificate_chain_file(context_, options_.cert.c_str()) != 1) {
    return WrongFile("--redis-tls-cert", options_.cert, absl::StrCat(LastError(), "; it is to be a PEM file"));
  }
  if (SSL_CTX_use_PrivateKey_file(context_, options_.key.c_str(), SSL_FILETYPE_PEM) != 1) {
    return WrongFile("--redis-tls-key", options_.key,
                     absl::StrCat(LastError(), "; it is to be a PEM file with the key of --redis-tls-cert"));
  }
  return absl::OkStatus();
}

std::unique_ptr<Stream> Tls::Wrap(std::unique_ptr<Stream> plain, const std::string& host) const {
  SSL* const ssl = SSL_new(context_);
  CHECK(ssl != nullptr) << LastError();
  const std::string& name = options_.name.empty() ? host : options_.name;
  if (os::IsIpAddress(name)) {
    X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name.c_str());
  } else {
    SSL_set_tlsext_host_name(ssl, name.c_str());
    SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    SSL_set1_host(ssl, name.c_str());
  }
  return std::make_unique<TlsStream>(ssl, std::move(plain));
}

}  // namespace tokamak::directory::redis
