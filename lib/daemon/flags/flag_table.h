// FlagTable holds flags whose values stay texts for CLI11, as in help and --print-config, until the
// command line has been parsed.
//
// Read converts them in the order of Add; conditions among several are the owner's.
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace tokamak::daemon {

class FlagTable final {
 public:
  explicit FlagTable(CLI::App& app) : app_(app) {}
  FlagTable(const FlagTable&) = delete;
  FlagTable& operator=(const FlagTable&) = delete;

  // `text` is the default, `parse` converts it.
  template <typename Value, typename Parse>
  CLI::Option* Add(const char* name, const std::string& text, Value& into, Parse parse, const char* about) {
    Row& row = NewRow(name, text);
    row.read = [&row, &into, parse]() -> absl::Status {
      auto parsed = parse(row.text);
      if (!parsed.ok()) return parsed.status();
      into = *std::move(parsed);
      return absl::OkStatus();
    };
    return app_.add_option(name, row.text, about)->capture_default_str();
  }

  // Without a default: missing or empty leaves `into` unchanged.
  template <typename Value, typename Parse>
  CLI::Option* AddOptional(const char* name, Value& into, Parse parse, const char* about) {
    CLI::Option* const option = Add(name, "", into, parse, about);
    Row& row = rows_.back();
    row.read = [&row, read = std::move(row.read)] { return row.text.empty() ? absl::OkStatus() : read(); };
    return option;
  }

  // One of a few words; the first is the default.
  template <typename Value>
  CLI::Option* AddChoice(const char* name, const std::vector<std::pair<std::string, Value>>& choices, Value& into,
                         const char* about) {
    Row& row = NewRow(name, choices.front().first);
    row.read = [&row, &into, choices] {
      for (const auto& [word, value] : choices) {
        if (word == row.text) into = value;
      }
      return absl::OkStatus();
    };
    std::vector<std::string> words;
    for (const auto& [word, value] : choices) words.push_back(word);
    return app_.add_option(name, row.text, about)->check(CLI::IsMember(words))->capture_default_str();
  }

  // Returns the first error, with the flag's name before it.
  absl::Status Read() const {
    for (const Row& row : rows_) {
      if (const absl::Status status = row.read(); !status.ok()) {
        return absl::InvalidArgumentError(absl::StrCat(row.name, ": ", status.message()));
      }
    }
    return absl::OkStatus();
  }

 private:
  struct Row {
    std::string name;
    std::string text;
    std::function<absl::Status()> read;
  };

  Row& NewRow(const char* name, const std::string& text) { return rows_.emplace_back(Row{name, text, nullptr}); }

  CLI::App& app_;
  std::deque<Row> rows_;  // stable addresses for CLI11
};

// Wraps `parse`: outside of `least` to `most` the error is `range`.
template <typename Parse, typename Value>
auto Within(Parse parse, Value least, Value most, const std::string& range) {
  return [=](const std::string& text) {
    absl::StatusOr<Value> value = parse(text);
    if (value.ok() && (*value < least || *value > most)) value = absl::InvalidArgumentError(range);
    return value;
  };
}

}  // namespace tokamak::daemon
