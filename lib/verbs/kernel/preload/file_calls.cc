// The functions of the C library for files, for those files that are ours.
//
// Each does for our paths as a kernel with RDMA devices would, and passes all others on. Programs
// built for an older C library call __xstat() and its kin.
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "lib/verbs/kernel/preload/opening.h"
#include "lib/verbs/kernel/preload/paths.h"
#include "lib/verbs/kernel/preload/program.h"
#include "lib/verbs/kernel/preload/provider_hint.h"
#include "lib/verbs/kernel/preload/real.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

using tokamak::verbs::kernel::preload::DeviceAt;
using tokamak::verbs::kernel::preload::DeviceFile;
using tokamak::verbs::kernel::preload::HintAtProvider;
using tokamak::verbs::kernel::preload::Kind;
using tokamak::verbs::kernel::preload::KindOf;
using tokamak::verbs::kernel::preload::OpenDeviceFile;
using tokamak::verbs::kernel::preload::SystemPath;

template <typename Stat>
int StatDevice(const DeviceFile& file, Stat* stat) {
  std::memset(static_cast<void*>(stat), 0, sizeof(*stat));
  stat->st_mode = S_IFCHR | 0666;
  stat->st_nlink = 1;
  stat->st_rdev = file.number();
  return 0;
}

// Our device's descriptor is one of a memfd, but programs check that it is the device.
template <typename Stat>
int StatDescriptor(int descriptor, int result, Stat* stat) {
  const Kind kind = KindOf(descriptor);
  if (result != 0 || (kind != Kind::kDevice && kind != Kind::kManager)) return result;
  DeviceFile file;
  file.kind = kind == Kind::kDevice ? DeviceFile::Kind::kUverbs : DeviceFile::Kind::kManager;
  file.index = tokamak::verbs::kernel::preload::DeviceIndexOf(descriptor);
  return StatDevice(file, stat);
}

ssize_t NoAttribute() {
  errno = ENODATA;
  return -1;
}

}  // namespace

EXPORT int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const auto mode = static_cast<mode_t>(va_arg(arguments, int));
  va_end(arguments);
  if (const DeviceFile file = DeviceAt(path)) return OpenDeviceFile(file, flags);
  return REAL(open)(SystemPath(path).get(), flags, mode);
}
EXPORT int open64(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const auto mode = static_cast<mode_t>(va_arg(arguments, int));
  va_end(arguments);
  if (const DeviceFile file = DeviceAt(path)) return OpenDeviceFile(file, flags);
  return REAL(open64)(SystemPath(path).get(), flags, mode);
}
EXPORT int openat(int folder, const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const auto mode = static_cast<mode_t>(va_arg(arguments, int));
  va_end(arguments);
  if (const DeviceFile file = DeviceAt(path)) return OpenDeviceFile(file, flags);
  return REAL(openat)(folder, SystemPath(path).get(), flags, mode);
}
EXPORT int openat64(int folder, const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const auto mode = static_cast<mode_t>(va_arg(arguments, int));
  va_end(arguments);
  if (const DeviceFile file = DeviceAt(path)) return OpenDeviceFile(file, flags);
  return REAL(openat64)(folder, SystemPath(path).get(), flags, mode);
}

// With _FORTIFY_SOURCE.
EXPORT int __open_2(const char* path, int flags);
EXPORT int __open64_2(const char* path, int flags);
EXPORT int __openat_2(int folder, const char* path, int flags);
EXPORT int __openat64_2(int folder, const char* path, int flags);
EXPORT int __open_2(const char* path, int flags) { return open(path, flags); }
EXPORT int __open64_2(const char* path, int flags) { return open64(path, flags); }
EXPORT int __openat_2(int folder, const char* path, int flags) { return openat(folder, path, flags); }
EXPORT int __openat64_2(int folder, const char* path, int flags) { return openat64(folder, path, flags); }

EXPORT FILE* fopen(const char* path, const char* mode) { return REAL(fopen)(SystemPath(path).get(), mode); }
EXPORT FILE* fopen64(const char* path, const char* mode) { return REAL(fopen64)(SystemPath(path).get(), mode); }
EXPORT DIR* opendir(const char* path) {
  HintAtProvider(path);
  return REAL(opendir)(SystemPath(path).get());
}
EXPORT int scandir(const char* path, dirent*** names, int (*selects)(const dirent*),
                   int (*compares)(const dirent**, const dirent**)) {
  return REAL(scandir)(SystemPath(path).get(), names, selects, compares);
}
EXPORT int scandir64(const char* path, dirent64*** names, int (*selects)(const dirent64*),
                     int (*compares)(const dirent64**, const dirent64**)) {
  return REAL(scandir64)(SystemPath(path).get(), names, selects, compares);
}

EXPORT int chdir(const char* path) noexcept { return REAL(chdir)(SystemPath(path).get()); }

// A device has no extended attributes. `ls -l` asks.
EXPORT ssize_t getxattr(const char* path, const char* name, void* value, size_t size) noexcept {
  return DeviceAt(path) ? NoAttribute() : REAL(getxattr)(SystemPath(path).get(), name, value, size);
}
EXPORT ssize_t lgetxattr(const char* path, const char* name, void* value, size_t size) noexcept {
  return DeviceAt(path) ? NoAttribute() : REAL(lgetxattr)(SystemPath(path).get(), name, value, size);
}
EXPORT ssize_t listxattr(const char* path, char* names, size_t size) noexcept {
  return DeviceAt(path) ? 0 : REAL(listxattr)(SystemPath(path).get(), names, size);
}
EXPORT ssize_t llistxattr(const char* path, char* names, size_t size) noexcept {
  return DeviceAt(path) ? 0 : REAL(llistxattr)(SystemPath(path).get(), names, size);
}

EXPORT int access(const char* path, int mode) noexcept {
  return DeviceAt(path) ? 0 : REAL(access)(SystemPath(path).get(), mode);
}
EXPORT int faccessat(int folder, const char* path, int mode, int flags) noexcept {
  return DeviceAt(path) ? 0 : REAL(faccessat)(folder, SystemPath(path).get(), mode, flags);
}
EXPORT int euidaccess(const char* path, int mode) noexcept {
  return DeviceAt(path) ? 0 : REAL(euidaccess)(SystemPath(path).get(), mode);
}
EXPORT ssize_t readlink(const char* path, char* buffer, size_t size) noexcept {
  return REAL(readlink)(SystemPath(path).get(), buffer, size);
}
EXPORT ssize_t readlinkat(int folder, const char* path, char* buffer, size_t size) noexcept {
  return REAL(readlinkat)(folder, SystemPath(path).get(), buffer, size);
}
EXPORT char* realpath(const char* path, char* resolved) noexcept {
  return REAL(realpath)(SystemPath(path).get(), resolved);
}
EXPORT char* __realpath_chk(const char* path, char* resolved, size_t size) noexcept;
EXPORT char* __realpath_chk(const char* path, char* resolved, size_t size) noexcept {
  return REAL(__realpath_chk)(SystemPath(path).get(), resolved, size);
}

EXPORT int stat(const char* path, struct stat* result) noexcept {
  if (const DeviceFile file = DeviceAt(path)) return StatDevice(file, result);
  return REAL(stat)(SystemPath(path).get(), result);
}
EXPORT int stat64(const char* path, struct stat64* result) noexcept {
  if (const DeviceFile file = DeviceAt(path)) return StatDevice(file, result);
  return REAL(stat64)(SystemPath(path).get(), result);
}
EXPORT int lstat(const char* path, struct stat* result) noexcept {
  if (const DeviceFile file = DeviceAt(path)) return StatDevice(file, result);
  return REAL(lstat)(SystemPath(path).get(), result);
}
EXPORT int lstat64(const char* path, struct stat64* result) noexcept {
  if (const DeviceFile file = DeviceAt(path)) return StatDevice(file, result);
  return REAL(lstat64)(SystemPath(path).get(), result);
}
EXPORT int fstatat(int folder, const char* path, struct stat* result, int flags) noexcept {
  if (const DeviceFile file = DeviceAt(path)) return StatDevice(file, result);
  return REAL(fstatat)(folder, SystemPath(path).get(), result, flags);
}
EXPORT int fstatat64(int folder, const char* path, struct stat64* result, int flags) noexcept {
  if (const DeviceFile file = DeviceAt(path)) return StatDevice(file, result);
  return REAL(fstatat64)(folder, SystemPath(path).get(), result, flags);
}
EXPORT int fstat(int descriptor, struct stat* result) noexcept {
  return StatDescriptor(descriptor, REAL(fstat)(descriptor, result), result);
}
EXPORT int fstat64(int descriptor, struct stat64* result) noexcept {
  return StatDescriptor(descriptor, REAL(fstat64)(descriptor, result), result);
}
EXPORT int statx(int folder, const char* path, int flags, unsigned mask, struct statx* result) noexcept {
  if (const DeviceFile file = DeviceAt(path)) {
    std::memset(result, 0, sizeof(*result));
    result->stx_mask = STATX_TYPE | STATX_MODE;
    result->stx_mode = S_IFCHR | 0666;
    result->stx_rdev_major = major(file.number());
    result->stx_rdev_minor = minor(file.number());
    return 0;
  }
  return REAL(statx)(folder, SystemPath(path).get(), flags, mask, result);
}

EXPORT int __xstat(int version, const char* path, struct stat* result) noexcept;
EXPORT int __xstat(int version, const char* path, struct stat* result) noexcept {
  if (const DeviceFile file = DeviceAt(path)) return StatDevice(file, result);
  return REAL(__xstat)(version, SystemPath(path).get(), result);
}
EXPORT int __xstat64(int version, const char* path, struct stat64* result) noexcept;
EXPORT int __xstat64(int version, const char* path, struct stat64* result) noexcept {
  if (const DeviceFile file = DeviceAt(path)) return StatDevice(file, result);
  return REAL(__xstat64)(version, SystemPath(path).get(), result);
}
EXPORT int __lxstat(int version, const char* path, struct stat* result) noexcept;
EXPORT int __lxstat(int version, const char* path, struct stat* result) noexcept {
  if (const DeviceFile file = DeviceAt(path)) return StatDevice(file, result);
  return REAL(__lxstat)(version, SystemPath(path).get(), result);
}
EXPORT int __lxstat64(int version, const char* path, struct stat64* result) noexcept;
EXPORT int __lxstat64(int version, const char* path, struct stat64* result) noexcept {
  if (const DeviceFile file = DeviceAt(path)) return StatDevice(file, result);
  return REAL(__lxstat64)(version, SystemPath(path).get(), result);
}
EXPORT int __fxstat(int version, int descriptor, struct stat* result) noexcept;
EXPORT int __fxstat(int version, int descriptor, struct stat* result) noexcept {
  return StatDescriptor(descriptor, REAL(__fxstat)(version, descriptor, result), result);
}
EXPORT int __fxstat64(int version, int descriptor, struct stat64* result) noexcept;
EXPORT int __fxstat64(int version, int descriptor, struct stat64* result) noexcept {
  return StatDescriptor(descriptor, REAL(__fxstat64)(version, descriptor, result), result);
}
EXPORT int __fxstatat(int version, int folder, const char* path, struct stat* result, int flags) noexcept;
EXPORT int __fxstatat(int version, int folder, const char* path, struct stat* result, int flags) noexcept {
  if (const DeviceFile file = DeviceAt(path)) return StatDevice(file, result);
  return REAL(__fxstatat)(version, folder, SystemPath(path).get(), result, flags);
}
EXPORT int __fxstatat64(int version, int folder, const char* path, struct stat64* result, int flags) noexcept;
EXPORT int __fxstatat64(int version, int folder, const char* path, struct stat64* result, int flags) noexcept {
  if (const DeviceFile file = DeviceAt(path)) return StatDevice(file, result);
  return REAL(__fxstatat64)(version, folder, SystemPath(path).get(), result, flags);
}
