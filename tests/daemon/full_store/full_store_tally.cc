#include "tests/daemon/full_store/full_store_tally.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <new>

#include "lib/base/check.h"
#include "lib/os/file_descriptor.h"

namespace tokamak::daemon {

void FullStoreTally::MakeFile(const std::string& path) {
  const os::FileDescriptor file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  PCHECK(file.get() >= 0) << path;
  PCHECK(ftruncate(file.get(), sizeof(FullStoreTally)) == 0) << path;  // zeros are its beginning
}

std::shared_ptr<FullStoreTally> FullStoreTally::Map(const std::string& path) {
  const os::FileDescriptor file(open(path.c_str(), O_RDWR | O_CLOEXEC));
  PCHECK(file.get() >= 0) << path;
  void* const memory = mmap(nullptr, sizeof(FullStoreTally), PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  PCHECK(memory != MAP_FAILED) << path;
  return {static_cast<FullStoreTally*>(memory), [](FullStoreTally* tally) { munmap(tally, sizeof(FullStoreTally)); }};
}

}  // namespace tokamak::daemon
