#include "sim/world.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "glog/logging.h"

namespace tokamak::sim {

namespace {

using Kind = Operation::Kind;
using Outcome = Operation::Outcome;

// A life has many leases.
constexpr base::Duration kLease = base::Milliseconds(500);
constexpr base::Duration kGrace = base::Milliseconds(2000);

// More wait in the directory at once only where waits that were dropped are left in it.
constexpr size_t kMostWaiting = 1000;
constexpr base::Duration kMostSilence = base::Seconds(120);  // then what a crashed node had asked for is forgotten
constexpr uint32_t kCrowd = 80;
constexpr base::Duration kPatience =
    base::Milliseconds(40);  // two round trips to the directory, at the longest latency

constexpr uint64_t kSizes[] = {0, 64, 3000, 60'000, 150'000};

Outcome OutcomeOf(const absl::Status& status) {
  if (status.ok()) return Outcome::kOk;
  if (absl::IsNotFound(status)) return Outcome::kNothing;
  if (absl::IsAlreadyExists(status)) return Outcome::kRefused;
  if (absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status)) return Outcome::kFailed;
  return Outcome::kWrong;
}

// A put that was deleted before it was answered has no answer in the contract.
Outcome OutcomeOfPut(const absl::Status& status) {
  return absl::IsAborted(status) ? Outcome::kNothing : OutcomeOf(status);
}

// Its text says that nothing was done, or what was.
bool IsDecided(const absl::Status& status) {
  return absl::StartsWith(status.message(), "nothing was deleted") ||
         absl::StartsWith(status.message(), "deleted on all nodes");
}

ClusterOptions Options(const WorldOptions& world, std::vector<std::string>& wrong) {
  ClusterOptions options;
  options.seed = world.seed;
  options.membership.lease = kLease;
  options.membership.grace = kGrace;
  options.membership.renew = kLease * 3 / 10;
  options.membership.directory_deadline = kLease / 5;
  options.membership.retry = kLease / 50;
  options.membership.verify_every = kLease * 2;
  options.directory_recovery = kLease;
  options.directory_waiting = kMostWaiting;
  options.network = world.network;
  options.most_hosts = world.nodes;
  options.link.latency = world.latency;
  options.link.picoseconds_per_byte = world.picoseconds_per_byte;
  options.link.loss = world.loss;
  options.link.duplicate = world.loss;
  options.link.reorder = world.loss * 2;
  options.on_wrong = [&wrong](const std::string& what) { wrong.push_back(what); };
  return options;
}

}  // namespace

WorldOptions WorldOptions::OfSeed(uint64_t seed) {
  base::Random random(seed);
  WorldOptions options;
  options.seed = seed;
  options.nodes = static_cast<uint32_t>(3 + random.Below(7));
  options.ids = static_cast<uint32_t>(1 + random.Below(8));
  if (random.Chance(0.02)) {  // more holders than one answer names
    options.nodes = 70;
    options.ids = 2;
    options.steps = 200;
  }
  options.calm = random.Chance(0.15);
  for (double* fault : {&options.freeze, &options.cut, &options.partition, &options.crash, &options.directory_crash,
                        &options.slow, &options.lag, &options.loss}) {
    if (options.calm || random.Chance(0.4)) *fault = 0;
  }
  static constexpr base::Duration kLatencies[] = {base::Microseconds(2), base::Microseconds(200),
                                                  base::Milliseconds(5)};
  static constexpr int64_t kRates[] = {80, 8'000, 800'000};  // picoseconds for each byte: 100 Gb/s, 1 Gb/s, 10 Mb/s
  options.latency = kLatencies[random.Below(3)];
  options.picoseconds_per_byte = kRates[random.Below(3)];
  return options;
}

World::World(const WorldOptions& options)
    : options_(options),
      random_(base::Random(options.seed).Fork(1)),
      cluster_(std::make_unique<Cluster>(Options(options, wrong_))),
      asked_(options.nodes),
      events_(options.nodes),
      frozen_until_(options.nodes),
      all_announced_(options.nodes) {
  history_.IsComplete();
  if (options_.calm) history_.IsCalm(kPatience.picoseconds());
  HostOptions host;
  host.memory = 1 << 20;
  for (uint32_t i = 0; i < options_.nodes; ++i) {
    host.engines = i % 2;
    cluster_->Add(host);
    Watch(i);
  }
  cluster_->RunFor(base::Milliseconds(20));
}

World::~World() = default;

std::vector<std::string> World::Run() {
  for (uint32_t step = 0; step < options_.steps; ++step) {
    Act();
    Trouble();
    Live(UpTo(options_.most_between));
    Collect();
  }
  Heal();
  Judge();
  Finale();
  for (std::string& violation : history_.Violations()) wrong_.push_back(std::move(violation));
  return wrong_;
}

// Whoever may hear of a deletion that has ended does something about it at once.
void World::Live(base::Duration time) {
  const base::Time end = cluster_->time.Now() + time;
  while (cluster_->time.RunUntil([this] { return !deleted_.empty(); }, end)) FollowUp();
  for (uint32_t node = 0; node < options_.nodes; ++node) {
    const node::Membership& membership = MembershipOf(node);
    if (membership.fenced()) history_.Lost(node, Now());
    const bool frozen = frozen_until_[node] >= cluster_->time.Now();
    if (membership.joined() && membership.behind() == 0 && !frozen) all_announced_[node] = Now();
  }
  LookWhoIsCutOff();
}

// A lease after the directory was restarted: whoever is not in it then.
void World::LookWhoIsCutOff() {
  if (!directory_crashed_.has_value() || cluster_->time.Now() < *directory_crashed_ + kLease) return;
  directory_crashed_.reset();
  directory_asked_ = (*cluster_)[0].served()->Nodes(
      base::Seconds(1), [this](const absl::StatusOr<std::vector<directory::NodeInfo>>& nodes) {
        std::set<directory::NodeId> known;
        for (const directory::NodeInfo& node : *nodes) known.insert(node.id);
        for (uint32_t node = 1; node < options_.nodes; ++node) {
          if (known.count((*cluster_)[node].name) == 0) history_.WasCutOff(node);
        }
      });
}

// ---- programs

void World::Act() {
  switch (random_.Below(20)) {
    case 0:
    case 1:
    case 2:
    case 3:
    case 4:
      return PutOn(AnyNode(), AnyId(), kSizes[random_.Below(5)], random_.Chance(0.5));
    case 5:
    case 6:
    case 7:
      return DeleteFrom(AnyNode(), AnyId());
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
      return GetOn(AnyNode(), AnyId(), UpTo(base::Milliseconds(1500)));
  }
}

size_t World::Begin(Kind kind, uint32_t node, const std::string& id) {
  Operation operation;
  operation.kind = kind;
  operation.node = node;
  operation.id = id;
  operation.begin = Now();
  operation.end = INT64_MAX;
  return history_.Begin(operation);
}

void World::PutOn(uint32_t node, const std::string& id, uint64_t size, bool confirmed) {
  Host& host = (*cluster_)[node];
  const absl::Status created = host.Create(id, size, random_.Below(3));
  if (!created.ok()) return;
  last_[id] = {node, size};
  const base::ObjectId object = base::ObjectId::FromName(id);
  const base::Generation generation = host.store().Stat(object)->location.generation;
  Operation put;
  put.kind = Kind::kPut;
  put.node = node;
  put.id = id;
  put.begin = Now();
  put.end = INT64_MAX;
  put.content = static_cast<uint64_t>(generation);
  put.confirmed = confirmed;
  const size_t place = history_.Begin(put);
  if (!host.Seal(id).ok()) wrong_.push_back("an object could not be sealed");
  if (!confirmed) return history_.End(place, Outcome::kOk, Now());
  auto asked = std::make_shared<Asked>();
  asked->place = place;
  asked->handle = host.node().Confirm({object, generation}, [this, place, asked = asked.get()](const absl::Status& s) {
    asked->done = true;
    history_.End(place, OutcomeOfPut(s), Now(), 0, std::string(s.message()));
  });
  asked_[node].push_back(std::move(asked));
}

void World::GetOn(uint32_t node, const std::string& id, base::Duration timeout) {
  node::GetOptions options;
  options.timeout = timeout;
  options.protocol = static_cast<transport::Protocol>(random_.Below(4));
  auto asked = std::make_shared<Asked>();
  asked->place = Begin(Kind::kGet, node, id);
  asked->got = (*cluster_)[node].StartGet({id}, options);
  asked_[node].push_back(std::move(asked));
}

void World::DeleteFrom(uint32_t node, const std::string& id) {
  auto asked = std::make_shared<Asked>();
  const size_t place = asked->place = Begin(Kind::kDelete, node, id);
  asked->handle = (*cluster_)[node].node().Delete(
      base::ObjectId::FromName(id),
      [this, place, node, id, asked = asked.get()](const absl::StatusOr<uint32_t>& copies) {
        asked->done = true;
        history_.End(place, OutcomeOf(copies.status()), Now(), 0, std::string(copies.status().message()));
        if (IsDecided(copies.status())) history_.MarkDecided(place);
        if (copies.ok()) deleted_.emplace_back(node, id);
      });
  asked_[node].push_back(std::move(asked));
}

// Deletes what others are just about to read, or to delete.
void World::Chase() {
  const std::string id = AnyId();
  for (uint64_t i = random_.Below(4); i > 0; --i) GetOn(AnyNode(), id, UpTo(base::Milliseconds(300)));
  Live(UpTo(random_.Chance(0.5) ? base::Milliseconds(2) : base::Milliseconds(40)));
  if (random_.Chance(0.3)) DropSome();
  for (uint64_t i = random_.Chance(0.3) ? 2 : 1; i > 0; --i) DeleteFrom(AnyNode(), id);
}

// From now on nobody may read it, and its id is free.
void World::FollowUp() {
  const auto [deleter, id] = deleted_.back();
  deleted_.pop_back();
  cluster_->RunFor(base::Duration::Picoseconds(1));  // later than the answer
  const Last last = last_[id];
  const bool puts = random_.Chance(0.5), puts_first = random_.Chance(0.5);
  const uint32_t putter = random_.Chance(0.4) ? last.node : random_.Chance(0.3) ? deleter : AnyNode();
  if (puts && puts_first) PutOn(putter, id, last.size, random_.Chance(0.8));
  if (random_.Chance(0.7)) ReadEverywhere(id);
  if (!puts || puts_first) return;
  if (random_.Chance(0.5)) Live(UpTo(base::Milliseconds(60)));
  PutOn(putter, id, last.size, random_.Chance(0.8));
}

void World::ReadEverywhere(const std::string& id) {
  for (uint32_t reader = 0; reader < std::min(options_.nodes, 9u); ++reader) {
    GetOn(options_.nodes > 9 ? AnyNode() : reader, id, UpTo(base::Milliseconds(200)));
  }
}

std::shared_ptr<World::Asked> World::Locate(uint32_t node, const std::string& id, base::Duration wait) {
  auto asked = std::make_shared<Asked>();
  asked->handle =
      (*cluster_)[node].node().Locate(base::ObjectId::FromName(id), wait,
                                      [this, asked = asked.get()](const absl::StatusOr<directory::ObjectInfo>& info) {
                                        asked->done = true;
                                        if (OutcomeOf(info.status()) == Outcome::kWrong)
                                          wrong_.push_back(info.status().ToString());
                                      });
  return asked;
}

void World::Look() {
  const uint32_t node = AnyNode();
  asked_[node].push_back(Locate(node, AnyId(), UpTo(base::Seconds(2))));
}

// Many wait at once for what nobody puts, and change their minds: some at once, some later.
void World::Crowd() {
  const uint32_t node = AnyNode();
  std::vector<std::shared_ptr<Asked>> crowd;
  for (uint32_t i = 0; i < kCrowd; ++i) {
    crowd.push_back(Locate(node, absl::StrCat("nobody puts ", i), base::Seconds(3600)));
  }
  if (random_.Chance(0.7)) Live(UpTo(base::Milliseconds(20)));
  for (auto& asked : crowd) Drop(std::move(asked));
}

// What has just come is deleted, or evicted and wanted again, before the directory has heard of it.
void World::Flicker() {
  const uint32_t node = AnyNode();
  const std::string id = AnyId();
  const bool lags = options_.lag > 0 && random_.Chance(0.4);
  if (lags && random_.Chance(0.5)) Lag(node, 0);
  Fetch(node, id);
  if (random_.Chance(0.3)) return DeleteFrom(AnyNode(), id);
  (*cluster_)[node].store().Evict(UINT64_MAX);
  if (random_.Chance(0.2)) return;               // it knows the place
  if (lags) Live(UpTo(base::Milliseconds(20)));  // the directory hears that, but not what comes now
  if (lags) Lag(node, 0);
  GetOn(node, id, UpTo(base::Milliseconds(600)));
  Live(UpTo(base::Milliseconds(10)));
  if (random_.Chance(0.8)) DeleteFrom(AnyNode(), id);
}

// Another content takes the place of one that a node knows of, and then the directory is away.
void World::Blackout() {
  const uint32_t reader = AnyNode();
  const std::string id = AnyId();
  const uint32_t holder = last_[id].node;
  Fetch(reader, id);
  (*cluster_)[reader].store().Evict(UINT64_MAX);
  Live(UpTo(base::Milliseconds(40)));
  DeleteFrom(holder, id);
  const std::shared_ptr<Asked> deletion = asked_[holder].back();
  cluster_->RunUntil([&deletion] { return deletion->done; }, base::Milliseconds(200));
  deleted_.clear();
  PutOn(holder, id, last_[id].size, true);
  Live(UpTo(base::Milliseconds(20)));
  Freeze(0, kLease + UpTo(kLease));
  Live(kLease * 3 / 5);
  GetOn(reader, id, UpTo(base::Milliseconds(600)));
}

// A get that is waited for, and gives its pins back.
void World::Fetch(uint32_t node, const std::string& id) {
  GetOn(node, id, base::Milliseconds(400));
  const std::shared_ptr<Got> got = asked_[node].back()->got;
  cluster_->RunUntil([&got] { return got->done; }, base::Milliseconds(400));
  Collect();
}

// A program changes its mind.
void World::DropSome() {
  auto& asked = asked_[AnyNode()];
  if (asked.empty()) return;
  const size_t i = random_.Below(asked.size());
  if (asked[i]->got != nullptr && asked[i]->got->done) return;  // Collect gives its pins back
  Drop(std::move(asked[i]));
  asked.erase(asked.begin() + static_cast<ptrdiff_t>(i));
}

void World::Drop(std::shared_ptr<Asked> asked) {
  asked->handle.reset();
  if (asked->got != nullptr) asked->got->handle.reset();
  if (!asked->done) dropped_.push_back(std::move(asked));
}

// Hears of contents that are refused after they were put.
void World::Watch(uint32_t node) {
  events_[node] = (*cluster_)[node].store().Subscribe([this](absl::Span<const store::Event> events) {
    for (const store::Event& event : events) {
      if (event.kind != store::Event::Kind::kRefused || event.origin != store::Origin::kCreatedHere) continue;
      for (uint32_t i = 0; i < options_.ids; ++i) {
        const std::string id = absl::StrCat("object", i);
        if (base::ObjectId::FromName(id) == event.id)
          history_.Refused(id, static_cast<uint64_t>(event.generation), Now());
      }
    }
  });
}

// What was answered; gets are over when their pins are given back, sometimes a while after.
void World::Collect() {
  for (uint32_t node = 0; node < options_.nodes; ++node) {
    auto& asked = asked_[node];
    for (auto& one : asked) {
      if (one->got != nullptr && one->got->done) {
        const node::GetResult& result = one->got->results.front();
        if (!one->done) {
          one->done = true;
          history_.End(one->place, OutcomeOf(result.status), one->got->done_at.picoseconds(),
                       result.location.has_value() ? static_cast<uint64_t>(result.location->generation) : 0);
        }
        if (random_.Chance(0.2)) continue;
        (*cluster_)[node].Release(*one->got);
        one.reset();
      } else if (one->got == nullptr && one->done) {
        one.reset();
      }
    }
    asked.erase(std::remove(asked.begin(), asked.end(), nullptr), asked.end());
  }
}

// ---- faults

void World::Trouble() {
  if (random_.Chance(options_.freeze)) Freeze(AnyNode(), UpTo(kLease * 3));
  if (random_.Chance(options_.cut)) {
    const verbs::Address directory = (*cluster_)[0].address, other = (*cluster_)[AnyNode()].address;
    if (directory != other) {
      cluster_->network.Cut(directory, other);
      cluster_->network.Cut(other, directory);
    }
  }
  if (random_.Chance(options_.partition)) cluster_->network.Partition({(*cluster_)[AnyNode()].address});
  if (random_.Chance(options_.crash) && options_.nodes > 1)
    Crash(1 + static_cast<uint32_t>(random_.Below(options_.nodes - 1)));
  if (random_.Chance(options_.directory_crash)) Crash(0);
  if (random_.Chance(options_.slow)) {
    LinkOptions slow = cluster_->options.link;
    slow.picoseconds_per_byte = 4'000'000;  // 2 Mb/s: the larger objects take longer than a lease
    const uint32_t a = AnyNode(), b = AnyNode();
    if (a != b && cluster_->network.has_links())
      cluster_->network.SetLink((*cluster_)[a].address, (*cluster_)[b].address, slow);
  }
  if (random_.Chance(options_.lag)) Lag(AnyNode(), random_.Chance(0.5) ? 0 : AnyNode());
  if (random_.Chance(options_.mend)) {
    cluster_->network.Heal();
    cluster_->network.SetAllLinks(cluster_->options.link);
  }
}

void World::Lag(uint32_t from, uint32_t to) {
  if (from == to || !cluster_->network.has_links()) return;
  LinkOptions lag = cluster_->options.link;
  lag.latency = lag.latency + UpTo(base::Milliseconds(80));
  cluster_->network.SetLink((*cluster_)[from].address, (*cluster_)[to].address, lag);
}

void World::Freeze(uint32_t node, base::Duration time) {
  frozen_until_[node] = cluster_->time.Now() + time;
  (*cluster_)[node].Freeze(random_.Chance(0.5) ? Host::Freezes{time, time, time} : Host::Freezes{time, {}, {}});
}

void World::Crash(uint32_t node) {
  Collect();
  asked_[node].clear();  // the programs die too
  events_[node].reset();
  history_.Lost(node, Now());
  if (node == 0) {
    directory_crashed_ = cluster_->time.Now();
    directory_asked_.reset();
    const int64_t begin = *std::min_element(all_announced_.begin(), all_announced_.end());
    history_.DirectoryForgot(begin, Now(), Now() + (kLease * 4).picoseconds());
    for (uint32_t i = 1; i < options_.nodes; ++i) {
      if (MembershipOf(i).fenced()) history_.SomeWereGivenUp();
    }
  }
  cluster_->Crash(node);
  cluster_->Restart(node);
  Watch(node);
}

// ---- the end

void World::Heal() {
  cluster_->network.Heal();
  LinkOptions clean;
  clean.picoseconds_per_byte = 80;
  cluster_->network.SetAllLinks(clean);
  cluster_->RunFor(kLease * 3 + base::Seconds(2));
  AwaitAll();
  cluster_->Settle();
  cluster_->RunFor(kGrace + kLease * 4);  // nodes that were given up are gone; deletions have been told
  cluster_->Settle();
}

// Twice: the first look may carry on a deletion that the directory had forgotten
// (docs/consistency.md).
void World::Judge() {
  ReadAll(/*last=*/false);
  cluster_->Settle();
  ReadAll(/*last=*/true);
  cluster_->Settle();
  cluster_->ExpectClean();
  const auto answered = [](const std::shared_ptr<Asked>& asked) {
    return asked->done || (asked->got != nullptr && asked->got->done);
  };
  if (std::any_of(dropped_.begin(), dropped_.end(), answered)) wrong_.push_back("what was dropped was answered");
}

// In a cluster that is well everything can be deleted, and put again.
void World::Finale() {
  for (uint32_t i = 0; i < options_.ids; ++i) DeleteFrom(AnyNode(), absl::StrCat("object", i));
  AwaitAll();
  deleted_.clear();
  cluster_->RunFor(base::Milliseconds(1));
  for (uint32_t i = 0; i < options_.ids; ++i) {
    for (uint32_t reader = 0; reader < std::min(options_.nodes, 9u); ++reader) {
      GetOn(reader, absl::StrCat("object", i), base::Milliseconds(1));
    }
  }
  AwaitAll();
  cluster_->Settle();
  directory::LocalDirectory& directory = *(*cluster_)[0].served();
  if (directory.objects() != 0)
    wrong_.push_back(absl::StrCat(directory.objects(), " objects are left in the directory"));
  if (!options_.calm) cluster_->RunUntil([&directory] { return directory.waiting() == 0; }, kMostSilence);
  if (directory.waiting() != 0) wrong_.push_back(absl::StrCat(directory.waiting(), " still wait in the directory"));
}

void World::AwaitAll() {
  const auto all_answered = [this] {
    Collect();
    return std::all_of(asked_.begin(), asked_.end(), [](const auto& asked) { return asked.empty(); });
  };
  if (!cluster_->RunUntil(all_answered, base::Seconds(60))) wrong_.push_back("something is never answered");
}

void World::ReadAll(bool last) {
  for (uint32_t i = 0; i < options_.ids; ++i) {
    const std::string id = absl::StrCat("object", i);
    std::vector<size_t> places;
    std::vector<std::shared_ptr<Got>> gots;
    for (uint32_t node = 0; node < options_.nodes; ++node) {
      const size_t place = Begin(Kind::kGet, node, id);
      if (last) history_.MarkLast(place);
      node::GetOptions options;
      options.timeout =
          base::Seconds(20);  // a connection to a node that was restarted is given up only after its retries
      const auto got = (*cluster_)[node].StartGet({id}, options);
      places.push_back(place);
      gots.push_back(got);
    }
    for (uint32_t node = 0; node < options_.nodes; ++node) {
      cluster_->Await(gots[node]);
      const node::GetResult& result = gots[node]->results.front();
      history_.End(places[node], OutcomeOf(result.status), Now(),
                   result.location.has_value() ? static_cast<uint64_t>(result.location->generation) : 0,
                   std::string(result.status.message()));
      (*cluster_)[node].Release(*gots[node]);
    }
  }
}

}  // namespace tokamak::sim
