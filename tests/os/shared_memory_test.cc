#include "lib/os/shared_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <string>
#include <utility>

#include "lib/os/memory_limits.h"

namespace tokamak::os {
namespace {

constexpr uint64_t kSize = 1 << 20;
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

// A memfd as another process might have made it.
FileDescriptor MakeMemfd(uint64_t size, int seals) {
  FileDescriptor fd(memfd_create("stranger", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(ftruncate(fd.get(), static_cast<off_t>(size)), 0);
  EXPECT_EQ(fcntl(fd.get(), F_ADD_SEALS, seals), 0);
  return fd;
}

// As the daemon does for those who only read.
FileDescriptor OpenForReading(const SharedMemory& memory) {
  const std::string path = "/proc/self/fd/" + std::to_string(memory.descriptor());
  return FileDescriptor(open(path.c_str(), O_RDONLY | O_CLOEXEC));
}

TEST(SharedMemoryTest, NewMemoryIsZeroAndOfThatSize) {
  const absl::StatusOr<SharedMemory> memory = SharedMemory::Create("test", kSize);
  ASSERT_TRUE(memory.ok()) << memory.status();
  EXPECT_EQ(memory->size(), kSize);
  EXPECT_EQ(memory->bytes().size(), kSize);
  EXPECT_TRUE(std::all_of(memory->bytes().begin(), memory->bytes().end(), [](uint8_t byte) { return byte == 0; }));
}

TEST(SharedMemoryTest, SizesAreRoundedUpToPages) {
  const absl::StatusOr<SharedMemory> memory = SharedMemory::Create("test", 1);
  ASSERT_TRUE(memory.ok());
  EXPECT_EQ(memory->size(), static_cast<uint64_t>(sysconf(_SC_PAGESIZE)));
}

TEST(SharedMemoryTest, BytesWrittenByOneMappingAreReadByAnother) {
  const absl::StatusOr<SharedMemory> memory = SharedMemory::Create("test", kSize);
  ASSERT_TRUE(memory.ok());
  const absl::StatusOr<MemoryMapping> reader = SharedMemory::Attach(memory->descriptor(), kSize, false);
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_NE(reader->data(), memory->bytes().data());
  memory->bytes()[kSize - 1] = 42;
  EXPECT_EQ(reader->bytes()[kSize - 1], 42);
  EXPECT_FALSE(reader->writable());
}

TEST(SharedMemoryTest, AWriterThatAttachesIsSeenByTheOwner) {
  const absl::StatusOr<SharedMemory> memory = SharedMemory::Create("test", kSize);
  ASSERT_TRUE(memory.ok());
  const absl::StatusOr<MemoryMapping> writer = SharedMemory::Attach(memory->descriptor(), kSize, true);
  ASSERT_TRUE(writer.ok());
  writer->data()[7] = 7;
  EXPECT_EQ(memory->bytes()[7], 7);
}

TEST(SharedMemoryTest, WritingToAReadOnlyMappingIsACrash) {
  const absl::StatusOr<SharedMemory> memory = SharedMemory::Create("test", kSize);
  ASSERT_TRUE(memory.ok());
  const absl::StatusOr<MemoryMapping> reader = SharedMemory::Attach(memory->descriptor(), kSize, false);
  ASSERT_TRUE(reader.ok());
  EXPECT_DEATH(*const_cast<volatile uint8_t*>(reader->data()) = 1, "");
}

TEST(SharedMemoryTest, AMappingOutlivesWhatItCameFrom) {
  MemoryMapping reader;
  {
    const absl::StatusOr<SharedMemory> memory = SharedMemory::Create("test", kSize);
    ASSERT_TRUE(memory.ok());
    memory->bytes()[0] = 9;
    absl::StatusOr<MemoryMapping> attached = SharedMemory::Attach(memory->descriptor(), kSize, false);
    ASSERT_TRUE(attached.ok());
    reader = *std::move(attached);
  }
  EXPECT_EQ(reader.bytes()[0], 9);
}

TEST(SharedMemoryTest, NobodyCanShrinkGrowOrUnsealIt) {
  const absl::StatusOr<SharedMemory> memory = SharedMemory::Create("test", kSize);
  ASSERT_TRUE(memory.ok());
  EXPECT_EQ(ftruncate(memory->descriptor(), kSize / 2), -1);
  EXPECT_EQ(errno, EPERM);
  EXPECT_EQ(ftruncate(memory->descriptor(), kSize * 2), -1);
  EXPECT_EQ(errno, EPERM);
  EXPECT_EQ(fcntl(memory->descriptor(), F_ADD_SEALS, F_SEAL_WRITE), -1);
  EXPECT_EQ(errno, EPERM);
}

TEST(SharedMemoryTest, ADescriptorOpenedForReadingCannotBeMappedForWriting) {
  const absl::StatusOr<SharedMemory> memory = SharedMemory::Create("test", kSize);
  ASSERT_TRUE(memory.ok());
  const FileDescriptor read_only = OpenForReading(*memory);
  ASSERT_TRUE(read_only.valid());
  EXPECT_TRUE(SharedMemory::Attach(read_only.get(), kSize, false).ok());
  EXPECT_FALSE(SharedMemory::Attach(read_only.get(), kSize, true).ok());
}

TEST(SharedMemoryTest, ADescriptorOpenedForReadingCannotBeUsedToTakeMemoryAway) {
  const absl::StatusOr<SharedMemory> memory = SharedMemory::Create("test", kSize);
  ASSERT_TRUE(memory.ok());
  const FileDescriptor read_only = OpenForReading(*memory);
  EXPECT_EQ(fallocate(read_only.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096), -1);
  const absl::StatusOr<MemoryMapping> mapping = SharedMemory::Attach(read_only.get(), kSize, false);
  ASSERT_TRUE(mapping.ok());
  EXPECT_EQ(madvise(mapping->data(), 4096, MADV_REMOVE), -1);
  EXPECT_EQ(mprotect(mapping->data(), 4096, PROT_READ | PROT_WRITE), -1);
}

// Runs `look` in a child process that has become what `become` makes it; whether both returned
// true.
template <typename Become, typename Look>
bool TrueInAChild(Become become, Look look) {
  const pid_t child = fork();
  if (child == 0) _exit(become() && look() ? 0 : 1);
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool BecomeNobody() {
  constexpr uid_t kNobody = 65534;
  return setresgid(kNobody, kNobody, kNobody) == 0 && setresuid(kNobody, kNobody, kNobody) == 0;
}

// The same user, but without the rights of root.
bool DropCapabilities() {
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  const __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {};
  return syscall(SYS_capset, &header, none) == 0;
}

bool CanBeOpenedAgain(int fd, int access) {
  return FileDescriptor(open(("/proc/self/fd/" + std::to_string(fd)).c_str(), access | O_CLOEXEC)).valid();
}

TEST(SharedMemoryTest, AnotherUserCannotOpenItsReadingDescriptorAgainForWriting) {
  if (!TrueInAChild(BecomeNobody, [] { return true; }))
    GTEST_SKIP() << "only root, outside of a sandbox, can be another";
  const absl::StatusOr<SharedMemory> memory = SharedMemory::Create("test", kSize);
  ASSERT_TRUE(memory.ok());
  const FileDescriptor read_only = OpenForReading(*memory);
  const int fd = read_only.get();
  const auto true_for_nobody = [](auto look) { return TrueInAChild(BecomeNobody, look); };
  EXPECT_TRUE(true_for_nobody([fd] { return SharedMemory::Attach(fd, kSize, false).ok(); }));
  EXPECT_TRUE(true_for_nobody([fd] { return !CanBeOpenedAgain(fd, O_RDWR) && !CanBeOpenedAgain(fd, O_WRONLY); }));
  EXPECT_TRUE(true_for_nobody([fd] { return fchmod(fd, 0777) != 0; }));
}

TEST(SharedMemoryTest, ItsOwnUserCannotOpenItAgainForWritingByMistake) {
  const absl::StatusOr<SharedMemory> memory = SharedMemory::Create("test", kSize);
  ASSERT_TRUE(memory.ok());
  const int fd = memory->descriptor();
  struct stat status = {};
  ASSERT_EQ(fstat(fd, &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0400u) << "nor any other user";
  const auto true_without_rights = [](auto look) { return TrueInAChild(DropCapabilities, look); };
  EXPECT_TRUE(true_without_rights([fd] { return CanBeOpenedAgain(fd, O_RDONLY); }));
  EXPECT_TRUE(true_without_rights([fd] { return !CanBeOpenedAgain(fd, O_RDWR) && !CanBeOpenedAgain(fd, O_WRONLY); }));
}

TEST(SharedMemoryTest, ImpossibleSizesFailAtOnceAndNameTheRemedy) {
  const absl::Status status = SharedMemory::Create("test", uint64_t{1} << 50).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(status.message().find("ask for less"), absl::string_view::npos) << status;
  EXPECT_NE(status.message().find("1048576.00 GiB"), absl::string_view::npos) << status;
}

TEST(SharedMemoryTest, ZeroAndAbsurdSizesAreRefused) {
  EXPECT_EQ(SharedMemory::Create("test", 0).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(SharedMemory::Create("test", UINT64_MAX).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(SharedMemoryTest, HugePagesAreGivenOrTheRemedyIsNamed) {
  const HugePages pages = FreeHugePages();
  SharedMemoryOptions options;
  options.huge_pages = true;
  const absl::StatusOr<SharedMemory> memory = SharedMemory::Create("test", 1, options);
  if (pages.page_size == 0) {
    EXPECT_EQ(memory.status().code(), absl::StatusCode::kUnimplemented);
  } else if (pages.free == 0) {
    EXPECT_EQ(memory.status().code(), absl::StatusCode::kResourceExhausted);
    EXPECT_NE(memory.status().message().find("vm.nr_hugepages=1"), absl::string_view::npos) << memory.status();
  } else if (memory.ok()) {  // another process may have taken it meanwhile
    EXPECT_EQ(memory->size(), pages.page_size);
    memory->bytes()[0] = 1;
  }
}

TEST(SharedMemoryTest, PrefaultKeepsTheContentAndReachesTheEnd) {
  const absl::StatusOr<SharedMemory> memory = SharedMemory::Create("test", kSize);
  ASSERT_TRUE(memory.ok());
  memory->bytes()[5] = 5;
  EXPECT_EQ(*memory->mapping().Prefault(0, absl::InfiniteDuration()), kSize);
  EXPECT_EQ(memory->bytes()[5], 5);
  EXPECT_EQ(*memory->mapping().Prefault(kSize, absl::InfiniteDuration()), kSize);
}

TEST(SharedMemoryTest, PrefaultStopsWhenItsTimeIsOver) {
  const absl::StatusOr<SharedMemory> memory = SharedMemory::Create("test", kSize);
  ASSERT_TRUE(memory.ok());
  EXPECT_EQ(*memory->mapping().Prefault(4096, absl::ZeroDuration()), size_t{4096});
}

TEST(SharedMemoryTest, PrefaultBringsThePagesIn) {
  SharedMemoryOptions options;
  options.prefault = true;
  const absl::StatusOr<SharedMemory> memory = SharedMemory::Create("test", kSize, options);
  ASSERT_TRUE(memory.ok());
  unsigned char resident[kSize / 4096];
  ASSERT_EQ(mincore(memory->bytes().data(), kSize, resident), 0);
  EXPECT_TRUE(std::all_of(std::begin(resident), std::end(resident), [](unsigned char page) { return page & 1; }));
}

TEST(AttachTest, MemoryOfThePromisedSizeIsAttached) {
  const FileDescriptor fd = MakeMemfd(kSize, kSeals);
  EXPECT_TRUE(SharedMemory::Attach(fd.get(), kSize, true).ok());
}

TEST(AttachTest, AnUnexpectedSizeIsRefused) {
  const FileDescriptor fd = MakeMemfd(kSize, kSeals);
  for (const uint64_t size : {kSize - 1, kSize + 1, kSize * 2, uint64_t{0}, UINT64_MAX}) {
    EXPECT_EQ(SharedMemory::Attach(fd.get(), size, false).status().code(), absl::StatusCode::kFailedPrecondition);
  }
}

TEST(AttachTest, EmptyMemoryIsRefused) {
  const FileDescriptor fd = MakeMemfd(0, kSeals);
  EXPECT_FALSE(SharedMemory::Attach(fd.get(), 0, false).ok());
}

TEST(AttachTest, MemoryThatItsOwnerCouldTakeAwayIsRefused) {
  for (const int seals : {0, F_SEAL_GROW | F_SEAL_SEAL, F_SEAL_SHRINK, F_SEAL_SHRINK | F_SEAL_GROW}) {
    const FileDescriptor fd = MakeMemfd(kSize, seals);
    EXPECT_EQ(SharedMemory::Attach(fd.get(), kSize, false).status().code(), absl::StatusCode::kFailedPrecondition);
  }
}

TEST(AttachTest, ADescriptorThatIsNoMemfdIsRefused) {
  const FileDescriptor null(open("/dev/null", O_RDWR | O_CLOEXEC));
  EXPECT_EQ(SharedMemory::Attach(null.get(), kSize, false).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(SharedMemory::Attach(-1, kSize, false).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(SharedMemoryTest, ASizeBeyondTheFileLimitIsAnErrorThatNamesTheLimit) {
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small = {kSize - 1, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const absl::Status status = SharedMemory::Create("test", kSize).status();
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_NE(status.message().find("ulimit -f"), absl::string_view::npos) << status;
}

TEST(MemoryLimitsTest, ReadsNumbersFromMeminfo) {
  const absl::string_view text = "MemTotal:  100 kB\nMemAvailable:      42 kB\nHugePages_Free:        3\nOdd: x kB\n";
  EXPECT_EQ(MeminfoValue(text, "MemAvailable"), 42u);
  EXPECT_EQ(MeminfoValue(text, "MemTotal"), 100u);
  EXPECT_EQ(MeminfoValue(text, "HugePages_Free"), 3u);
  EXPECT_EQ(MeminfoValue(text, "Mem"), std::nullopt);
  EXPECT_EQ(MeminfoValue(text, "Odd"), std::nullopt);
  EXPECT_EQ(MeminfoValue("", "MemTotal"), std::nullopt);
}

TEST(MemoryLimitsTest, TheLimitOfThisMachineHasAReason) {
  const MemoryLimit limit = OrdinaryMemoryLimit();
  EXPECT_GT(limit.bytes, uint64_t{1} << 20);
  EXPECT_LT(limit.bytes, uint64_t{1} << 50);
  EXPECT_FALSE(limit.reason.empty());
}

}  // namespace
}  // namespace tokamak::os
