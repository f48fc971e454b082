// Keys are what a person types while a command draws on the terminal: each is read as it is typed,
// and shown nowhere.
//
// Between Open and Close the terminal is in another mode; whoever opens makes sure that it is closed
// when the program is interrupted (undo.h).
// Thread rule: one thread; Close from any.
#pragma once

#include <termios.h>

#include <chrono>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace tokamak::cli {

enum class Key : uint8_t { kNone, kQuit, kUp, kDown, kPageUp, kPageDown, kFirst, kLast };

class Keys final {
 public:
  // On a descriptor of a terminal.
  explicit Keys(int terminal) : terminal_(terminal) {}
  Keys(const Keys&) = delete;
  Keys& operator=(const Keys&) = delete;

  absl::Status Open();
  absl::Status Close();

  // The next key, waited for until then; kNone: none that is known, or the terminal is gone.
  Key Next(std::chrono::steady_clock::time_point until);

  // The key at the front of what a terminal has sent, and takes it off; kNone: none that is known.
  static Key Take(std::string& typed);

 private:
  const int terminal_;
  termios before_{};
  std::string typed_;  // and not taken yet
};

}  // namespace tokamak::cli
