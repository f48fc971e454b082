#include "sim/worlds/trials.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace tokamak::sim {

namespace {

constexpr base::Duration kRoundTrips = base::Milliseconds(40);  // several, at the longest latency

bool HasFewWords(const WorldOptions& options) { return options.words_at_once < directory::kMaxUpdates; }

bool HasALongQueue(const WorldOptions& o) { return !o.calm && HasFewWords(o) && o.max_dirty > 1000; }

// Returns ids known to every node, confirmed on `node`.
std::vector<std::string> Settle(Life& life, uint32_t node, uint32_t first, uint32_t count) {
  std::vector<std::string> ids;
  for (uint32_t i = first; i < first + count; ++i) {
    ids.push_back(Life::PassingId(i));
    life.PutOn(node, ids.back(), 64, /*confirmed=*/true);
  }
  life.Await(node, kRoundTrips * 4);
  return ids;
}

void DeleteAll(Life& life, uint32_t node, const std::vector<std::string>& ids) {
  for (const std::string& id : ids) life.DeleteFrom(node, id);
  life.Await(node, life.options.lease * 2);
}

// Asks about an id settled on `holder`, as a node new to it does.
void Doubt(Life& life, uint32_t holder, const std::string& id) {
  const uint32_t other = life.AnyNodeBut(holder);
  if (life.random.Chance(0.6)) return life.DeleteFrom(other, id);
  life.PutOn(other, id, 64, /*confirmed=*/true);
}

// More at once than a node remembers to announce.
void Burst(Life& life) {
  const uint32_t node = life.AnyNode();
  const std::vector<std::string> ids = Settle(life, node, 0, 6);
  const auto most = static_cast<uint32_t>(life.options.max_dirty);
  life.Load(node, most + 1 + static_cast<uint32_t>(life.random.Below(most)));
  for (const std::string& id : ids) {
    life.Pass(life.UpTo(life.options.latency * 2 + base::Microseconds(200)));
    Doubt(life, node, id);
  }
  life.Pass(life.UpTo(life.options.lease));
  for (const std::string& id : ids) life.GetOn(node, id, base::Milliseconds(1));
  life.Pass(base::Milliseconds(2));
  life.Unload(node);
  DeleteAll(life, node, ids);
}

// While a node has much to announce it gets what does not exist yet, gives up, and gets it later.
void Queue(Life& life) {
  const uint32_t node = life.AnyNode();
  const uint32_t other = life.AnyNodeBut(node);
  std::vector<std::string> ids;
  for (uint32_t i = 116; i < 120; ++i) ids.push_back(Life::PassingId(i));
  life.Load(node, 200);
  for (const std::string& id : ids) life.GetOn(node, id, life.UpTo(life.options.latency * 2));
  life.Pass(life.options.latency * 2);
  life.Load(node, 200);
  Settle(life, other, 116, 4);
  for (const std::string& id : ids) life.Fetch(node, id);
  life.Pass(life.UpTo(life.options.latency * 20));
  for (const std::string& id : ids) life.DeleteFrom(other, id);
  life.Await(other, life.options.lease);
  for (const std::string& id : ids) life.GetOn(node, id, base::Milliseconds(1));
  // Beyond the tombstones: an announcement under way all that time would bring back a deleted
  // object (docs/consistency.md, What a deletion remembers).
  if (!life.Recover()) return life.Wrong("a cluster that is well does not get up to date");
  life.Unload(node);
  DeleteAll(life, other, ids);
}

// Restarts the directory while a node needs more than a lease to announce all.
void Relearn(Life& life) {
  const uint32_t node = life.AnyNodeButTheDirectorys();
  const std::vector<std::string> ids = Settle(life, node, 6, 8);
  // Sent within a lease: kBatchesInFlight calls a round trip.
  const base::Duration lag = life.options.directory_deadline() / 4;
  const auto in_a_lease =
      static_cast<uint32_t>(life.options.lease.picoseconds() / ((lag + life.options.latency) * 2).picoseconds()) *
      static_cast<uint32_t>(life.options.words_at_once * node::Membership::kBatchesInFlight);
  life.Load(node, in_a_lease * 5 / 4 + static_cast<uint32_t>(life.random.Below(in_a_lease)));
  if (!life.Recover()) return life.Wrong("a cluster that is well does not get up to date");
  life.Crash(0);
  life.Lag(node, 0, lag);
  life.Lag(0, node, lag);
  life.Pass(life.options.lease * 9 / 8);
  for (const std::string& id : ids) {
    life.Pass(life.UpTo(life.options.lease / 8));
    Doubt(life, node, id);
  }
  life.Pass(life.options.lease);
  life.Mend();
  for (const std::string& id : ids) life.GetOn(node, id, base::Milliseconds(1));
  life.Pass(base::Milliseconds(2));
  life.Unload(node);
  DeleteAll(life, node, ids);
}

// Takes a node away while its copy is deleted, and then more objects than are remembered.
void Return(Life& life) {
  const uint32_t gone = life.AnyNodeButTheDirectorys(), holder = life.AnyNodeBut(gone);
  const std::string id = life.AnyId();
  if (life.random.Chance(0.5)) life.DeleteFrom(holder, id);
  life.Await(holder, kRoundTrips);
  life.PutOn(life.random.Chance(0.5) ? holder : gone, id, 64, /*confirmed=*/true);
  life.Pass(kRoundTrips);
  life.Fetch(gone, id);
  life.Fetch(holder, id);
  life.Freeze(gone, (life.options.lease + life.options.grace()) * 5 / 4 + life.UpTo(life.options.lease));
  life.Pass((life.options.lease + life.options.grace()) * 17 / 16);
  life.DeleteFrom(holder, id);
  life.Await(holder, kRoundTrips);
  const auto others = static_cast<uint32_t>(life.options.tombstones) * 5 / 4;
  DeleteAll(life, holder, Settle(life, holder, 14, others));
  for (int i = 0; i < 4; ++i) {
    life.ReadEverywhere(id);
    life.Pass(life.options.lease / 2);
    life.Collect();
  }
}

// Restarts the directory, which then hears of nobody for a while.
void Silence(Life& life) {
  const uint32_t node = life.AnyNodeButTheDirectorys();
  const std::vector<std::string> ids = Settle(life, node, 34, 6);
  life.Pass(life.UpTo(life.options.lease));
  life.Crash(0);
  const bool freezes = life.random.Chance(0.7);
  for (uint32_t other = 1; freezes && other < life.options.nodes; ++other) {
    life.Freeze(other, life.options.lease / 2 + life.UpTo(life.options.lease / 4));
  }
  for (const std::string& id : ids) {
    life.Pass(life.UpTo(life.options.lease / 8));
    life.DeleteFrom(freezes ? 0 : life.AnyNode(), id);
  }
  life.Pass(life.options.lease);
  DeleteAll(life, node, ids);
}

constexpr uint32_t kFirstOfStall = 96, kLastOfStall = 111;

// Stops the directory for less than a lease while puts wait for it and some connections break;
// requests sent before may be carried out after.
void Stall(Life& life) {
  const uint32_t node = life.AnyNodeButTheDirectorys();
  life.FreezeAll(0, life.options.lease * 2 / 5 + life.UpTo(life.options.lease / 2));
  for (uint32_t i = kFirstOfStall; i <= kLastOfStall; ++i) {
    life.PutOn(node, Life::PassingId(i), 64, /*confirmed=*/true);
    life.Pass(life.UpTo(life.options.lease / 20));
  }
  if (life.random.Chance(0.3)) return life.Pass(life.options.lease);
  if (!life.Recover()) return life.Wrong("a cluster that is well does not get up to date");
  for (uint32_t i = kFirstOfStall; i <= kLastOfStall; ++i) {
    life.PutOn(life.AnyNodeBut(node), Life::PassingId(i), 64, /*confirmed=*/true);
  }
  life.Pass(life.options.lease);
  for (uint32_t i = kFirstOfStall; i <= kLastOfStall; ++i) life.DeleteFrom(node, Life::PassingId(i));
  life.Await(node, life.options.lease * 2);
}

// The directory loses objects, as when keys of Redis go; a holder's delete still reaches all.
void Lose(Life& life) {
  if (!life.Recover()) return life.Wrong("a cluster that is well does not get up to date");
  const uint32_t node = life.AnyNode();
  const std::vector<std::string> ids = Settle(life, node, 112, 4);
  for (const std::string& id : ids) {
    for (uint64_t copies = life.random.Below(3); copies > 0; --copies) life.Fetch(life.AnyNode(), id);
  }
  // In half of the lives copies are still being announced: only some holders are lost.
  if (life.random.Chance(0.5)) {
    life.Pass(life.UpTo(kRoundTrips));
  } else if (!life.Recover()) {
    return life.Wrong("a cluster that is well does not get up to date");
  }
  // A word of its own under way would hide the loss (docs/consistency.md, Keys that Redis loses).
  if (!life.HasToldAll(node)) return;
  if (!std::all_of(ids.begin(), ids.end(), [&](const std::string& id) { return life.cluster()[node].Has(id); })) return;
  for (const std::string& id : ids) life.LoseEntry(id);
  DeleteAll(life, node, ids);
  for (const std::string& id : ids) life.ReadEverywhere(id);
  life.Pass(life.options.lease);
  DeleteAll(life, node, ids);
}

// More calls of one program than its node allows.
void Hog(Life& life) {
  const uint32_t node = life.AnyNodeButTheDirectorys();
  if (!life.Recover()) return life.Wrong("a cluster that is well does not get up to date");
  // Keeps calls under way; a connection's first messages wait some round trips for slots.
  const base::Duration lag = life.options.directory_deadline() / 24;
  life.Lag(node, 0, lag);
  life.Lag(0, node, lag);
  life.Pass(lag * 8);
  const uint64_t failed = life.MembershipOf(node).counters().failed_renewals;
  const base::Time end = life.Now() + life.options.lease * 2 / 5;  // with a renewal in it
  uint32_t next = 0;
  while (life.Now() < end) {
    while (life.asked(node) < life.options.engine_calls * 5 / 4) {
      life.DeleteFrom(node, Life::PassingId(48 + next++ % 32));
    }
    life.Pass(lag);
    life.Collect();
  }
  if (life.MembershipOf(node).counters().failed_renewals != failed && life.options.loss == 0) {
    life.Wrong(absl::StrCat("busy: n", node, " could not renew its lease in a network that is well"));
  }
  life.Mend();
  life.Await(node, life.options.lease * 4);
}

// Puts and deletes one id on all nodes at once, one of them busy announcing.
void Contest(Life& life) {
  const uint32_t busy = life.AnyNode();
  const std::string id = life.AnyId();
  life.Load(busy, 400);
  for (int i = 0; i < 64; ++i) {
    const uint32_t node = life.random.Chance(0.4) ? busy : life.AnyNode();
    if (life.random.Chance(0.5)) {
      life.PutOn(node, id, 64, /*confirmed=*/life.random.Chance(0.3));
    } else {
      life.DeleteFrom(node, id);
    }
    life.Pass(life.UpTo(life.options.latency * 6));
  }
  life.Await(busy, life.options.lease);
  life.Unload(busy);
}

// Ends a node that hands over first.
void Evacuate(Life& life) {
  if (!life.Recover()) return life.Wrong("a cluster that is well does not get up to date");
  const uint32_t node = life.AnyNodeButTheDirectorys();
  const uint32_t target = life.AnyNodeBut(node);
  constexpr uint64_t kSizes[] = {64, 3000, 30'000};
  std::vector<std::string> ids;
  const uint64_t count = 4 + life.random.Below(28), size = kSizes[life.random.Below(count < 12 ? 3 : 2)];
  for (uint32_t i = 0; i < count; ++i) {
    ids.push_back(Life::PassingId(48 + i));
    life.PutOn(node, ids.back(), size, life.random.Chance(0.3));
  }
  if (life.random.Chance(0.7)) life.Pass(kRoundTrips);
  const bool is_created_there = life.random.Chance(0.3);
  std::vector<std::string> created;
  for (size_t i = 0; is_created_there && i < std::min<size_t>(ids.size(), 12); ++i) {
    if (life.cluster()[target].Create(ids[i], size).ok()) created.push_back(ids[i]);
  }
  if (target != 0 && life.random.Chance(0.2)) life.Freeze(target, life.options.lease * 3);
  if (life.random.Chance(0.4)) life.Fill(target);
  const double deletes = life.random.Chance(0.6) ? 0.8 : 0, puts = life.random.Chance(0.6) ? 0.5 : 0;
  size_t deleted = 0, put = 0;
  life.Evacuate(node, [&](bool evacuated) {
    for (; deleted < ids.size() && life.random.Chance(deletes); ++deleted)
      life.DeleteFrom(life.AnyNode(), ids[deleted]);
    if (put < 16 && life.random.Chance(evacuated ? puts * 2 : puts)) {
      life.PutOn(node, Life::PassingId(static_cast<uint32_t>(80 + put++)), 64, life.random.Chance(0.3));
    }
  });
  for (const std::string& id : created) {
    life.cluster()[target].store().Abort(base::ObjectId::FromName(id), life.cluster()[target].me).IgnoreError();
  }
  life.Unload(target);
  for (const std::string& id : ids) {
    if (life.random.Chance(0.3)) life.GetOn(life.AnyNode(), id, base::Milliseconds(400));
  }
}

const Trials::Trial kTrials[] = {
    {"burst", 1, [](const WorldOptions& o) { return o.max_dirty < node::kMaxDirty; }, Burst},
    {"relearn", 1, [](const WorldOptions& o) { return !o.calm && HasFewWords(o); }, Relearn},
    {"return", 1, [](const WorldOptions& o) { return !o.calm && o.tombstones < directory::kMaxTombstones; }, Return},
    {"silence", 1, [](const WorldOptions& o) { return !o.calm; }, Silence},
    {"stall", 3, [](const WorldOptions& o) { return !o.calm; }, Stall},
    {"lose", 1, [](const WorldOptions& o) { return !o.calm; }, Lose},
    {"queue", 3, HasALongQueue, Queue},
    {"hog", 1, [](const WorldOptions& o) { return o.engine_calls < node::kMaxEngineCalls; }, Hog},
    {"contest", 3, HasFewWords, Contest},
    {"evacuate", 1, [](const WorldOptions& o) { return !o.calm; }, Evacuate},
};

}  // namespace

absl::Span<const Trials::Trial> Trials::All() { return kTrials; }

uint32_t Trials::Named(const std::vector<std::string>& names) {
  uint32_t named = 0;
  for (size_t i = 0; i < All().size(); ++i) {
    if (std::count(names.begin(), names.end(), All()[i].name) > 0) named |= uint32_t{1} << i;
  }
  return named;
}

void Trials::MayRun() {
  for (size_t i = 0; i < All().size(); ++i) {
    const Trial& trial = All()[i];
    const bool has_it = (life_.options.trials & uint32_t{1} << i) != 0 && trial.fits(life_.options);
    if (has_it && life_.random.Chance(life_.options.trial * trial.odds)) trial.run(life_);
  }
}

void Trials::PutWhatWasRefused(Life& life) {
  for (uint32_t i = kFirstOfStall; i <= kLastOfStall; ++i) {
    life.PutOn(life.AnyNode(), Life::PassingId(i), 64, /*confirmed=*/true);
  }
}

}  // namespace tokamak::sim
