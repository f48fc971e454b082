// The files of the cluster's page, part of the program. embed.py writes files.cc.
#pragma once

#include "absl/strings/string_view.h"

namespace tokamak::daemon::page {

struct File {
  absl::string_view path;  // "/page.js"; index.html: "/"
  const char* type;
  absl::string_view text;
};

// May be nullptr.
const File* Find(absl::string_view path);

}  // namespace tokamak::daemon::page
