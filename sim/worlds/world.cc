#include "sim/worlds/world.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "sim/worlds/trials.h"

namespace tokamak::sim {

namespace {

constexpr base::Duration kMostSilence = base::Seconds(120);  // then a crashed node's calls are forgotten
constexpr base::Duration kMostLag = base::Milliseconds(80);
constexpr uint32_t kCrowd = 80;
constexpr uint64_t kSizes[] = {0, 64, 3000, 60'000, 150'000};

}  // namespace

World::World(const WorldOptions& options)
    : options_(options),
      life_(options),
      random_(life_.random),
      trials_(life_),
      acted_(Actions().size()),
      faulted_(Faults().size()) {
  life_.OnDeleted([this](uint32_t node, const std::string& id) { FollowUp(node, id); });
}

std::vector<std::string> World::Run() {
  for (uint32_t step = 0; step < options_.steps; ++step) {
    Act();
    MeetFaults();
    trials_.MayRun();
    life_.Pass(life_.UpTo(options_.most_between));
    life_.Collect();
  }
  life_.Heal();
  JudgeReads();
  JudgeDeletions();
  return life_.Violations();
}

absl::Span<const World::Action> World::Actions() {
  static constexpr Action kActions[] = {
      {"put", 5, &World::Put},
      {"delete", 3, &World::Delete},
      {"delete while read", 3, &World::DeleteWhileRead},
      {"drop one", 1, &World::DropOne},
      {"delete, evict or replace", 2, &World::DeleteEvictOrReplace},
      {"locate one or many", 1, &World::LocateOneOrMany},
      {"get", 5, &World::Get},
  };
  return kActions;
}

absl::Span<const World::Fault> World::Faults() {
  static constexpr Fault kFaults[] = {
      {"freeze", &WorldOptions::freeze, &World::Freeze},
      {"cut", &WorldOptions::cut, &World::Cut},
      {"partition", &WorldOptions::partition, &World::Partition},
      {"crash", &WorldOptions::crash, &World::Crash},
      {"crash of the directory", &WorldOptions::directory_crash, &World::CrashTheDirectory},
      {"slow", &WorldOptions::slow, &World::Slow},
      {"lag", &WorldOptions::lag, &World::Lag},
      {"mend", &WorldOptions::mend, &World::Mend},
  };
  return kFaults;
}

void World::Act() {
  uint32_t all = 0;
  for (const Action& action : Actions()) all += action.weight;
  uint64_t drawn = random_.Below(all);
  size_t which = 0;
  for (; drawn >= Actions()[which].weight; ++which) drawn -= Actions()[which].weight;
  ++acted_[which];
  (this->*Actions()[which].run)();
}

void World::MeetFaults() {
  for (size_t i = 0; i < Faults().size(); ++i) {
    const Fault& fault = Faults()[i];
    if (!random_.Chance(options_.*fault.chance)) continue;
    ++faulted_[i];
    (this->*fault.run)();
  }
}

std::string World::Describe() const {
  std::string text = options_.Describe() + "\ndrawn:";
  for (size_t i = 0; i < acted_.size(); ++i) absl::StrAppend(&text, " ", Actions()[i].name, " ", acted_[i], ",");
  for (size_t i = 0; i < faulted_.size(); ++i) absl::StrAppend(&text, " ", Faults()[i].name, " ", faulted_[i], ",");
  text.back() = '\n';
  return text;
}

// ---- programs

void World::Put() { life_.PutOn(life_.AnyNode(), life_.AnyId(), kSizes[random_.Below(5)], random_.Chance(0.5)); }

void World::Delete() { life_.DeleteFrom(life_.AnyNode(), life_.AnyId()); }

void World::Get() { life_.GetOn(life_.AnyNode(), life_.AnyId(), life_.UpTo(base::Milliseconds(1500))); }

void World::LocateOneOrMany() {
  if (random_.Chance(0.5)) {
    LocateAndDropMany();
  } else {
    Locate();
  }
}

void World::DeleteEvictOrReplace() {
  if (options_.freeze > 0 && random_.Chance(0.2)) {
    ReplaceWhileTheDirectoryIsAway();
  } else {
    DeleteOrEvictWhatJustCame();
  }
}

// Deletes an id that others are about to read, or delete.
void World::DeleteWhileRead() {
  const std::string id = life_.AnyId();
  for (uint64_t i = random_.Below(4); i > 0; --i) life_.GetOn(life_.AnyNode(), id, life_.UpTo(base::Milliseconds(300)));
  life_.Pass(life_.UpTo(random_.Chance(0.5) ? base::Milliseconds(2) : base::Milliseconds(40)));
  if (random_.Chance(0.3)) DropOne();
  for (uint64_t i = random_.Chance(0.3) ? 2 : 1; i > 0; --i) life_.DeleteFrom(life_.AnyNode(), id);
}

// After a deletion nobody may read the content, and the id is free.
void World::FollowUp(uint32_t deleter, const std::string& id) {
  const Life::Last last = life_.last(id);
  const bool puts = random_.Chance(0.5), puts_first = random_.Chance(0.5);
  const uint32_t putter = random_.Chance(0.4) ? last.node : random_.Chance(0.3) ? deleter : life_.AnyNode();
  if (puts && puts_first) life_.PutOn(putter, id, last.size, random_.Chance(0.8));
  if (random_.Chance(0.7)) life_.ReadEverywhere(id);
  if (!puts || puts_first) return;
  if (random_.Chance(0.5)) life_.Pass(life_.UpTo(base::Milliseconds(60)));
  life_.PutOn(putter, id, last.size, random_.Chance(0.8));
}

void World::Locate() {
  const uint32_t node = life_.AnyNode();
  life_.Keep(node, life_.Locate(node, life_.AnyId(), life_.UpTo(base::Seconds(2))));
}

// Waits for ids that nobody puts, dropped at once or a little later.
void World::LocateAndDropMany() {
  const uint32_t node = life_.AnyNode();
  std::vector<std::shared_ptr<Life::Asked>> crowd;
  for (uint32_t i = 0; i < kCrowd; ++i) {
    crowd.push_back(life_.Locate(node, absl::StrCat("nobody puts ", i), base::Seconds(3600)));
  }
  if (random_.Chance(0.7)) life_.Pass(life_.UpTo(base::Milliseconds(20)));
  for (auto& asked : crowd) life_.Drop(std::move(asked));
}

// Before the directory hears of a fresh copy it is deleted, or evicted and got again.
void World::DeleteOrEvictWhatJustCame() {
  const uint32_t node = life_.AnyNode();
  const std::string id = life_.AnyId();
  const bool lags = options_.lag > 0 && random_.Chance(0.4);
  if (lags && random_.Chance(0.5)) life_.Lag(node, 0, life_.UpTo(kMostLag));
  life_.Fetch(node, id);
  if (random_.Chance(0.3)) return life_.DeleteFrom(life_.AnyNode(), id);
  life_.cluster()[node].store().Evict(UINT64_MAX);
  if (random_.Chance(0.2)) return;                           // it knows the place
  if (lags) life_.Pass(life_.UpTo(base::Milliseconds(20)));  // the directory hears that, but not what comes now
  if (lags) life_.Lag(node, 0, life_.UpTo(kMostLag));
  life_.GetOn(node, id, life_.UpTo(base::Milliseconds(600)));
  life_.Pass(life_.UpTo(base::Milliseconds(10)));
  if (random_.Chance(0.8)) life_.DeleteFrom(life_.AnyNode(), id);
}

// A node remembers another content of an id, and the directory is away.
void World::ReplaceWhileTheDirectoryIsAway() {
  const uint32_t reader = life_.AnyNode();
  const std::string id = life_.AnyId();
  const uint32_t holder = life_.last(id).node;
  life_.Fetch(reader, id);
  life_.cluster()[reader].store().Evict(UINT64_MAX);
  life_.Pass(life_.UpTo(base::Milliseconds(40)));
  life_.DeleteFrom(holder, id);
  life_.AwaitLast(holder, base::Milliseconds(200));
  life_.ForgetDeleted();
  life_.PutOn(holder, id, life_.last(id).size, true);
  life_.Pass(life_.UpTo(base::Milliseconds(20)));
  life_.Freeze(0, options_.lease + life_.UpTo(options_.lease));
  life_.Pass(options_.lease * 3 / 5);
  life_.GetOn(reader, id, life_.UpTo(base::Milliseconds(600)));
}

void World::DropOne() {
  const uint32_t node = life_.AnyNode();
  if (life_.asked(node) > 0) life_.DropOne(node, random_.Below(life_.asked(node)));
}

// ---- faults

void World::Freeze() { life_.Freeze(life_.AnyNode(), life_.UpTo(options_.lease * 3)); }
void World::Cut() { life_.Cut(life_.AnyNode()); }
void World::Partition() { life_.Partition(life_.AnyNode()); }
void World::Crash() { life_.Crash(life_.AnyNodeButTheDirectorys()); }
void World::CrashTheDirectory() { life_.Crash(0); }
void World::Slow() { life_.Slow(life_.AnyNode(), life_.AnyNode()); }
void World::Lag() { life_.Lag(life_.AnyNode(), random_.Chance(0.5) ? 0 : life_.AnyNode(), life_.UpTo(kMostLag)); }
void World::Mend() { life_.Mend(); }

// ---- the end

// Reads twice: the first may carry on a deletion that the directory forgot (docs/consistency.md).
void World::JudgeReads() {
  Trials::PutWhatWasRefused(life_);
  life_.AwaitAll();
  for (const bool last : {false, true}) {
    for (uint32_t i = 0; i < options_.ids; ++i) life_.ReadAtTheEnd(Life::IdOf(i), last);
    life_.cluster().Settle();
  }
  life_.cluster().ExpectClean();
  if (life_.any_dropped_answered()) life_.Wrong("what was dropped was answered");
}

// Healed, every id can be deleted, with nothing left.
void World::JudgeDeletions() {
  for (uint32_t i = 0; i < options_.ids; ++i) life_.DeleteFrom(life_.AnyNode(), Life::IdOf(i));
  for (uint32_t i = 0; i < Life::kPassingIds; ++i) life_.DeleteFrom(life_.AnyNode(), Life::PassingId(i));
  life_.AwaitAll();
  life_.ForgetDeleted();
  life_.cluster().RunFor(base::Milliseconds(1));
  for (uint32_t i = 0; i < options_.ids; ++i) {
    for (uint32_t reader = 0; reader < std::min(options_.nodes, Life::kMostReaders); ++reader) {
      life_.GetOn(reader, Life::IdOf(i), base::Milliseconds(1));
    }
  }
  life_.AwaitAll();
  life_.cluster().Settle();
  directory::LocalDirectory& directory = *life_.cluster()[0].served();
  if (directory.objects() != 0) life_.Wrong(absl::StrCat(directory.objects(), " objects are left in the directory"));
  if (!options_.calm) life_.cluster().RunUntil([&directory] { return directory.waiting() == 0; }, kMostSilence);
  if (directory.waiting() != 0) life_.Wrong(absl::StrCat(directory.waiting(), " still wait in the directory"));
}

}  // namespace tokamak::sim
