#include "lib/daemon/memory/store_memory.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/units.h"

namespace tokamak::daemon {
namespace {

// The last page, up to 1 GiB, may waste an eighth of the requested size.
constexpr uint64_t kWasteFraction = 8;

absl::StatusOr<os::SharedMemory> Open(uint64_t size, bool huge_pages, const TouchMemory& touch,
                                      const MemorySystem& system) {
  os::SharedMemoryOptions options;
  options.huge_pages = huge_pages;
  auto memory = system.create(size, options);
  if (!memory.ok() || !touch) return memory;
  if (absl::Status s = touch(*memory); !s.ok()) return s;
  return memory;
}

}  // namespace

std::string WhyOrdinaryPages(uint64_t size, const os::HugePages& pages, bool touched) {
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
  if (pages.by_group && !touched) return "a control group bounds huge pages, and --no-prefault does not secure them";
  return "";
}

absl::StatusOr<StoreMemory> OpenStoreMemory(uint64_t size, HugePagesChoice choice, const TouchMemory& touch,
                                            const MemorySystem& system) {
  std::string why = "--no-huge-pages";
  if (choice == HugePagesChoice::kWhereFree) why = WhyOrdinaryPages(size, system.huge_pages(), touch != nullptr);
  if (choice == HugePagesChoice::kAlways || why.empty()) {
    auto memory = Open(size, /*huge_pages=*/true, touch, system);
    if (memory.ok()) {
      std::string pages = absl::StrCat("the store is in huge pages of ", base::FormatSize(memory->page_size()));
      return StoreMemory{*std::move(memory), std::move(pages)};
    }
    if (choice == HugePagesChoice::kAlways || absl::IsCancelled(memory.status())) return memory.status();
    why = std::string(memory.status().message());  // others took them
  }
  auto memory = Open(size, /*huge_pages=*/false, touch, system);
  if (!memory.ok()) return memory.status();
  std::string pages =
      absl::StrCat("the store is in ordinary pages of ", base::FormatSize(memory->page_size()), ": ", why);
  return StoreMemory{*std::move(memory), std::move(pages)};
}

}  // namespace tokamak::daemon
