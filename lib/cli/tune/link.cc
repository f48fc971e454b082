#include "lib/cli/tune/link.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/base/units.h"
#include "lib/cli/common/as_absl.h"
#include "lib/cli/tune/ask.h"
#include "lib/cli/tune/client_holder.h"

namespace tokamak::cli::tune {
namespace {

using Clock = std::chrono::steady_clock;

static_assert(kMaxSizes * transport::kMeasuredProtocols.size() <= kMaxAsked, "a round can be one ask");

constexpr std::chrono::seconds kGetDeadline(30);

base::Duration Since(Clock::time_point start) {
  return base::Nanoseconds(std::chrono::nanoseconds(Clock::now() - start).count());
}

Protocol ToClient(transport::Protocol protocol) { return static_cast<Protocol>(protocol); }

class LinkMeasurement final {
 public:
  LinkMeasurement(Client& puller, Holder& holder, const LinkSettings& settings, uint64_t memory, Undo& undo)
      : puller_(puller),
        holder_(holder),
        settings_(settings),
        undo_(undo),
        memory_(memory),
        plan_(settings.least, settings.most, base::Random(settings.seed)) {}

  absl::StatusOr<LinkTimes> Run(const OnRound& on_round) {
    if (absl::Status status = Connect(); !status.ok()) return status;
    while (TimeIsLeft() && !(plan_.has_table() && TuningPlan::IsKnown(plan_.Fit()))) {
      const std::vector<Probe> round = plan_.NextRound();
      if (round.empty()) break;  // kMaxSamples of every size
      if (absl::Status status = Pull(round, /*count=*/true); !status.ok()) return status;
      on_round(plan_, Since(start_));
    }
    if (!plan_.has_table()) {
      return absl::DeadlineExceededError(
          absl::StrCat("in ", base::FormatDuration(settings_.budget), " no size was pulled ", kFullRounds,
                       " times by each protocol: give a longer --budget, or a smaller --largest"));
    }
    return LinkTimes{plan_.Fit(), plan_.times(), plan_.samples(), Since(start_)};
  }

 private:
  bool TimeIsLeft() const { return Since(start_) < settings_.budget; }

  // Uncounted: these make connections and queue pairs.
  absl::Status Connect() {
    std::vector<Probe> probes;
    for (int i = 0; i < 2; ++i) {
      for (const uint64_t size : {settings_.least, settings_.most}) {
        for (const transport::Protocol protocol : transport::kMeasuredProtocols) probes.push_back({size, protocol});
      }
    }
    return Pull(probes, /*count=*/false);
  }

  // In order, as many at a time as fit into memory.
  absl::Status Pull(const std::vector<Probe>& probes, bool count) {
    for (size_t first = 0, end = 0; first < probes.size() && (TimeIsLeft() || !count); first = end) {
      std::vector<TestObject> objects;
      uint64_t bytes = 0;
      for (end = first; end < probes.size() && (end == first || bytes + probes[end].size <= memory_); ++end) {
        bytes += probes[end].size;
        objects.push_back({NextId(), probes[end].size});
      }
      if (absl::Status status = PullBatch(absl::MakeConstSpan(probes).subspan(first, end - first), objects, count);
          !status.ok()) {
        return status;
      }
    }
    return absl::OkStatus();
  }

  // Deleted at the end or on interruption.
  absl::Status PullBatch(absl::Span<const Probe> probes, const std::vector<TestObject>& objects, bool count) {
    absl::Status made;
    absl::Status status = undo_.Do(
        [&] {
          made = holder_.Make(objects);
          return absl::OkStatus();
        },
        [this, objects] { return Delete(objects); });
    if (status.ok()) status = made;
    for (size_t i = 0; i < probes.size() && status.ok(); ++i) status = PullOne(probes[i], objects[i], count);
    const absl::Status deleted = undo_.TakeBack();
    return status.ok() ? deleted : status;
  }

  absl::Status PullOne(const Probe& probe, const TestObject& object, bool count) {
    const Clock::time_point start = Clock::now();
    const auto got = AsAbsl(puller_.Get(object.id, kGetDeadline, {ToClient(probe.protocol)}));
    const base::Duration took = Since(start);
    if (!got.ok()) {
      return absl::Status(got.status().code(),
                          absl::StrCat("a pull of ", base::FormatSize(probe.size), " by ",
                                       transport::ToString(probe.protocol), ": ", got.status().message()));
    }
    if (count) plan_.Note(probe, took.seconds());
    return absl::OkStatus();
  }

  absl::Status Delete(const std::vector<TestObject>& objects) {
    absl::Status first;
    for (const TestObject& object : objects) {
      const absl::Status deleted = AsAbsl(puller_.Delete(object.id));
      if (!absl::IsNotFound(deleted)) first.Update(deleted);
    }
    return first;
  }

  ObjectId NextId() { return ObjectId::FromName(absl::StrCat("tok tune ", settings_.seed, " ", ++last_object_)); }

  Client& puller_;
  Holder& holder_;
  const LinkSettings settings_;
  Undo& undo_;
  const uint64_t memory_;
  const Clock::time_point start_ = Clock::now();
  TuningPlan plan_;
  uint64_t last_object_ = 0;
};

}  // namespace

absl::StatusOr<LinkTimes> MeasureLink(Client& puller, Holder& holder, const LinkSettings& settings, Undo& undo,
                                      const OnRound& on_round) {
  if (puller.node() == holder.node()) {
    return absl::InvalidArgumentError(
        absl::StrCat("both ends are ", puller.node(), ": the other socket must be another node's"));
  }
  const uint64_t room = std::min(puller.capacity(), holder.capacity()) / kMemoryPart;
  LinkSettings known = settings;
  if (known.most == 0) known.most = std::max(known.least, std::min(kUsualMost, room));
  if (known.most > room) {
    return absl::InvalidArgumentError(absl::StrCat("--largest: ", base::FormatSize(known.most),
                                                   " is more than an eighth of a node's memory, which is ",
                                                   base::FormatSize(room)));
  }
  uint64_t memory = room;
  const auto take = [&](const std::string& node, const absl::StatusOr<uint64_t>& now) {
    if (!now.ok()) return now.status();
    memory = std::min(memory, *now);
    if (*now >= known.most) return absl::OkStatus();
    return absl::ResourceExhaustedError(absl::StrCat("node ", node, " has room for ", base::FormatSize(*now),
                                                     ", and a test object takes ", base::FormatSize(known.most),
                                                     ": delete objects there (tok ls), or give a smaller --largest"));
  };
  if (absl::Status status = take(puller.node(), RoomOf(puller)); !status.ok()) return status;
  if (absl::Status status = take(holder.node(), holder.Room()); !status.ok()) return status;
  return LinkMeasurement(puller, holder, known, memory, undo).Run(on_round);
}

}  // namespace tokamak::cli::tune
