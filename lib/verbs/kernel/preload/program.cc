#include "lib/verbs/kernel/preload/program.h"

#include <dirent.h>
#include <limits.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "lib/base/log.h"
#include "lib/base/mutex.h"
#include "lib/os/no_cancellation.h"
#include "lib/verbs/kernel/program/ring_memory.h"
#include "lib/verbs/kernel/sysfs_tree.h"

namespace tokamak::verbs::kernel::preload {
namespace {

// Descriptors from here on are never ours.
constexpr int kMostDescriptors = 1 << 20;

// Costs no memory until written.
std::array<std::atomic<uint8_t>, kMostDescriptors> kinds;
std::atomic<int> last_kind{-1};  // highest that was ever ours

struct Once {
  pid_t owner = 0;
  base::Mutex mutex;
  bool tried ABSL_GUARDED_BY(mutex) = false;
  const Options* options ABSL_GUARDED_BY(mutex) = nullptr;  // null if they are invalid
  std::vector<Identity> devices ABSL_GUARDED_BY(mutex);     // of options
  Kernel* kernel ABSL_GUARDED_BY(mutex) = nullptr;
  SysfsTree* tree ABSL_GUARDED_BY(mutex) = nullptr;
  bool said_no_tree ABSL_GUARDED_BY(mutex) = false;
  std::atomic<bool> log{false};
};
Once* once = nullptr;
std::atomic<Kernel*> running{nullptr};  // once->kernel
pthread_once_t once_made = PTHREAD_ONCE_INIT;

// Puts zeros in place of the rings that the child shares with the parent: such a queue is full to a
// poster, empty to a poller.
void LeaveInheritedRings() {
  std::FILE* const mappings = std::fopen("/proc/self/maps", "re");
  if (mappings == nullptr) return;
  char line[PATH_MAX + 128];
  while (std::fgets(line, sizeof(line), mappings) != nullptr) {
    uintptr_t begin = 0;
    uintptr_t end = 0;
    if (std::strstr(line, kRingMapping) == nullptr || std::sscanf(line, "%" SCNxPTR "-%" SCNxPTR, &begin, &end) != 2) {
      continue;
    }
    mmap(reinterpret_cast<void*>(begin), end - begin, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
         -1, 0);
  }
  std::fclose(mappings);
}

// Closes the parent's sockets, by which others find it: they stay the parent's alone.
void CloseInheritedPorts(const Kernel& kernel) {
  DIR* const folder = opendir("/proc/self/fd");
  if (folder == nullptr) return;
  while (const dirent* entry = readdir(folder)) {
    const int descriptor = std::atoi(entry->d_name);
    if (kernel.IsPort(descriptor)) close(descriptor);
  }
  closedir(folder);
}

// After a fork the child has neither the NIC's thread nor the memory behind the parent's rings: it
// opens devices of its own, and is refused at the inherited ones. (ibv_fork_init(3)) It takes no
// lock: this is its only thread, and a mutex that another thread of the parent held stays locked
// for ever.
void AfterForkInChild() ABSL_NO_THREAD_SAFETY_ANALYSIS {
  const os::NoCancellation no_cancellation;
  for (int descriptor = 0; descriptor <= last_kind.load(); ++descriptor) {
    const Kind kind = KindOf(descriptor);
    const bool refuses = kind == Kind::kDevice || kind == Kind::kManager || kind == Kind::kInherited;
    SetKind(descriptor, refuses ? Kind::kInherited : Kind::kOther);
  }
  if (once->kernel != nullptr) {
    LeaveInheritedRings();
    CloseInheritedPorts(*once->kernel);
  }
  running.store(nullptr, std::memory_order_relaxed);
  once = new Once;
  once->owner = getpid();
}

// The log of what is linked in: a line for the user if asked for, a broken CHECK always.
class UsersLog final : public base::LogSink {
 public:
  void Write(const base::LogLine& line) override {
    Say(absl::StrCat(line.file, ":", line.line, ": ", std::string(line.text)), line.severity == base::Severity::kFatal);
  }
};

void MakeOnce() {
  base::SetLogSink(new UsersLog);
  once = new Once;
  once->owner = getpid();
  pthread_atfork(nullptr, nullptr, &AfterForkInChild);
}

Once& Get() {
  pthread_once(&once_made, &MakeOnce);
  return *once;
}

std::string FolderForFiles() {
  for (const char* variable : {"XDG_RUNTIME_DIR", "TMPDIR"}) {
    const char* const folder = std::getenv(variable);
    if (folder != nullptr && access(folder, W_OK | X_OK) == 0) return folder;
  }
  return "/tmp";
}

// True in a process that shares our memory but is not us: the child of vfork(), until it executes.
bool IsForeign(const Once& state) { return state.owner != getpid(); }

// Reads the options, once. Listing devices needs no kernel: a program that only lists, such as a
// shell, gets no thread and next to no descriptors.
void ReadOptions(Once& state) ABSL_EXCLUSIVE_LOCKS_REQUIRED(state.mutex) {
  if (std::exchange(state.tried, true)) return;
  const char* const text = std::getenv(kOptionsVariable);
  absl::StatusOr<Options> options = Options::Parse(text == nullptr ? "" : text);
  if (!options.ok()) {
    Say(std::string(options.status().message()), true);
    return;
  }
  state.log = options->log;
  state.devices = Kernel::IdentitiesOf(*options);
  state.options = new Options(*std::move(options));
}

Kernel* KernelOf(Once& state) {
  const os::NoCancellation no_cancellation;
  const base::MutexLock lock(state.mutex);
  ReadOptions(state);
  if (state.kernel != nullptr || state.options == nullptr) return state.kernel;
  state.kernel = new Kernel(*state.options, state.devices);
  state.kernel->set_on_line([](const std::string& line) { Say(line, true); });
  state.kernel->set_on_channel([](int descriptor) { SetKind(descriptor, Kind::kChannel); });
  running.store(state.kernel, std::memory_order_release);
  return state.kernel;
}

__attribute__((destructor)) void OnExit() {
  if (once == nullptr || IsForeign(*once)) return;
  if (Kernel* const kernel = running.load(std::memory_order_acquire)) kernel->Depart();
  const base::MutexLock lock(once->mutex);
  delete std::exchange(once->tree, nullptr);
}

}  // namespace

}  // namespace tokamak::verbs::kernel::preload

// A released descriptor is the program's, or nobody's, until it is assigned again.
extern "C" void tokamak_on_descriptor(int descriptor, bool owned) noexcept {
  using tokamak::verbs::kernel::preload::Kind;
  tokamak::verbs::kernel::preload::SetKind(descriptor, owned ? Kind::kHidden : Kind::kOther);
}

namespace tokamak::verbs::kernel::preload {

Kernel* TheKernel() {
  Once& state = Get();
  return IsForeign(state) ? nullptr : KernelOf(state);
}

size_t DeviceCount() {
  Once& state = Get();
  if (IsForeign(state)) return 0;
  const os::NoCancellation no_cancellation;
  const base::MutexLock lock(state.mutex);
  ReadOptions(state);
  return state.devices.size();
}

Kernel* RunningKernel() {
  Kernel* const kernel = running.load(std::memory_order_acquire);
  return kernel != nullptr ? kernel : TheKernel();
}

Kind KindOf(int descriptor) {
  if (descriptor < 0 || descriptor >= kMostDescriptors) return Kind::kOther;
  return static_cast<Kind>(kinds[static_cast<size_t>(descriptor)].load(std::memory_order_relaxed));
}

void SetKind(int descriptor, Kind kind) {
  if (descriptor < 0 || descriptor >= kMostDescriptors) return;
  int last = last_kind.load();
  while (last < descriptor && !last_kind.compare_exchange_weak(last, descriptor)) {
  }
  kinds[static_cast<size_t>(descriptor)].store(static_cast<uint8_t>(kind), std::memory_order_relaxed);
}

// The child of a vfork() has descriptors of its own, but our memory.
bool IsHidden(int descriptor) { return KindOf(descriptor) == Kind::kHidden && !IsForeign(Get()); }

void Forget(int descriptor) {
  if (KindOf(descriptor) == Kind::kOther || IsForeign(Get())) return;
  const bool inherited = KindOf(descriptor) == Kind::kInherited;
  SetKind(descriptor, Kind::kOther);
  if (inherited) return;
  if (Kernel* const kernel = TheKernel()) kernel->Close(descriptor);
}

void ForgetRange(unsigned first, unsigned last) {
  const int ours = last_kind.load();
  for (unsigned descriptor = first; ours >= 0 && descriptor <= last && descriptor <= static_cast<unsigned>(ours);
       ++descriptor) {
    if (KindOf(static_cast<int>(descriptor)) != Kind::kHidden) Forget(static_cast<int>(descriptor));
  }
}

int CloseAround(unsigned first, unsigned last, absl::FunctionRef<int(unsigned, unsigned)> close_all) {
  if (IsForeign(Get())) return close_all(first, last);
  int result = 0;
  unsigned begin = first;
  const int ours = last_kind.load();
  for (unsigned descriptor = first; ours >= 0 && descriptor <= last && descriptor <= static_cast<unsigned>(ours);
       ++descriptor) {
    if (KindOf(static_cast<int>(descriptor)) != Kind::kHidden) continue;
    if (begin < descriptor) result = close_all(begin, descriptor - 1);
    begin = descriptor + 1;
  }
  return begin <= last ? close_all(begin, last) : result;
}

std::string SysfsFolder(bool whole) {
  Once& state = Get();
  if (IsForeign(state)) return "";
  const os::NoCancellation no_cancellation;
  const base::MutexLock lock(state.mutex);
  ReadOptions(state);
  if (state.options == nullptr) return "";
  if (state.tree != nullptr && (!state.tree->is_there() || (whole && !state.tree->Complete().ok()))) {
    delete std::exchange(state.tree, nullptr);
  }
  if (state.tree == nullptr) {
    absl::StatusOr<std::unique_ptr<SysfsTree>> tree = SysfsTree::Open(FolderForFiles(), state.devices);
    if (tree.ok()) {
      state.tree = tree->release();
    } else if (!std::exchange(state.said_no_tree, true)) {
      Say(absl::StrCat("no place for the files of /sys: ", tree.status().message(), "; set TMPDIR"), true);
    }
  }
  return state.tree != nullptr ? state.tree->path() : "";
}

void Say(const std::string& line, bool always) {
  if (!always && (once == nullptr || !once->log)) return;
  const std::string whole = absl::StrCat("tokamak-verbs: ", line, "\n");
  syscall(SYS_write, STDERR_FILENO, whole.data(), whole.size());
}

}  // namespace tokamak::verbs::kernel::preload
