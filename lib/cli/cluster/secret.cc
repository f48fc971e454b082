#include "lib/cli/cluster/secret.h"

#include <iostream>
#include <string>

#include "absl/strings/str_cat.h"
#include "lib/cli/common/output.h"
#include "lib/daemon/flags/secret_file.h"
#include "lib/os/private_file.h"

namespace tokamak::cli {

namespace {

constexpr char kNew[] = "new";
constexpr char kId[] = "id";

struct SecretFlags {
  std::string action;
  std::string file;
};

void AddSecret(CLI::App& secret, SecretFlags& own) {
  secret
      .add_option(
          "action", own.action,
          "new: make a secret, in FILE, which must not exist and which only you may read, or on standard output; "
          "id: print the ids of FILE's secrets, which are no secret")
      ->required()
      ->check(CLI::IsMember({kNew, kId}));
  secret.add_option("file", own.file, "secret file, the same for all nodes of a cluster (tokd --secret-file)");
}

absl::Status MakeSecret(const std::string& file) {
  const std::string text = daemon::NewSecretFile();
  if (!file.empty()) {
    const absl::Status made = os::CreatePrivateFile(file, text);
    if (!absl::IsAlreadyExists(made)) return made;
    return absl::AlreadyExistsError(absl::StrCat(file, " exists: name another file, or remove it"));
  }
  std::cout << text << std::flush;
  return absl::OkStatus();
}

absl::Status PrintIds(const Flags& flags, const std::string& file) {
  const auto secrets = daemon::ReadSecretFile(file);
  if (!secrets.ok()) return secrets.status();
  nlohmann::json ids = nlohmann::json::array();
  for (size_t i = 0; i < (*secrets)->size(); ++i) {
    const std::string id = (*secrets)->at(i).id().ToString();
    ids.push_back(id);
    if (!flags.json) std::cout << id << (i == 0 ? "" : "  also valid") << "\n";
  }
  if (flags.json) std::cout << ToText({{"ids", ids}}) << "\n";
  return absl::OkStatus();
}

int Secret(const Flags& flags, const SecretFlags& own) {
  if (own.action == kNew) {
    const absl::Status made = MakeSecret(own.file);
    if (!made.ok()) return Fail(flags, made, 2);
    return own.file.empty() ? 0 : ExitCode(flags, PrintIds(flags, own.file));
  }
  if (own.file.empty()) return Fail(flags, absl::InvalidArgumentError("secret id: give the file"), 2);
  return ExitCode(flags, PrintIds(flags, own.file));
}

}  // namespace

Command SecretCommand() {
  return CommandAlone({"secret", "make the secret by which the nodes of a cluster know each other, or print its id",
                       "tok secret new /etc/tokamak/secret"},
                      AddSecret, Secret);
}

}  // namespace tokamak::cli
