#include "lib/cli/common/keys.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace tokamak::cli {

namespace {

struct Sequence {
  absl::string_view sent;
  Key key;
};

// Longer ones first.
constexpr Sequence kSequences[] = {
    {"\033[5~", Key::kPageUp}, {"\033[6~", Key::kPageDown}, {"\033[1~", Key::kFirst}, {"\033[4~", Key::kLast},
    {"\033[A", Key::kUp},      {"\033[B", Key::kDown},      {"\033[H", Key::kFirst},  {"\033[F", Key::kLast},
    {"\033OA", Key::kUp},      {"\033OB", Key::kDown},      {"\033OH", Key::kFirst},  {"\033OF", Key::kLast},
    {"q", Key::kQuit},         {"Q", Key::kQuit},           {"k", Key::kUp},          {"j", Key::kDown},
    {"b", Key::kPageUp},       {" ", Key::kPageDown},       {"g", Key::kFirst},       {"G", Key::kLast},
};

}  // namespace

absl::Status Keys::Open() {
  if (tcgetattr(terminal_, &before_) != 0) {
    return absl::InternalError(absl::StrCat("cannot read the terminal's mode: ", std::strerror(errno)));
  }
  termios mode = before_;
  mode.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  mode.c_cc[VMIN] = 0;
  mode.c_cc[VTIME] = 0;
  if (tcsetattr(terminal_, TCSANOW, &mode) == 0) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("cannot set the terminal's mode: ", std::strerror(errno)));
}

absl::Status Keys::Close() {
  if (tcsetattr(terminal_, TCSANOW, &before_) == 0) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("cannot set the terminal's mode back (reset does): ", std::strerror(errno)));
}

Key Keys::Next(std::chrono::steady_clock::time_point until) {
  if (typed_.empty()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    pollfd readable = {terminal_, POLLIN, 0};
    if (poll(&readable, 1, static_cast<int>(std::max<int64_t>(left.count(), 0))) <= 0) return Key::kNone;
    char some[64];
    const ssize_t size = read(terminal_, some, sizeof some);
    if (size <= 0) std::this_thread::sleep_until(until);  // terminal gone: no busy loop
    typed_.assign(some, static_cast<size_t>(std::max<ssize_t>(size, 0)));
  }
  return typed_.empty() ? Key::kNone : Take(typed_);
}

Key Keys::Take(std::string& typed) {
  for (const Sequence& sequence : kSequences) {
    if (!absl::StartsWith(typed, sequence.sent)) continue;
    typed.erase(0, sequence.sent.size());
    return sequence.key;
  }
  // An unknown sequence goes as a whole.
  typed.erase(0, typed[0] == '\033' ? typed.size() : 1);
  return Key::kNone;
}

}  // namespace tokamak::cli
