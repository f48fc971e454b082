#include "lib/os/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "lib/base/check.h"
#include "lib/base/log.h"
#include "lib/base/units.h"
#include "lib/os/memory_limits.h"

namespace tokamak::os {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
// More than any address space: refused before arithmetic can overflow.
constexpr uint64_t kLargest = uint64_t{1} << 56;

uint64_t PageSize() { return static_cast<uint64_t>(sysconf(_SC_PAGESIZE)); }

std::string Gibibytes(uint64_t bytes) { return absl::StrFormat("%.2f GiB", static_cast<double>(bytes) / (1 << 30)); }

absl::Status CheckOrdinary(uint64_t size) {
  const MemoryLimit limit = OrdinaryMemoryLimit();
  if (size <= limit.bytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(Gibibytes(size), " of shared memory were asked for, but ",
                                                   limit.reason, " allow ", Gibibytes(limit.bytes),
                                                   ": ask for less, or free memory or raise the limit"));
}

absl::Status HugePagesMissing(uint64_t size, const HugePages& pages) {
  const uint64_t needed = size / pages.page_size;
  return absl::ResourceExhaustedError(absl::StrCat(
      needed, " huge pages of ", pages.page_size / 1024, " KiB are needed, ", pages.free,
      " are free: ask for less, do without huge pages, or provide them (sysctl vm.nr_hugepages=", needed, " or more)"));
}

absl::StatusOr<uint8_t*> MapDescriptor(int fd, uint64_t size, bool writable) {
  if (size == 0 || size > kLargest) return absl::InvalidArgumentError("no such size of memory can be mapped");
  const int protection = writable ? PROT_READ | PROT_WRITE : PROT_READ;
  void* data = mmap(nullptr, size, protection, MAP_SHARED, fd, 0);
  if (data == MAP_FAILED) return absl::ErrnoToStatus(errno, absl::StrCat("map ", Gibibytes(size), " of shared memory"));
  madvise(data, size, MADV_DONTDUMP);  // core files leave out its data
  return static_cast<uint8_t*>(data);
}

// Reads and writes back one byte of each page, atomically, so that no concurrent store is lost.
void Touch(uint8_t* data, size_t size) {
  for (size_t i = 0; i < size; i += PageSize()) __atomic_fetch_or(data + i, uint8_t{0}, __ATOMIC_RELAXED);
}

absl::Status Populate(uint8_t* data, size_t size) {
  while (madvise(data, size, MADV_POPULATE_WRITE) != 0) {
    if (errno == EINTR || errno == EAGAIN) continue;
    if (errno == EINVAL) {  // Linux before 5.14
      Touch(data, size);
      return absl::OkStatus();
    }
    return absl::ResourceExhaustedError(
        absl::StrCat("no memory to pre-fault ", Gibibytes(size), " of shared memory: ", strerror(errno)));
  }
  return absl::OkStatus();
}

}  // namespace

MemoryMapping& MemoryMapping::operator=(MemoryMapping&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(writable_, other.writable_);
  return *this;
}

MemoryMapping::~MemoryMapping() {
  if (data_ != nullptr) PCHECK(munmap(data_, size_) == 0) << "munmap";
}

absl::StatusOr<size_t> MemoryMapping::Prefault(size_t from, absl::Duration limit) const {
  CHECK(writable_) << "memory that is mapped read-only is not brought in";
  CHECK_EQ(from % PageSize(), uint64_t{0});
  const absl::Time end = absl::Now() + limit;
  while (from < size_ && absl::Now() < end) {
    const size_t step = std::min(kPrefaultStep, size_ - from);
    if (absl::Status s = Populate(data_ + from, step); !s.ok()) return s;
    from += step;
  }
  return std::min(from, size_);
}

absl::StatusOr<SharedMemory> SharedMemory::Create(const std::string& name, uint64_t size, SharedMemoryOptions options) {
  if (size == 0 || size > kLargest) {
    return absl::InvalidArgumentError(absl::StrCat(size, " bytes are no size for shared memory"));
  }
  HugePages pages;
  if (options.huge_pages) {
    pages = FreeHugePages();
    if (pages.page_size == 0) return absl::UnimplementedError("this kernel has no huge pages");
  }
  const uint64_t page_size = options.huge_pages ? pages.page_size : PageSize();
  size = (size + page_size - 1) / page_size * page_size;
  if (options.huge_pages) {
    if (size / page_size > pages.free) return HugePagesMissing(size, pages);
  } else if (absl::Status s = CheckOrdinary(size); !s.ok()) {
    return s;
  }

  // A larger file would raise SIGXFSZ.
  rlimit files;
  if (getrlimit(RLIMIT_FSIZE, &files) == 0 && files.rlim_cur < size) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no room for ", base::FormatSize(size), " of shared memory: this process may have files of ",
                     base::FormatSize(files.rlim_cur), "; raise that limit (ulimit -f, LimitFSIZE of a service)"));
  }

  const unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING | (options.huge_pages ? MFD_HUGETLB : 0u);
  FileDescriptor fd(memfd_create(name.c_str(), flags));
  if (!fd.valid()) return absl::ErrnoToStatus(errno, "memfd_create");
  if (ftruncate(fd.get(), static_cast<off_t>(size)) != 0) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "no room for ", Gibibytes(size), " of shared memory: ", strerror(errno), "; ask for less, or free memory"));
  }
  if (fchmod(fd.get(), S_IRUSR) != 0) return absl::ErrnoToStatus(errno, "fchmod of shared memory");
  if (fcntl(fd.get(), F_ADD_SEALS, kSeals) != 0) return absl::ErrnoToStatus(errno, "seal shared memory");
  const absl::StatusOr<uint8_t*> data = MapDescriptor(fd.get(), size, /*writable=*/true);
  // The mapping also reserves huge pages.
  if (!data.ok() && options.huge_pages) return HugePagesMissing(size, FreeHugePages());
  if (!data.ok()) return data.status();
  SharedMemory memory(std::move(fd), page_size, MemoryMapping(*data, size, /*writable=*/true));
  if (!options.prefault) return memory;
  const absl::StatusOr<size_t> done = memory.mapping_.Prefault(0, kPrefaultLimit);
  if (!done.ok()) return done.status();
  LOG_IF(WARNING, *done < size) << "only " << Gibibytes(*done) << " of " << Gibibytes(size) << " were pre-faulted in "
                                << kPrefaultLimit;
  return memory;
}

absl::StatusOr<MemoryMapping> SharedMemory::Attach(int fd, uint64_t size, bool writable) {
  const int seals = fcntl(fd, F_GET_SEALS);
  if (seals < 0) return absl::FailedPreconditionError("the descriptor received is not shared memory");
  if ((seals & kSeals) != kSeals) {
    return absl::FailedPreconditionError("the shared memory received is not sealed: its owner could take it away");
  }
  struct stat status;
  if (fstat(fd, &status) != 0) return absl::ErrnoToStatus(errno, "fstat");
  if (status.st_size < 0 || static_cast<uint64_t>(status.st_size) != size) {
    return absl::FailedPreconditionError(
        absl::StrCat("the shared memory received has ", status.st_size, " bytes, not ", size, " as was said"));
  }
  const absl::StatusOr<uint8_t*> data = MapDescriptor(fd, size, writable);
  if (!data.ok()) return data.status();
  return MemoryMapping(*data, size, writable);
}

}  // namespace tokamak::os
