// Keys are a person's key presses while a command draws on the terminal: read as they are typed,
// and not echoed.
//
// Between Open and Close the terminal is in another mode; the opener makes sure that it is closed
// when the program is interrupted (undo.h). Thread rule: one thread; Close from any.
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
  // `terminal`: a descriptor of one.
  explicit Keys(int terminal) : terminal_(terminal) {}
  Keys(const Keys&) = delete;
  Keys& operator=(const Keys&) = delete;

  absl::Status Open();
  absl::Status Close();

  // Waits for the next key until `until`. kNone: none, an unknown one, or the terminal is gone.
  Key Next(std::chrono::steady_clock::time_point until);

  // Takes the key at the front of a terminal's input. kNone: an unknown one.
  static Key Take(std::string& typed);

 private:
  const int terminal_;
  termios before_{};
  std::string typed_;  // not taken yet
};

}  // namespace tokamak::cli
