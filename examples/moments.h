// Moments are the named points of an example at which its survival is tried: "sealed 40 3", "told
// 40".
//
// With --moments each is printed as it is reached; --kill-at and --stop-at name one at which the
// process sends itself SIGKILL or SIGSTOP, the first time that it gets there. So a failure is at
// the same point every time, and no test has to guess how long something takes.
#pragma once

#include <atomic>
#include <csignal>
#include <functional>
#include <iostream>
#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"

namespace tokamak::example {

// Called when a moment is reached, on whichever thread that is; it may block, and delays everything
// after the moment. Empty: no call.
using OnMoment = std::function<void(const std::string& moment)>;

struct MomentFlags {
  bool print = false;
  std::string kill_at;
  std::string stop_at;
};

inline void AddMomentFlags(CLI::App& app, MomentFlags& flags) {
  app.add_flag("--moments", flags.print, "print each moment as it is reached");
  app.add_option("--kill-at", flags.kill_at, "SIGKILL to itself at this moment, as --moments prints it");
  app.add_option("--stop-at", flags.stop_at, "SIGSTOP to itself at this moment, once");
}

inline OnMoment ToDoAtMoments(const MomentFlags& flags) {
  const auto stopped = std::make_shared<std::atomic<bool>>(false);
  return [flags, stopped](const std::string& moment) {
    if (flags.print) std::cout << absl::StrCat("at ", moment, "\n") << std::flush;
    if (moment == flags.kill_at) raise(SIGKILL);
    if (moment == flags.stop_at && !stopped->exchange(true)) raise(SIGSTOP);
  };
}

}  // namespace tokamak::example
