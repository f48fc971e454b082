#include "lib/daemon/flags/help_format.h"

#include <cstddef>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace tokamak::daemon {

namespace {

constexpr size_t kWidth = 80;
constexpr size_t kColumn = 30;  // CLI11's column of descriptions

// Returns where a line may be broken; npos: nowhere.
size_t BeginOfText(absl::string_view line) {
  if (line[0] != ' ') return 0;
  const bool is_entry = line.size() > kColumn && line[kColumn - 1] == ' ' && line[kColumn] != ' ';
  return is_entry ? kColumn : absl::string_view::npos;
}

std::string Wrap(absl::string_view line) {
  const size_t begin = line.size() > kWidth ? BeginOfText(line) : absl::string_view::npos;
  if (begin == absl::string_view::npos) return std::string(line);
  std::string wrapped(line.substr(0, begin));
  size_t column = begin;
  for (const absl::string_view word : absl::StrSplit(line.substr(begin), ' ')) {
    if (column > begin && column + 1 + word.size() > kWidth) {
      absl::StrAppend(&wrapped, "\n", std::string(begin, ' '));
      column = begin;
    } else if (column > begin) {
      absl::StrAppend(&wrapped, " ");
      ++column;
    }
    absl::StrAppend(&wrapped, word);
    column += word.size();
  }
  return wrapped;
}

}  // namespace

std::string WrapHelp(const std::string& text) {
  const std::vector<absl::string_view> all = absl::StrSplit(text, '\n');
  std::vector<std::string> lines;
  for (size_t i = 0; i < all.size(); ++i) {
    const bool is_last = i + 1 == all.size();
    if (all[i].empty() && !is_last && !lines.empty() && lines.back().empty()) continue;  // CLI11 has two before a group
    lines.push_back(Wrap(all[i]));
  }
  return absl::StrJoin(lines, "\n");
}

}  // namespace tokamak::daemon
