// The files of the page of the cluster, which are part of the program. embed.py writes files.cc.
#pragma once

#include "absl/strings/string_view.h"

namespace tokamak::daemon::page {

struct File {
  absl::string_view path;  // "/page.js"; index.html is "/"
  const char* type;
  absl::string_view text;
};

// nullptr: there is none.
const File* Find(absl::string_view path);

}  // namespace tokamak::daemon::page
