#include "lib/base/units.h"

#include <array>
#include <cmath>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"

namespace tokamak::base {

namespace {

struct Quantity {
  double number;
  std::string unit;  // in lower case
};

absl::StatusOr<Quantity> Split(absl::string_view text, absl::string_view example) {
  text = absl::StripAsciiWhitespace(text);
  const size_t digits = text.find_first_not_of("0123456789.");
  const absl::string_view number = text.substr(0, digits);
  const absl::string_view unit =
      digits == absl::string_view::npos ? "" : absl::StripAsciiWhitespace(text.substr(digits));
  Quantity quantity;
  quantity.unit = absl::AsciiStrToLower(unit);
  if (!absl::SimpleAtod(number, &quantity.number)) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot read '", text, "': write a number and a unit, such as ", example));
  }
  return quantity;
}

}  // namespace

absl::StatusOr<uint64_t> ParseSize(absl::string_view text) {
  const auto quantity = Split(text, "512MiB");
  if (!quantity.ok()) return quantity.status();
  constexpr absl::string_view kLetters = "kmgt";
  const std::string& unit = quantity->unit;
  double factor = 1;
  if (!unit.empty() && unit != "b") {
    const size_t power = kLetters.find(unit[0]);
    const absl::string_view tail = absl::string_view(unit).substr(1);
    if (power == absl::string_view::npos || !(tail.empty() || tail == "b" || tail == "ib" || tail == "i")) {
      return absl::InvalidArgumentError(absl::StrCat("unknown unit in '", text, "': use B, KiB, MiB, GiB or TiB"));
    }
    factor = std::pow(tail == "b" ? 1000.0 : 1024.0, static_cast<double>(power + 1));
  }
  const double bytes = quantity->number * factor;
  if (bytes >= 9.2e18) return absl::InvalidArgumentError(absl::StrCat("'", text, "' is more than any machine has"));
  return static_cast<uint64_t>(std::llround(bytes));
}

std::string FormatSize(uint64_t bytes) {
  constexpr std::array<const char*, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  const bool whole = value == std::floor(value) || value >= 100;
  return whole ? absl::StrFormat("%.0f %s", value, kUnits[unit]) : absl::StrFormat("%.1f %s", value, kUnits[unit]);
}

absl::StatusOr<Duration> ParseDuration(absl::string_view text) {
  const auto quantity = Split(text, "250ms");
  if (!quantity.ok()) return quantity.status();
  constexpr std::array<std::pair<absl::string_view, double>, 6> kUnits = {
      {{"ns", 1e3}, {"us", 1e6}, {"ms", 1e9}, {"s", 1e12}, {"", 1e12}, {"min", 60e12}}};
  for (const auto& [unit, picoseconds] : kUnits) {
    if (quantity->unit != unit) continue;
    const double total = quantity->number * picoseconds;
    if (total >= 9.2e18) return absl::InvalidArgumentError(absl::StrCat("'", text, "' is longer than 106 days"));
    return Duration::Picoseconds(std::llround(total));
  }
  return absl::InvalidArgumentError(absl::StrCat("unknown unit in '", text, "': use ns, us, ms, s or min"));
}

std::string FormatDuration(Duration duration) {
  const double picoseconds = static_cast<double>(duration.picoseconds());
  if (picoseconds < 1e6) return absl::StrFormat("%.0f ns", picoseconds / 1e3);
  if (picoseconds < 1e9) return absl::StrFormat("%.1f us", picoseconds / 1e6);
  if (picoseconds < 1e12) return absl::StrFormat("%.2f ms", picoseconds / 1e9);
  return absl::StrFormat("%.2f s", picoseconds / 1e12);
}

absl::StatusOr<uint64_t> ParseRate(absl::string_view text) {
  const absl::string_view stripped = absl::StripAsciiWhitespace(text);
  const size_t digits = stripped.find_first_not_of("0123456789.");
  double number = 0;
  if (digits == absl::string_view::npos || !absl::SimpleAtod(stripped.substr(0, digits), &number)) {
    return absl::InvalidArgumentError(absl::StrCat("'", text, "' is no rate: write one such as 100Gb/s or 200Mb/s"));
  }
  constexpr std::array<std::pair<absl::string_view, double>, 3> kUnits = {
      {{"Mb/s", 1e6}, {"Gb/s", 1e9}, {"Tb/s", 1e12}}};
  const absl::string_view unit = absl::StripAsciiWhitespace(stripped.substr(digits));
  for (const auto& [name, factor] : kUnits) {
    if (unit != name) continue;
    const double bits = number * factor;
    if (bits >= 9.2e18) return absl::InvalidArgumentError(absl::StrCat("'", text, "' is more than any wire has"));
    return static_cast<uint64_t>(std::llround(bits));
  }
  return absl::InvalidArgumentError(absl::StrCat("unknown unit in '", text, "': use Mb/s, Gb/s or Tb/s"));
}

absl::StatusOr<double> ParseShare(absl::string_view text) {
  absl::string_view number = absl::StripAsciiWhitespace(text);
  const double whole = absl::ConsumeSuffix(&number, "%") ? 100 : 1;
  double value = 0;
  const bool is_number = number.find_first_not_of("0123456789.") == absl::string_view::npos;
  if (!is_number || !absl::SimpleAtod(number, &value) || value > whole) {
    return absl::InvalidArgumentError(absl::StrCat("'", text, "' is no share: write one such as 1% or 0.01"));
  }
  return value / whole;
}

}  // namespace tokamak::base
