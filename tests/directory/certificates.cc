#include "tests/directory/certificates.h"

#include <vector>

#include "lib/base/check.h"
#include "lib/os/process/child_process.h"

namespace tokamak::directory::redis {

Certificates::Certificates() {
  Make("ca", "basicConstraints=critical,CA:TRUE", "");
  Make("server", "subjectAltName=DNS:redis.test,IP:127.0.0.1", "ca");
  Make("client", "extendedKeyUsage=clientAuth", "ca");
}

void Certificates::Make(const std::string& name, const std::string& extension, const std::string& issuer) {
  os::ChildOptions options;
  options.argv = {"openssl",
                  "req",
                  "-x509",
                  "-newkey",
                  "ec",
                  "-pkeyopt",
                  "ec_paramgen_curve:prime256v1",
                  "-nodes",
                  "-days",
                  "2",
                  "-subj",
                  "/CN=" + name,
                  "-addext",
                  extension,
                  "-keyout",
                  folder_.Path(name + ".key"),
                  "-out",
                  folder_.Path(name + ".pem")};
  if (!issuer.empty()) {
    for (const std::string& word :
         {std::string("-CA"), folder_.Path(issuer + ".pem"), std::string("-CAkey"), folder_.Path(issuer + ".key")}) {
      options.argv.push_back(word);
    }
  }
  options.output = folder_.Path("log");
  auto process = os::ChildProcess::Start(options);
  CHECK(process.ok()) << process.status();
  const auto ended = (*process)->Wait(base::Seconds(30));
  CHECK(ended.ok() && ended->ok()) << "openssl cannot make a certificate for " << name;
}

}  // namespace tokamak::directory::redis
