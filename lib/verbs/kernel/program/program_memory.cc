#include "lib/verbs/kernel/program/program_memory.h"

#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

namespace tokamak::verbs::kernel {
namespace {

// The kernel checks the pages for us. If a sandbox forbids that, we look ourselves.
bool Forbidden(ssize_t copied) { return copied < 0 && (errno == EPERM || errno == ENOSYS); }

uint64_t PageSize() {
  static const auto size = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return size;
}

// Returns true if all that is mapped there may be written.
bool MayBeWritten(uint64_t begin, uint64_t end) {
  std::ifstream mappings("/proc/self/maps");
  for (std::string line; std::getline(mappings, line);) {
    uint64_t from = 0;
    uint64_t to = 0;
    char rights[8] = "";
    if (std::sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64 " %7s", &from, &to, rights) != 3) continue;
    if (from < end && begin < to && rights[1] != 'w') return false;
  }
  return true;
}

// Kernels before 5.14 cannot be asked for pages; this only finds out that a page can be read.
int Probe(uint64_t begin, uint64_t end) {
  for (uint64_t page = begin; page < end; page += PageSize()) {
    uint8_t byte = 0;
    if (const int error = CopyFromProgram(page, &byte, sizeof(byte))) return error;
  }
  return 0;
}

}  // namespace

int CopyFromProgram(uint64_t from, void* to, size_t size) {
  if (size == 0) return 0;
  const iovec local{to, size};
  const iovec remote{reinterpret_cast<void*>(from), size};
  const ssize_t copied = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
  if (copied == static_cast<ssize_t>(size)) return 0;
  if (!Forbidden(copied)) return EFAULT;
  std::memcpy(to, reinterpret_cast<const void*>(from), size);
  return 0;
}

int CopyToProgram(uint64_t to, const void* from, size_t size) {
  if (size == 0) return 0;
  const iovec local{const_cast<void*>(from), size};
  const iovec remote{reinterpret_cast<void*>(to), size};
  const ssize_t copied = process_vm_writev(getpid(), &local, 1, &remote, 1, 0);
  if (copied == static_cast<ssize_t>(size)) return 0;
  if (!Forbidden(copied)) return EFAULT;
  std::memcpy(reinterpret_cast<void*>(to), from, size);
  return 0;
}

int Populate(uint64_t address, uint64_t length, bool writable) {
  const uint64_t begin = address & ~(PageSize() - 1);
  if (address > UINT64_MAX - PageSize() || length > UINT64_MAX - PageSize() - address) return EFAULT;
  const uint64_t end = (address + length + PageSize() - 1) & ~(PageSize() - 1);
  const int advice = writable ? MADV_POPULATE_WRITE : MADV_POPULATE_READ;
  while (madvise(reinterpret_cast<void*>(begin), end - begin, advice) != 0) {
    if (errno == EINTR || errno == EAGAIN) continue;
    // A kernel that can be asked gives this error for memory without the right.
    if (errno != EINVAL || (writable && !MayBeWritten(begin, end))) return EFAULT;
    return Probe(begin, end);
  }
  return 0;
}

}  // namespace tokamak::verbs::kernel
