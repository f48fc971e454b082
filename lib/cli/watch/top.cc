#include "lib/cli/watch/top.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "lib/base/time.h"
#include "lib/cli/common/as_absl.h"
#include "lib/cli/common/keys.h"
#include "lib/cli/common/output.h"
#include "lib/cli/watch/top_rates.h"
#include "lib/cli/watch/top_view.h"

namespace tokamak::cli {

namespace {

using Clock = std::chrono::steady_clock;

struct TopFlags {
  uint64_t count = 0;  // 0: unbounded
  base::Duration interval = base::Seconds(1);
};

void AddTop(CLI::App& top, TopFlags& flags) {
  top.add_option("-n,--count", flags.count, "end after this many views")->check(AtLeastOne());
  AddDuration(top, "--interval", flags.interval, "from one view to the next");
}

// Spares the last line, for the cursor.
TopScreen ScreenNow() {
  TopScreen screen;
  winsize window{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) != 0 || window.ws_col == 0 || window.ws_row < 2) return screen;
  screen.columns = window.ws_col;
  screen.lines = window.ws_row - 1;
  return screen;
}

std::string Redraw(const std::string& text) {
  std::string drawn = "\033[H";
  for (const absl::string_view line : absl::StrSplit(absl::StripSuffix(text, "\n"), '\n'))
    absl::StrAppend(&drawn, line, "\033[K\n");
  return absl::StrCat(drawn, "\033[J");
}

size_t Scrolled(Key key, size_t first, size_t shown, size_t nodes) {
  const size_t last = nodes - shown;
  switch (key) {
    case Key::kUp:
      return first - std::min<size_t>(first, 1);
    case Key::kDown:
      return std::min(first + 1, last);
    case Key::kPageUp:
      return first - std::min(first, shown);
    case Key::kPageDown:
      return std::min(first + shown, last);
    case Key::kFirst:
      return 0;
    case Key::kLast:
      return last;
    case Key::kNone:
    case Key::kQuit:
      break;
  }
  return std::min(first, last);
}

bool IsTerminal() { return isatty(STDOUT_FILENO) == 1 && isatty(STDIN_FILENO) == 1; }

absl::Status PrintViews(const CommandContext& context, const TopFlags& flags) {
  const bool redraws = !context.flags.json && isatty(STDOUT_FILENO) == 1 && flags.count != 1;
  TopRates rates;
  for (uint64_t view = 0; flags.count == 0 || view < flags.count; ++view) {
    if (view > 0) std::this_thread::sleep_for(AsTimeout(flags.interval).duration());
    const auto now = AsAbsl(context.client.Cluster());
    if (!now.ok()) return now.status();
    rates.Add(*now);
    if (context.flags.json) {
      std::cout << ToText(TopToJson(*now, rates)) << "\n";
    } else {
      const std::string text = FormatTop(*now, rates, ScreenNow());
      std::cout << (redraws ? Redraw(text) : absl::StrCat(view > 0 ? "\n" : "", text));
    }
    if (!std::cout.flush().good()) return absl::OkStatus();  // reported at the end
  }
  return absl::OkStatus();
}

absl::Status WatchViews(const CommandContext& context, const TopFlags& flags, Keys& keys) {
  TopRates rates;
  size_t first = 0;
  for (uint64_t view = 0; flags.count == 0 || view < flags.count; ++view) {
    const auto now = AsAbsl(context.client.Cluster());
    if (!now.ok()) return now.status();
    rates.Add(*now);
    const Clock::time_point next = Clock::now() + AsTimeout(flags.interval).duration();
    Key key = Key::kNone;
    do {
      TopScreen screen = ScreenNow();
      const size_t nodes = now->nodes.size();
      screen.first = first = Scrolled(key, first, NodesOnScreen(screen, nodes), nodes);
      std::cout << Redraw(FormatTop(*now, rates, screen)) << "q ends" << std::flush;
      if (!std::cout.good()) return absl::OkStatus();  // reported at the end
      if (view + 1 == flags.count) break;
      key = keys.Next(next);
    } while (key != Key::kQuit && Clock::now() < next);
    if (key == Key::kQuit) break;
  }
  std::cout << "\r\033[K" << std::flush;
  return absl::OkStatus();
}

absl::Status Top(const CommandContext& context, const TopFlags& flags) {
  if (context.flags.json || flags.count == 1 || !IsTerminal()) return PrintViews(context, flags);
  Keys keys(STDIN_FILENO);
  const absl::Status opened = context.undo.Do([&] { return keys.Open(); }, [&] { return keys.Close(); });
  if (!opened.ok()) return opened;
  const absl::Status watched = WatchViews(context, flags, keys);
  const absl::Status closed = context.undo.TakeBack();
  return watched.ok() ? closed : watched;
}

}  // namespace

Command TopCommand() {
  Command command = CommandWithDaemon(
      {"top", "watch the nodes of the cluster: memory, objects, transfers, state", "tok top -n 1"}, AddTop, Top);
  command.is_endless = true;
  return command;
}

}  // namespace tokamak::cli
