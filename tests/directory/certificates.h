// Certificates of a test's own authority, for two days: made by the program openssl.
#pragma once

#include <string>

#include "tests/support/short_folder.h"

namespace tokamak::directory::redis {

class Certificates final {
 public:
  // The server's is for 127.0.0.1 and redis.test.
  Certificates();

  std::string ca() const { return folder_.Path("ca.pem"); }
  std::string server() const { return folder_.Path("server.pem"); }
  std::string server_key() const { return folder_.Path("server.key"); }
  std::string client() const { return folder_.Path("client.pem"); }
  std::string client_key() const { return folder_.Path("client.key"); }

 private:
  void Make(const std::string& name, const std::string& extension, const std::string& issuer);

  const testing_support::ShortFolder folder_;
};

}  // namespace tokamak::directory::redis
