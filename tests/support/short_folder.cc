#include "tests/support/short_folder.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "lib/base/check.h"
#include "lib/base/log.h"

namespace tokamak::testing_support {

namespace fs = std::filesystem;

ShortFolder::ShortFolder() {
  const char* const given = getenv("TEST_TMPDIR");
  where_ = absl::StrCat(given != nullptr ? given : "/tmp", "/tokamak-test.XXXXXX");
  CHECK(mkdtemp(where_.data()) != nullptr) << where_;
  folder_ = os::FileDescriptor(open(where_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  CHECK(folder_.valid()) << where_;
  path_ = absl::StrCat("/proc/", getpid(), "/fd/", folder_.get());
}

ShortFolder::~ShortFolder() {
  std::error_code error;
  fs::remove_all(where_, error);
  LOG_IF(ERROR, error) << "cannot remove " << where_ << ": " << error.message();
}

std::vector<std::string> ShortFolder::Files() const {
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(where_)) files.push_back(entry.path().filename());
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace tokamak::testing_support
