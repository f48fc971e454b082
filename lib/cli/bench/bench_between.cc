#include "lib/cli/bench/bench_between.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <memory>
#include <random>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "lib/base/text/printable.h"
#include "lib/base/units.h"
#include "lib/cli/bench/timed_calls.h"
#include "lib/cli/common/as_absl.h"
#include "lib/cli/common/output.h"
#include "lib/cli/tune/asked_holder.h"
#include "lib/cli/tune/client_holder.h"
#include "lib/cli/tune/link.h"
#include "nlohmann/json.hpp"

namespace tokamak::cli {

namespace {

using nlohmann::json;
using tune::kMemoryPart;
using Instant = std::chrono::steady_clock::time_point;

constexpr std::chrono::seconds kMoveTimeout(30);

// On the other node.
constexpr uint64_t kMadeAtOnce = 64;

// With the object there already.
constexpr int kEmptyPushes = 20;

// Movers of less go unnamed: others use the node, too.
constexpr uint64_t kNamedPart = 10;

// ---- movers, as the node counts them

constexpr std::array<const char*, 4> kMovers = {"brought", "eager", "read", "write"};
using MovedBytes = std::array<uint64_t, kMovers.size()>;

struct Way {
  const char* verb;     // of the engines' numbers
  const char* brought;  // number of objects that came with an answer
};
constexpr Way kOut = {"served", "brought_to_peers_total"};
constexpr Way kIn = {"pulled", "pull_brought_total"};

absl::StatusOr<MovedBytes> LookAtMoved(Client& client, const Way& way, uint64_t bytes) {
  const auto stats = AsAbsl(client.NodeStats());
  if (!stats.ok()) return stats.status();
  MovedBytes moved{};
  for (const NodeNumber& number : stats->numbers) {
    if (number.name == way.brought) moved[0] = number.value * bytes;
    for (size_t i = 1; i < kMovers.size(); ++i) {
      if (absl::EndsWith(number.name, absl::StrCat("_", way.verb, "_", kMovers[i], "_bytes_total"))) {
        moved[i] += number.value;
      }
    }
  }
  return moved;
}

std::vector<std::string> NameMovers(const MovedBytes& before, const MovedBytes& after) {
  MovedBytes moved{};
  uint64_t sum = 0;
  for (size_t i = 0; i < moved.size(); ++i) sum += moved[i] = after[i] - std::min(before[i], after[i]);
  std::vector<std::string> names;
  for (size_t i = 0; i < moved.size(); ++i) {
    if (moved[i] > 0 && moved[i] >= sum / kNamedPart) names.emplace_back(kMovers[i]);
  }
  return names;
}

struct SizeMoved {
  TimedCalls calls;
  std::vector<std::string> by;  // of kMovers
};

struct Direction {
  std::string from, to;
  const char* call;
  std::vector<SizeMoved> sizes;
  absl::Status not_measured;
};

json DirectionToJson(const Direction& direction) {
  json all = {{"from", direction.from}, {"to", direction.to}, {"call", direction.call}};
  if (!direction.not_measured.ok()) {
    all["not_measured"] = std::string(direction.not_measured.message());
    return all;
  }
  all["sizes"] = json::array();
  for (const SizeMoved& moved : direction.sizes) {
    json size = moved.calls.ToJson();
    size["bytes"] = moved.calls.size;
    size["objects"] = moved.calls.latencies.count();
    size["by"] = moved.by;
    all["sizes"].push_back(std::move(size));
  }
  return all;
}

void PrintDirection(const Direction& direction, const std::string& heading) {
  std::cout << base::Printable(direction.from) << " -> " << base::Printable(direction.to) << ": ";
  if (!direction.not_measured.ok()) {
    std::cout << "not measured: " << base::Printable(std::string(direction.not_measured.message())) << std::endl;
    return;
  }
  std::vector<std::vector<std::string>> rows = {{"SIZE", "OBJECTS", "BY", "p50", "p90", "p99", "BYTES/S"}};
  for (const SizeMoved& moved : direction.sizes) {
    const TimedCalls& calls = moved.calls;
    rows.push_back({base::FormatSize(calls.size), absl::StrCat(calls.latencies.count()), absl::StrJoin(moved.by, ","),
                    calls.Time(0.5), calls.Time(0.9), calls.Time(0.99), calls.Rate()});
  }
  std::cout << heading << "\n" << FormatTable(rows, {0, 1, 3, 4, 5, 6}) << std::flush;
}

// ---- measuring

class BetweenRunner final {
 public:
  BetweenRunner(Client& here, std::string there, Undo& undo, const BenchFlags& flags)
      : here_(here),
        there_(std::move(there)),
        undo_(undo),
        flags_(flags),
        share_(AsTimeout(flags.budget).duration() / (2 * flags.sizes.size())) {
    std::random_device seed;
    session_ = uint64_t{seed()} << 32 | seed();
    prefix_ = absl::StrFormat("tok-bench/%016x/", session_);
  }

  uint64_t session() const { return session_; }

  absl::StatusOr<Direction> Push() {
    Direction direction = {here_.node(), there_, "push", {}, {}};
    const auto began = std::chrono::steady_clock::now();
    for (const uint64_t size : flags_.sizes) {
      SizeMoved moved;
      moved.calls.size = size;
      const Instant end = began + share_ * (direction.sizes.size() + 1);
      if (absl::Status status = PushOfOneSize(end, moved); !status.ok()) return status;
      direction.sizes.push_back(std::move(moved));
    }
    return direction;
  }

  absl::StatusOr<double> PushOfNothing() {
    Latencies moving, nothing;
    data_.assign(1, kFill);
    const absl::Status status = PutAndPush([&](const ObjectId& id) {
      absl::Status pushed = TimePush(id, moving);
      for (int i = 0; i < kEmptyPushes && pushed.ok(); ++i) pushed = TimePush(id, nothing);
      return pushed;
    });
    if (!status.ok()) return status;
    return nothing.Quantile(0.5);
  }

  absl::Status TryToMake(tune::Holder& maker) {
    const absl::Status made = Make(maker, {{ObjectId::FromName(NameOf(++number_)), 1}});
    const absl::Status deleted = undo_.TakeBack();
    return made.ok() ? deleted : made;
  }

  absl::StatusOr<Direction> Get(tune::Holder& maker) {
    Direction direction = {there_, here_.node(), "get", {}, {}};
    const auto began = std::chrono::steady_clock::now();
    for (const uint64_t size : flags_.sizes) {
      SizeMoved moved;
      moved.calls.size = size;
      const Instant end = began + share_ * (direction.sizes.size() + 1);
      if (absl::Status status = GetOfOneSize(maker, end, moved); !status.ok()) return status;
      direction.sizes.push_back(std::move(moved));
    }
    return direction;
  }

 private:
  static constexpr uint8_t kFill = 0x5a;

  absl::Status PushOfOneSize(Instant end, SizeMoved& moved) {
    Latencies& latencies = moved.calls.latencies;
    data_.assign(moved.calls.size, kFill);
    const auto before = LookAtMoved(here_, kOut, moved.calls.size);
    if (!before.ok()) return before.status();
    Latencies warming_up;
    const auto push_into = [this](Latencies& into) {
      return PutAndPush([&](const ObjectId& id) { return TimePush(id, into); });
    };
    if (absl::Status status = push_into(warming_up); !status.ok()) return status;
    do {
      if (absl::Status status = push_into(latencies); !status.ok()) return status;
    } while (latencies.count() < flags_.count && std::chrono::steady_clock::now() < end);
    const auto after = LookAtMoved(here_, kOut, moved.calls.size);
    if (!after.ok()) return after.status();
    moved.by = NameMovers(*before, *after);
    return absl::OkStatus();
  }

  // Deleted at the end or on interruption.
  absl::Status PutAndPush(absl::FunctionRef<absl::Status(const ObjectId& id)> push) {
    const std::string name = NameOf(++number_);
    const ObjectId id = ObjectId::FromName(name);
    PutOptions options;
    options.confirmed = true;  // else the other node would wait for the announcement
    options.name = name;
    absl::Status status = undo_.Do([&] { return AsAbsl(here_.Put(id, data_, {}, options)); },
                                   [this, id] { return AsAbsl(here_.Delete(id)); });
    if (status.ok()) status = push(id);
    const absl::Status deleted = undo_.TakeBack();
    return status.ok() ? deleted : status;
  }

  absl::Status TimePush(const ObjectId& id, Latencies& latencies) {
    std::vector<Status> pushed;
    const double seconds = SecondsOf([&] { pushed = here_.Push({&id, 1}, there_, kMoveTimeout); });
    if (pushed.front().ok()) latencies.Add(seconds);
    return Told(AsAbsl(pushed.front()), "push", data_.size());
  }

  absl::Status GetOfOneSize(tune::Holder& maker, Instant end, SizeMoved& moved) {
    const uint64_t size = moved.calls.size;
    const auto before = LookAtMoved(here_, kIn, size);
    if (!before.ok()) return before.status();
    Latencies& latencies = moved.calls.latencies;
    Latencies warming_up;
    if (absl::Status status = MakeAndGet(maker, size, 1, warming_up); !status.ok()) return status;
    const uint64_t room = std::min(here_.capacity(), maker.capacity()) / kMemoryPart;
    const uint64_t most = std::clamp(room / std::max<uint64_t>(size, 1), uint64_t{1}, kMadeAtOnce);
    uint64_t count = 1;
    do {
      const uint64_t left = flags_.count - latencies.count();
      if (absl::Status status = MakeAndGet(maker, size, std::min(count, left), latencies); !status.ok()) return status;
      count = std::min(count * 2, most);
    } while (latencies.count() < flags_.count && std::chrono::steady_clock::now() < end);
    const auto after = LookAtMoved(here_, kIn, size);
    if (!after.ok()) return after.status();
    moved.by = NameMovers(*before, *after);
    return absl::OkStatus();
  }

  absl::Status Make(tune::Holder& maker, const std::vector<tune::TestObject>& objects) {
    absl::Status made;
    const absl::Status done = undo_.Do(
        [&] {
          made = maker.Make(objects);
          return absl::OkStatus();
        },
        [this, objects] { return Delete(objects); });
    return done.ok() ? made : done;
  }

  // Deleted at the end or on interruption.
  absl::Status MakeAndGet(tune::Holder& maker, uint64_t size, uint64_t count, Latencies& latencies) {
    std::vector<tune::TestObject> objects;
    for (uint64_t i = 0; i < count; ++i) objects.push_back({ObjectId::FromName(NameOf(++number_)), size});
    absl::Status status = Make(maker, objects);
    for (const tune::TestObject& object : objects) {
      if (status.ok()) status = TimeGet(object, latencies);
    }
    const absl::Status deleted = undo_.TakeBack();
    return status.ok() ? deleted : status;
  }

  absl::Status TimeGet(const tune::TestObject& object, Latencies& latencies) {
    Result<Buffer> got = Status(StatusCode::kUnknown, "not got");
    const double seconds = SecondsOf([&] { got = here_.Get(object.id, kMoveTimeout); });
    if (!got.ok()) return Told(AsAbsl(got.status()), "get", object.size);
    if (got->data().size() != object.size) return absl::DataLossError("an object came with another size");
    latencies.Add(seconds);
    return absl::OkStatus();
  }

  absl::Status Delete(const std::vector<tune::TestObject>& objects) {
    absl::Status first;
    for (const tune::TestObject& object : objects) {
      const absl::Status deleted = AsAbsl(here_.Delete(object.id));
      if (!absl::IsNotFound(deleted)) first.Update(deleted);
    }
    return first;
  }

  absl::Status Told(const absl::Status& status, const char* call, uint64_t size) const {
    if (status.ok()) return status;
    return absl::Status(status.code(), absl::StrCat("a ", call, " of ", base::FormatSize(size), ", with node ", there_,
                                                    ": ", status.message()));
  }

  std::string NameOf(uint64_t number) const { return absl::StrFormat("%s%08d", prefix_, number); }

  Client& here_;
  const std::string there_;
  Undo& undo_;
  const BenchFlags& flags_;
  const std::chrono::nanoseconds share_;  // of the budget, for one size in one direction
  uint64_t session_ = 0;
  std::string prefix_;
  uint64_t number_ = 0;
  std::vector<uint8_t> data_;
};

// ---- nodes

struct Ends {
  Client* here = nullptr;
  std::string there;
  Client* there_client = nullptr;  // null: on another machine
  uint64_t there_capacity = 0;
};

absl::StatusOr<Ends> FindEnds(Client& own, std::vector<Client>& others, std::vector<std::string> nodes) {
  const auto reach = [&](const std::string& node) -> Client* {
    if (own.node() == node) return &own;
    const auto found =
        std::find_if(others.begin(), others.end(), [&](const Client& one) { return one.node() == node; });
    return found == others.end() ? nullptr : &*found;
  };
  if (nodes.size() == 1) nodes.insert(nodes.begin(), own.node());
  if (nodes[0] == nodes[1]) return absl::InvalidArgumentError(absl::StrCat("--between: both are node ", nodes[0]));
  if (reach(nodes[0]) == nullptr) std::swap(nodes[0], nodes[1]);
  Ends ends = {reach(nodes[0]), nodes[1], reach(nodes[1]), 0};
  if (ends.here == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("--between: this daemon is node ", own.node(), ", neither ",
                                                   nodes[1], " nor ", nodes[0],
                                                   ": run it on the machine of one of them"));
  }
  const auto known = AsAbsl(ends.here->Nodes());
  if (!known.ok()) return known.status();
  for (const NodeInfo& node : *known) {
    if (node.name == ends.there) ends.there_capacity = node.capacity;
  }
  if (ends.there_capacity > 0) return ends;
  return absl::NotFoundError(
      absl::StrCat("--between: node ", ends.here->node(), " knows no node ", ends.there, " (tok nodes lists them)"));
}

absl::Status CheckSizes(const BenchFlags& flags, const Ends& ends) {
  const uint64_t room = std::min(ends.here->capacity(), ends.there_capacity) / kMemoryPart;
  for (const uint64_t size : flags.sizes) {
    if (size <= room) continue;
    return absl::InvalidArgumentError(absl::StrCat("--sizes ", base::FormatSize(size),
                                                   ": more than an eighth of a node's memory, which is ",
                                                   base::FormatSize(room)));
  }
  return absl::OkStatus();
}

// The error is the reason why nobody makes objects there.
absl::StatusOr<Direction> MeasureGets(BetweenRunner& runner, const Ends& ends, Undo& undo) {
  if (ends.there_client != nullptr) {
    tune::ClientHolder maker(*ends.there_client);
    return runner.Get(maker);
  }
  auto maker = tune::AskedHolder::Call(*ends.here, ends.there, runner.session(), undo);
  if (!maker.ok()) return maker.status();
  const absl::Status made = runner.TryToMake(*maker);
  if (absl::IsDeadlineExceeded(made)) return Direction{ends.there, ends.here->node(), "get", {}, made};
  if (!made.ok()) return made;
  return runner.Get(*maker);
}

}  // namespace

absl::Status BenchBetween(const CommandContext& context, const BenchFlags& flags, std::vector<std::string> nodes,
                          std::vector<Client>& others) {
  const auto ends = FindEnds(context.client, others, std::move(nodes));
  if (!ends.ok()) return ends.status();
  if (absl::Status status = CheckSizes(flags, *ends); !status.ok()) return status;
  BetweenRunner runner(*ends->here, ends->there, context.undo, flags);
  const auto out = runner.Push();
  if (!out.ok()) return out.status();
  const auto words = runner.PushOfNothing();
  if (!words.ok()) return words.status();
  if (!context.flags.json) {
    PrintDirection(
        *out, absl::StrCat("pushed; a push of what is there already takes ",
                           base::FormatDuration(base::Duration::Picoseconds(static_cast<int64_t>(*words * 1e12)))));
  }
  const auto in = MeasureGets(runner, *ends, context.undo);
  if (!in.ok()) return in.status();
  if (!context.flags.json) {
    PrintDirection(*in, "got");
    return absl::OkStatus();
  }
  json push = DirectionToJson(*out);
  push["push_of_nothing_seconds"] = *words;
  std::cout << ToText({{"directions", json::array({push, DirectionToJson(*in)})}}, 2) << "\n";
  return absl::OkStatus();
}

}  // namespace tokamak::cli
