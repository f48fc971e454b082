#include "lib/daemon/store_memory.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/units.h"

namespace tokamak::daemon {
namespace {

// The last page, which is 1 GiB on some machines, may lose an eighth of the memory asked for.
constexpr uint64_t kWasteFraction = 8;

}  // namespace

std::string WhyOrdinaryPages(uint64_t size, const os::HugePages& pages) {
  if (pages.page_size == 0) return "this kernel has no huge pages";
  if (pages.free == 0) return "no huge pages are free";
  const uint64_t needed = size / pages.page_size + (size % pages.page_size != 0 ? 1 : 0);
  if (needed > pages.free) {
    return absl::StrCat(pages.free, " huge pages of ", base::FormatSize(pages.page_size), " are free and ", needed,
                        " are needed (sysctl vm.nr_hugepages)");
  }
  const uint64_t waste = needed * pages.page_size - size;
  if (waste > size / kWasteFraction) {
    return absl::StrCat("huge pages of ", base::FormatSize(pages.page_size), " would waste ", base::FormatSize(waste));
  }
  return "";
}

absl::StatusOr<StoreMemory> OpenStoreMemory(uint64_t size, HugePagesChoice choice) {
  std::string why = "--no-huge-pages";
  if (choice == HugePagesChoice::kWhereFree) why = WhyOrdinaryPages(size, os::FreeHugePages());
  if (choice == HugePagesChoice::kAlways || why.empty()) {
    os::SharedMemoryOptions options;
    options.huge_pages = true;
    auto memory = os::SharedMemory::Create("tokamak", size, options);
    if (memory.ok()) {
      std::string pages = absl::StrCat("the store is in huge pages of ", base::FormatSize(memory->page_size()));
      return StoreMemory{*std::move(memory), std::move(pages)};
    }
    if (choice == HugePagesChoice::kAlways) return memory.status();
    why = std::string(memory.status().message());  // others took them meanwhile
  }
  auto memory = os::SharedMemory::Create("tokamak", size);
  if (!memory.ok()) return memory.status();
  std::string pages =
      absl::StrCat("the store is in ordinary pages of ", base::FormatSize(memory->page_size()), ": ", why);
  return StoreMemory{*std::move(memory), std::move(pages)};
}

}  // namespace tokamak::daemon
