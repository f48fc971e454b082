#include "sim/worlds/world.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "sim/worlds/trials.h"

namespace tokamak::sim {

namespace {

constexpr base::Duration kMostSilence = base::Seconds(120);  // then what a crashed node had asked for is forgotten
constexpr base::Duration kMostLag = base::Milliseconds(80);
constexpr uint32_t kCrowd = 80;
constexpr uint64_t kSizes[] = {0, 64, 3000, 60'000, 150'000};

}  // namespace

World::World(const WorldOptions& options) : options_(options), life_(options), random_(life_.random), trials_(life_) {
  life_.OnDeleted([this](uint32_t node, const std::string& id) { FollowUp(node, id); });
}

std::vector<std::string> World::Run() {
  for (uint32_t step = 0; step < options_.steps; ++step) {
    Act();
    Trouble();
    trials_.MayRun();
    life_.Pass(life_.UpTo(options_.most_between));
    life_.Collect();
  }
  life_.Heal();
  Judge();
  Finale();
  return life_.Violations();
}

// ---- programs

void World::Act() {
  switch (random_.Below(20)) {
    case 0:
    case 1:
    case 2:
    case 3:
    case 4:
      return life_.PutOn(life_.AnyNode(), life_.AnyId(), kSizes[random_.Below(5)], random_.Chance(0.5));
    case 5:
    case 6:
    case 7:
      return life_.DeleteFrom(life_.AnyNode(), life_.AnyId());
    case 8:
    case 9:
    case 10:
      return Chase();
    case 11:
      return DropSome();
    case 12:
    case 14:
      return options_.freeze > 0 && random_.Chance(0.2) ? Blackout() : Flicker();
    case 13:
      if (random_.Chance(0.5)) return Crowd();
      return Look();
    default:
      return life_.GetOn(life_.AnyNode(), life_.AnyId(), life_.UpTo(base::Milliseconds(1500)));
  }
}

// Deletes what others are just about to read, or to delete.
void World::Chase() {
  const std::string id = life_.AnyId();
  for (uint64_t i = random_.Below(4); i > 0; --i) life_.GetOn(life_.AnyNode(), id, life_.UpTo(base::Milliseconds(300)));
  life_.Pass(life_.UpTo(random_.Chance(0.5) ? base::Milliseconds(2) : base::Milliseconds(40)));
  if (random_.Chance(0.3)) DropSome();
  for (uint64_t i = random_.Chance(0.3) ? 2 : 1; i > 0; --i) life_.DeleteFrom(life_.AnyNode(), id);
}

// From now on nobody may read it, and its id is free.
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

void World::Look() {
  const uint32_t node = life_.AnyNode();
  life_.Keep(node, life_.Locate(node, life_.AnyId(), life_.UpTo(base::Seconds(2))));
}

// Many wait at once for what nobody puts, and change their minds: some at once, some later.
void World::Crowd() {
  const uint32_t node = life_.AnyNode();
  std::vector<std::shared_ptr<Life::Asked>> crowd;
  for (uint32_t i = 0; i < kCrowd; ++i) {
    crowd.push_back(life_.Locate(node, absl::StrCat("nobody puts ", i), base::Seconds(3600)));
  }
  if (random_.Chance(0.7)) life_.Pass(life_.UpTo(base::Milliseconds(20)));
  for (auto& asked : crowd) life_.Drop(std::move(asked));
}

// What has just come is deleted, or evicted and wanted again, before the directory has heard of it.
void World::Flicker() {
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

// Another content takes the place of one that a node knows of, and then the directory is away.
void World::Blackout() {
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

// A program changes its mind.
void World::DropSome() {
  const uint32_t node = life_.AnyNode();
  if (life_.asked(node) > 0) life_.DropOne(node, random_.Below(life_.asked(node)));
}

// ---- faults

void World::Trouble() {
  if (random_.Chance(options_.freeze)) life_.Freeze(life_.AnyNode(), life_.UpTo(options_.lease * 3));
  if (random_.Chance(options_.cut)) life_.Cut(life_.AnyNode());
  if (random_.Chance(options_.partition)) life_.Partition(life_.AnyNode());
  if (random_.Chance(options_.crash)) life_.Crash(life_.AnyNodeButTheDirectorys());
  if (random_.Chance(options_.directory_crash)) life_.Crash(0);
  if (random_.Chance(options_.slow)) life_.Slow(life_.AnyNode(), life_.AnyNode());
  if (random_.Chance(options_.lag))
    life_.Lag(life_.AnyNode(), random_.Chance(0.5) ? 0 : life_.AnyNode(), life_.UpTo(kMostLag));
  if (random_.Chance(options_.mend)) life_.Mend();
}

// ---- the end

// Twice: the first look may carry on a deletion that the directory had forgotten
// (docs/consistency.md).
void World::Judge() {
  Trials::PutWhatWasRefused(life_);
  life_.AwaitAll();
  for (const bool last : {false, true}) {
    for (uint32_t i = 0; i < options_.ids; ++i) life_.ReadAtTheEnd(Life::IdOf(i), last);
    life_.cluster().Settle();
  }
  life_.cluster().ExpectClean();
  if (life_.any_dropped_answered()) life_.Wrong("what was dropped was answered");
}

// In a cluster that is well everything can be deleted, and put again.
void World::Finale() {
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
