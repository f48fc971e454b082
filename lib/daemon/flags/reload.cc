#include "lib/daemon/flags/reload.h"

#include <algorithm>
#include <array>
#include <sstream>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "lib/base/log.h"
#include "lib/daemon/flags/config_file.h"

namespace tokamak::daemon {
namespace {

constexpr std::array<const char*, 4> kAtOnce = {"drain", "evacuate", "log-level", "quota"};

bool ChangesAtOnce(const std::string& key) { return std::find(kAtOnce.begin(), kAtOnce.end(), key) != kAtOnce.end(); }

}  // namespace

Reload::Reload(int argc, const char* const* argv, const ParsedFlags& started)
    : argc_(argc), argv_(argv), started_(started.config), last_(started.config) {}

std::optional<DaemonOptions> Reload::Read() {
  std::ostringstream errors;
  ParsedFlags read = ParseFlags(argc_, argv_, errors);
  if (!read.run) {
    LOG(ERROR) << "reload: nothing was changed: " << absl::StripAsciiWhitespace(errors.str());
    return std::nullopt;
  }
  std::vector<std::string> at_once = ChangedKeys(last_, read.config), later = ChangedKeys(started_, read.config);
  at_once.erase(std::remove_if(at_once.begin(), at_once.end(), [](const auto& key) { return !ChangesAtOnce(key); }),
                at_once.end());
  later.erase(std::remove_if(later.begin(), later.end(), ChangesAtOnce), later.end());
  LOG(INFO) << "reload: changed " << (at_once.empty() ? "nothing" : absl::StrJoin(at_once, ", "));
  if (!later.empty()) LOG(WARNING) << "reload: a restart is needed to change " << absl::StrJoin(later, ", ");
  last_ = read.config;
  return std::move(read.options);
}

}  // namespace tokamak::daemon
