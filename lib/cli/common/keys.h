// Keys are key presses while a command draws on the terminal: read as typed, not echoed.
//
// The opener closes on interruption too (undo.h): the terminal's mode is changed. Thread rule: one
// thread; Close from any.
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
  // `terminal`: a descriptor.
  explicit Keys(int terminal) : terminal_(terminal) {}
  Keys(const Keys&) = delete;
  Keys& operator=(const Keys&) = delete;

  absl::Status Open();
  absl::Status Close();

  // Waits until `until`. kNone: no key, an unknown one, or the terminal is gone.
  Key Next(std::chrono::steady_clock::time_point until);

  // Takes the first key typed. kNone: unknown.
  static Key Take(std::string& typed);

 private:
  const int terminal_;
  termios before_{};
  std::string typed_;
};

}  // namespace tokamak::cli
