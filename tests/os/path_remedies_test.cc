#include "lib/os/path_remedies.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <map>
#include <string>

namespace tokamak::os {
namespace {

// Ids that no machine has a name for, so that remedies show them as numbers.
constexpr uid_t kOwner = 2000000001;
constexpr gid_t kGroup = 2000000002;

struct Entry {
  mode_t mode;
  uid_t user;
  gid_t group;
};

class PathRemediesTest : public testing::Test {
 protected:
  PathRemediesTest() {
    paths_["/"] = paths_["/run"] = {0755, 0, 0};
    paths_["/run/tokamak"] = {0755, kOwner, kGroup};
    paths_["/run/tokamak/tokd.sock"] = {0660, kOwner, kGroup};
  }

  std::string Connect(const PathUser& who, int error = EACCES, const std::string& path = "/run/tokamak/tokd.sock") {
    return ConnectRemedy(path, error, who, look_);
  }
  std::string Listen(const PathUser& who, int error, const std::string& path = "/run/tokamak/tokd.sock") {
    return ListenRemedy(path, error, who, look_);
  }

  std::map<std::string, Entry> paths_;
  const LookAtPath look_ = [this](const std::string& path, struct stat* file) {
    const auto entry = paths_.find(path.size() > 1 && path.back() == '/' ? path.substr(0, path.size() - 1) : path);
    if (entry == paths_.end()) return false;
    *file = {};
    file->st_mode = entry->second.mode;
    file->st_uid = entry->second.user;
    file->st_gid = entry->second.group;
    return true;
  };
  const PathUser alice_ = {1000, {1000}, "alice"};
  const PathUser member_ = {1001, {1001, kGroup}, "member"};
  const PathUser owner_ = {kOwner, {kGroup}, "owner"};
  const PathUser root_ = {0, {0}, "root"};
};

TEST_F(PathRemediesTest, ASocketOfAGroupIsOpenToItsMembers) {
  EXPECT_EQ(Connect(alice_),
            ": /run/tokamak/tokd.sock is for members of the group 2000000002; run 'adduser alice 2000000002' as root, "
            "then log in again");
}

TEST_F(PathRemediesTest, AFolderOfAGroupIsOpenToItsMembers) {
  paths_["/run/tokamak"].mode = 0750;
  EXPECT_EQ(Connect(alice_),
            ": /run/tokamak is for members of the group 2000000002; run 'adduser alice 2000000002' as root, then log "
            "in again");
}

TEST_F(PathRemediesTest, ASocketOfAUserAloneIsWidenedByItsDaemon) {
  paths_["/run/tokamak/tokd.sock"].mode = 0600;
  EXPECT_EQ(Connect(member_),
            ": it is for user 2000000001 alone; run as 2000000001, or start its tokd with --socket-access group");
}

TEST_F(PathRemediesTest, AFolderOfAUserAloneIsNotEntered) {
  paths_["/run/tokamak"].mode = 0700;
  EXPECT_EQ(Connect(member_), ": /run/tokamak may be entered by user 2000000001 alone; choose a socket elsewhere");
}

TEST_F(PathRemediesTest, RootsGroupIsNotToBeJoined) {
  paths_["/run/tokamak/tokd.sock"] = {0660, 0, 0};
  EXPECT_EQ(Connect(alice_), ": it is for user root alone; run as root, or start its tokd with --socket-access group");
}

TEST_F(PathRemediesTest, AMissingSocketMeansThatADaemonIsToBeStarted) {
  EXPECT_EQ(Connect(alice_, ENOENT, "/run/none"),
            ": no daemon listens there; start one with tokd --socket /run/none, or name the socket of one that runs");
}

TEST_F(PathRemediesTest, AMissingFolderIsToBeMade) {
  EXPECT_EQ(Listen(root_, ENOENT, "/run/a/b/socket"),
            ": there is no folder /run/a/b; make it with 'mkdir -p /run/a/b', or choose another with --socket");
  EXPECT_EQ(
      Listen(alice_, ENOENT, "/run/a/b/socket"),
      ": there is no folder /run/a/b; run 'install -d -o alice /run/a/b' as root, or choose another with --socket");
}

TEST_F(PathRemediesTest, AFolderOfAnotherUserIsToBeGiven) {
  EXPECT_EQ(
      Listen(alice_, EACCES, "/run/socket"),
      ": user alice may not write in /run; choose a folder of alice with --socket ('install -d -o alice FOLDER' as "
      "root makes one)");
}

TEST_F(PathRemediesTest, RefusalsThatModesDoNotExplainGetNoRemedy) {
  for (const PathUser& who : {member_, owner_, root_}) EXPECT_EQ(Connect(who), "");
  for (const PathUser& who : {owner_, root_}) EXPECT_EQ(Listen(who, EACCES), "");
  EXPECT_EQ(Connect(alice_, ECONNREFUSED), "");
  EXPECT_EQ(Listen(alice_, EROFS), "");
}

TEST_F(PathRemediesTest, ThisProcessIsInItsOwnGroup) {
  const PathUser me = PathUser::OfThisProcess();
  EXPECT_EQ(me.user, geteuid());
  ASSERT_FALSE(me.groups.empty());
  EXPECT_EQ(me.groups.back(), getegid());
}

TEST_F(PathRemediesTest, RealPathsAreLookedAt) {
  EXPECT_EQ(ListenRemedy("/proc/self/none/socket", ENOENT, root_).find(": there is no folder /proc/self/none; "), 0);
  EXPECT_EQ(ListenRemedy("/proc/socket", ENOENT, root_), "");
}

}  // namespace
}  // namespace tokamak::os
