#include "lib/os/path_remedies.h"

#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "absl/strings/str_cat.h"

namespace tokamak::os {
namespace {

using Names = std::array<char, 4096>;  // buffer for an entry of the lists of users or groups

std::string UserName(uid_t id) {
  passwd entry{};
  passwd* found = nullptr;
  Names names;
  const int error = getpwuid_r(id, &entry, names.data(), names.size(), &found);
  return error == 0 && found != nullptr ? std::string(found->pw_name) : absl::StrCat(id);
}

std::string GroupName(gid_t id) {
  group entry{};
  group* found = nullptr;
  Names names;
  const int error = getgrgid_r(id, &entry, names.data(), names.size(), &found);
  return error == 0 && found != nullptr ? std::string(found->gr_name) : absl::StrCat(id);
}

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// `bits` as for others: S_IXOTH to enter, S_IWOTH to write.
bool Allows(const struct stat& file, mode_t bits, const PathUser& who) {
  if (who.user == 0) return true;
  if (file.st_uid == who.user) return (file.st_mode >> 6 & bits) == bits;
  const bool member = std::find(who.groups.begin(), who.groups.end(), file.st_gid) != who.groups.end();
  return (file.st_mode >> (member ? 3 : 0) & bits) == bits;
}

// Returns the first folder on the way to `path` that may not be entered, or `path` itself if it
// refuses `bits`. Empty if all allow.
std::string WhoRefuses(const std::string& path, mode_t bits, const PathUser& who, const LookAtPath& look,
                       struct stat* file) {
  for (size_t end = path.find('/'); end != std::string::npos; end = path.find('/', end + 1)) {
    const std::string folder = path.substr(0, std::max<size_t>(1, end));
    if (!look(folder, file)) return "";
    if (!Allows(*file, S_IXOTH, who)) return folder;
  }
  return look(path, file) && !Allows(*file, bits, who) ? path : "";
}

bool MayWriteIn(const std::string& folder, const PathUser& who, const LookAtPath& look) {
  struct stat file;
  // With a slash at its end the folder is asked for entry as well.
  return WhoRefuses(absl::StrCat(folder, "/"), S_IWOTH, who, look, &file).empty();
}

std::string NearestThereIs(std::string folder, const LookAtPath& look) {
  struct stat file;
  while (folder != "/" && folder != "." && !look(folder, &file)) folder = FolderOf(folder);
  return folder;
}

}  // namespace

PathUser PathUser::OfThisProcess() {
  PathUser who;
  who.user = geteuid();
  who.name = UserName(who.user);
  const int size = std::max(0, getgroups(0, nullptr));
  who.groups.resize(static_cast<size_t>(size));
  who.groups.resize(static_cast<size_t>(std::max(0, getgroups(size, who.groups.data()))));
  who.groups.push_back(getegid());
  return who;
}

bool LookAtRealPath(const std::string& path, struct stat* file) { return stat(path.c_str(), file) == 0; }

std::string ConnectRemedy(const std::string& path, int error, const PathUser& who, const LookAtPath& look) {
  if (error == ENOENT) {
    return absl::StrCat(": no daemon listens there; start one with tokd --socket ", path,
                        ", or name the socket of one that runs");
  }
  if (error != EACCES) return "";
  struct stat file;
  const std::string refuses = WhoRefuses(path, S_IWOTH, who, look, &file);
  if (refuses.empty()) return "";
  const mode_t bits = refuses == path ? S_IWGRP : S_IXGRP;
  // Root's group is not for joining.
  if ((file.st_mode & bits) != 0 && file.st_gid != 0) {
    const std::string group = GroupName(file.st_gid);
    return absl::StrCat(": ", refuses, " is for members of the group ", group, "; run 'adduser ", who.name, " ", group,
                        "' as root, then log in again");
  }
  const std::string owner = UserName(file.st_uid);
  if (refuses != path) {
    return absl::StrCat(": ", refuses, " may be entered by user ", owner, " alone; choose a socket elsewhere");
  }
  return absl::StrCat(": it is for user ", owner, " alone; run as ", owner,
                      ", or start its tokd with --socket-access group");
}

std::string ListenRemedy(const std::string& path, int error, const PathUser& who, const LookAtPath& look) {
  const std::string folder = FolderOf(path);
  struct stat file;
  const bool missing = error == ENOENT && !look(folder, &file);
  if (missing && MayWriteIn(NearestThereIs(folder, look), who, look)) {
    return absl::StrCat(": there is no folder ", folder, "; make it with 'mkdir -p ", folder,
                        "', or choose another with --socket");
  }
  if (missing) {
    return absl::StrCat(": there is no folder ", folder, "; run 'install -d -o ", who.name, " ", folder,
                        "' as root, or choose another with --socket");
  }
  if (error != EACCES || MayWriteIn(folder, who, look)) return "";
  return absl::StrCat(": user ", who.name, " may not write in ", folder, "; choose a folder of ", who.name,
                      " with --socket ('install -d -o ", who.name, " FOLDER' as root makes one)");
}

}  // namespace tokamak::os
