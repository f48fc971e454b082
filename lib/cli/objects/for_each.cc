#include "lib/cli/objects/for_each.h"

#include "absl/strings/str_cat.h"
#include "lib/cli/common/output.h"

namespace tokamak::cli {

absl::Status ForEach(const CommandContext& context, const std::vector<std::string>& items, const char* verb,
                     absl::FunctionRef<absl::Status(const std::string& item)> work) {
  if (items.size() == 1) return work(items.front());
  size_t failed = 0;
  for (const std::string& item : items) {
    const absl::Status status = work(item);
    if (status.ok()) continue;
    if (absl::IsCancelled(status) || !context.client.status().ok()) return status;
    PrintError(context.flags.json, status);
    ++failed;
  }
  if (failed == 0) return absl::OkStatus();
  return absl::UnknownError(absl::StrCat("could not ", verb, " ", failed, " of ", items.size()));
}

}  // namespace tokamak::cli
