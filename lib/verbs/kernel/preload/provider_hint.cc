#include "lib/verbs/kernel/preload/provider_hint.h"

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "lib/verbs/kernel/preload/program.h"

namespace tokamak::verbs::kernel::preload {
namespace {

// /etc/libibverbs.d by default.
constexpr char kProviders[] = "/libibverbs.d";
constexpr char kOurProvider[] = "/rxe.driver";

}  // namespace

void HintAtProvider(const char* folder) {
  static std::atomic<bool> said{false};
  if (folder == nullptr || !absl::EndsWith(folder, kProviders)) return;
  // More providers, by name.
  if (std::getenv("RDMAV_DRIVERS") != nullptr || std::getenv("IBV_DRIVERS") != nullptr) return;
  const std::string provider = absl::StrCat(folder, kOurProvider);
  if (access(provider.c_str(), F_OK) == 0 || said.exchange(true)) return;
  Say(absl::StrCat("no device will be found: rdma-core has no provider for rxe devices (there is no ", provider,
                   "); install the package ibverbs-providers"),
      true);
}

}  // namespace tokamak::verbs::kernel::preload
