// Makes foreign texts, which may have any bytes, safe for a terminal, a log or JSON.
//
// Thread rule: any.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace tokamak::base {

bool IsUtf8(absl::string_view text);

// True for UTF-8 without control characters, which Printable leaves as it is.
bool IsPrintable(absl::string_view text);

// Writes \xHH for bytes that are not UTF-8.
std::string ToUtf8(absl::string_view text);

// Writes \xHH for control characters, too: the result is one line, without terminal commands.
std::string Printable(absl::string_view text);

}  // namespace tokamak::base
