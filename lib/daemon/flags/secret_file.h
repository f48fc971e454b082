// The file of the cluster's secrets (--secret-file; lib/security/cluster_secret.h has its format).
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "lib/security/cluster_secret.h"

namespace tokamak::daemon {

// kFailedPrecondition: one line that names the file and says what to do: it cannot be read, others
// may read it, or its text is wrong.
absl::StatusOr<std::shared_ptr<const security::ClusterSecrets>> ReadSecretFile(const std::string& path);

// Returns a new file's text: a comment, and a secret that nobody can guess.
std::string NewSecretFile();

}  // namespace tokamak::daemon
