#include "lib/daemon/flags/secret_file.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/os/private_file.h"
#include "lib/os/secret_seed.h"
#include "lib/security/secret_bytes.h"

namespace tokamak::daemon {
namespace {

constexpr char kWhat[] = "the secret file";

void Wipe(std::string& text) { security::Wipe(absl::MakeSpan(reinterpret_cast<uint8_t*>(text.data()), text.size())); }

}  // namespace

absl::StatusOr<std::shared_ptr<const security::ClusterSecrets>> ReadSecretFile(const std::string& path) {
  const std::string exposed = os::ExposureOf(kWhat, path);
  if (!exposed.empty()) return absl::FailedPreconditionError(exposed);
  absl::StatusOr<std::string> text = os::ReadPrivateFile(kWhat, path, security::kMaxSecretFile);
  if (!text.ok()) return text.status();
  auto secrets = security::ClusterSecrets::Parse(*text);
  Wipe(*text);
  if (secrets.ok()) return std::make_shared<const security::ClusterSecrets>(*std::move(secrets));
  return absl::FailedPreconditionError(absl::StrCat(path, ": ", secrets.status().message()));
}

std::string NewSecretFile() {
  security::Key random;
  os::DrawSecretBytes(random.writable());
  const security::ClusterSecret secret(random.bytes());
  std::string line = secret.ToText();
  std::string text = absl::StrCat("# The secret of a Tokamak cluster, ", secret.id().ToString(),
                                  ": the same file for all of its nodes (tokd --secret-file).\n", line, "\n");
  Wipe(line);
  return text;
}

}  // namespace tokamak::daemon
