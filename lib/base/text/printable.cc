#include "lib/base/text/printable.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace tokamak::base {
namespace {

// Returns the length of the UTF-8 character that `text` begins with, or 0.
size_t CharacterLength(absl::string_view text) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<uint8_t>(text[i]) : uint8_t{0}; };
  const auto continues = [&](size_t from, size_t to) {
    for (size_t i = from; i <= to; ++i) {
      if ((byte(i) & 0xc0) != 0x80) return false;
    }
    return true;
  };
  const uint8_t first = byte(0);
  if (text.empty()) return 0;
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return continues(1, 1) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef) {
    const bool overlong = first == 0xe0 && byte(1) < 0xa0;
    const bool surrogate = first == 0xed && byte(1) > 0x9f;
    return continues(1, 2) && !overlong && !surrogate ? 3 : 0;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    const bool overlong = first == 0xf0 && byte(1) < 0x90;
    const bool beyond = first == 0xf4 && byte(1) > 0x8f;
    return continues(1, 3) && !overlong && !beyond ? 4 : 0;
  }
  return 0;
}

// True for ASCII's, and Latin 1's, which some terminals obey.
bool IsControl(absl::string_view character) {
  const uint8_t first = static_cast<uint8_t>(character[0]);
  if (character.size() == 1) return first < 0x20 || first == 0x7f;
  return first == 0xc2 && static_cast<uint8_t>(character[1]) < 0xa0;
}

// True for UTF-8, without control characters unless allowed.
bool IsClean(absl::string_view text, bool controls) {
  while (!text.empty()) {
    const size_t length = CharacterLength(text);
    if (length == 0 || (!controls && IsControl(text.substr(0, length)))) return false;
    text.remove_prefix(length);
  }
  return true;
}

// Writes \xHH for bytes that are not UTF-8, and for control characters if asked.
std::string Escape(absl::string_view text, bool controls) {
  std::string escaped;
  while (!text.empty()) {
    const size_t length = CharacterLength(text);
    const absl::string_view next = text.substr(0, std::max<size_t>(length, 1));
    if (length == 0 || (controls && IsControl(next))) {
      for (const char c : next) absl::StrAppendFormat(&escaped, "\\x%02x", static_cast<uint8_t>(c));
    } else {
      absl::StrAppend(&escaped, next);
    }
    text.remove_prefix(next.size());
  }
  return escaped;
}

}  // namespace

bool IsUtf8(absl::string_view text) { return IsClean(text, /*controls=*/true); }

bool IsPrintable(absl::string_view text) { return IsClean(text, /*controls=*/false); }

std::string ToUtf8(absl::string_view text) { return Escape(text, /*controls=*/false); }

std::string Printable(absl::string_view text) { return Escape(text, /*controls=*/true); }

}  // namespace tokamak::base
