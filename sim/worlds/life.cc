#include "sim/worlds/life.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "lib/node/pulls/object_keep.h"
#include "sim/cluster/simulated_security.h"

namespace tokamak::sim {

namespace {

using Kind = Operation::Kind;
using Outcome = Operation::Outcome;

// Beyond this, dropped waits are left in the directory.
constexpr size_t kMostWaiting = 1000;
constexpr base::Duration kPatience =
    base::Milliseconds(40);                              // two round trips to the directory, at the longest latency
constexpr base::Duration kRecovery = base::Seconds(30);  // of a healthy cluster: connections, leases, deletions

Outcome OutcomeOf(const absl::Status& status) {
  if (status.ok()) return Outcome::kOk;
  if (absl::IsNotFound(status)) return Outcome::kNothing;
  if (absl::IsAlreadyExists(status)) return Outcome::kRefused;
  if (absl::IsUnavailable(status)) return Outcome::kFailed;
  return Outcome::kWrong;
}

Outcome OutcomeOfGet(const absl::Status& status) {
  return absl::IsDeadlineExceeded(status) ? Outcome::kFailed : OutcomeOf(status);
}

// A put deleted before its answer: none in the contract.
Outcome OutcomeOfPut(const absl::Status& status) {
  return absl::IsAborted(status) ? Outcome::kNothing : OutcomeOf(status);
}

ClusterOptions OptionsOf(const WorldOptions& world, std::vector<std::string>& wrong) {
  ClusterOptions options;
  options.seed = world.seed;
  options.membership.lease = world.lease;
  options.membership.grace = world.grace();
  options.membership.renew = world.lease * 3 / 10;
  options.membership.directory_deadline = world.directory_deadline();
  options.membership.retry = world.lease / 50;
  options.membership.verify_every = world.lease * 2;
  options.membership.max_dirty = world.max_dirty;
  options.membership.words_at_once = world.words_at_once;
  options.max_engine_calls = world.engine_calls;
  options.endpoint.reliability.ack_timeout = world.ack_timeout;
  if (world.secured) options.endpoint.security = SecurityOfSeed(world.seed);
  options.directory_recovery = world.lease;
  options.directory_waiting = kMostWaiting;
  options.directory_tombstones = world.tombstones;
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

Life::Life(const WorldOptions& o)
    : options(o),
      random(base::Random(o.seed).Fork(1)),
      cluster_(std::make_unique<Cluster>(OptionsOf(o, wrong_))),
      asked_(o.nodes),
      events_(o.nodes),
      frozen_until_(o.nodes),
      all_announced_(o.nodes),
      loads_(o.nodes) {
  history.IsComplete();
  if (options.calm) history.IsCalm(kPatience.picoseconds());
  HostOptions host;
  host.memory = 1 << 20;
  for (uint32_t i = 0; i < options.nodes; ++i) {
    host.engines = i % 2;
    cluster_->Add(host);
    Subscribe(i);
  }
  cluster_->RunFor(base::Milliseconds(20));
}

Life::~Life() = default;

std::vector<std::string> Life::Violations() const {
  std::vector<std::string> all = wrong_;
  for (std::string& violation : history.Violations()) all.push_back(std::move(violation));
  return all;
}

uint32_t Life::AnyNodeBut(uint32_t node) {
  const auto other = static_cast<uint32_t>(random.Below(options.nodes - 1));
  return other < node ? other : other + 1;
}

// ---- time

// Programs that hear of a finished deletion act at once.
void Life::Pass(base::Duration time) {
  const base::Time end = Now() + time;
  do {
    PassUntil(end);
    if (!deleted_.empty()) {
      const auto [node, id] = deleted_.back();
      deleted_.pop_back();
      cluster_->RunFor(base::Duration::Picoseconds(1));  // later than the answer
      if (on_deleted_ != nullptr) on_deleted_(node, id);
    }
  } while (!deleted_.empty() || Now() < end);
}

// Stops when the nodes' state must be looked at.
void Life::PassUntil(base::Time end) {
  while (true) {
    base::Time stop = std::min(end, Now() + options.lease / 8);
    if (outage_.has_value() && !outage_->counted) stop = std::min(stop, outage_->begin + options.directory_deadline());
    if (outage_.has_value() && !outage_->looked) stop = std::min(stop, outage_->begin + options.lease);
    const bool any_deleted = cluster_->RunUntil([this] { return !deleted_.empty(); }, stop - Now());
    LookWhoIsFenced();
    LookAtOutage();
    for (uint32_t node = 0; node < options.nodes; ++node) {
      if (HasToldAll(node)) all_announced_[node] = When();
    }
    if (any_deleted || Now() >= end) return;
  }
}

void Life::LookWhoIsFenced() {
  for (uint32_t node = 0; node < options.nodes; ++node) {
    if (MembershipOf(node).fenced()) history.Lost(node, When());
  }
}

bool Life::HasToldAll(uint32_t node) {
  const node::Membership& membership = MembershipOf(node);
  if (!membership.joined() || membership.behind() != 0 || frozen_until_[node] >= Now()) return false;
  // Before, it has not noticed the directory's restart.
  return !outage_.has_value() || (outage_->counted && membership.counters().renewals > outage_->renewals[node]);
}

void Life::CountRenewals() {
  for (uint32_t node = 0; node < options.nodes; ++node) {
    outage_->renewals[node] = node == 0 ? 0 : MembershipOf(node).counters().renewals;
  }
}

void Life::LookAtOutage() {
  if (outage_.has_value() && !outage_->counted && Now() >= outage_->begin + options.directory_deadline()) {
    outage_->counted = true;
    CountRenewals();
  }
  if (!outage_.has_value() || Now() < outage_->begin + options.lease) return;
  if (!std::exchange(outage_->looked, true)) {
    for (uint32_t node = 1; node < options.nodes; ++node) {
      if (MembershipOf(node).counters().renewals > outage_->renewals[node]) continue;
      outage_->cut_off[node] = true;
      history.WasCutOff(node);
    }
  }
  for (uint32_t node = 0; node < options.nodes; ++node) {
    if (!outage_->cut_off[node] && !HasToldAll(node)) return;
  }
  EndOutage();
}

void Life::EndOutage() {
  outage_.reset();
  history.DirectoryKnows(When());
}

// ---- programs

size_t Life::Begin(Kind kind, uint32_t node, const std::string& id) {
  Operation operation;
  operation.kind = kind;
  operation.node = node;
  operation.id = id;
  operation.begin = When();
  operation.end = INT64_MAX;
  return history.Begin(operation);
}

void Life::PutOn(uint32_t node, const std::string& id, uint64_t size, bool confirmed) {
  Host& host = (*cluster_)[node];
  const absl::Status created = host.Create(id, size, random.Below(3));
  if (!created.ok()) return;
  last_[id] = {node, size};
  const base::ObjectId object = base::ObjectId::FromName(id);
  const base::Generation generation = host.store().Stat(object)->location.generation;
  Operation put;
  put.kind = Kind::kPut;
  put.node = node;
  put.id = id;
  put.begin = When();
  put.end = INT64_MAX;
  put.content = static_cast<uint64_t>(generation);
  put.confirmed = confirmed;
  const size_t place = history.Begin(put);
  if (!host.Seal(id).ok()) Wrong("an object could not be sealed");
  if (!confirmed) return history.End(place, Outcome::kOk, When());
  auto asked = std::make_shared<Asked>();
  asked->place = place;
  asked->handle = host.node().Confirm({object, generation}, [this, place, asked = asked.get()](const absl::Status& s) {
    LookWhoIsFenced();
    asked->done = true;
    history.End(place, OutcomeOfPut(s), When(), 0, std::string(s.message()));
  });
  asked_[node].push_back(std::move(asked));
}

void Life::GetOn(uint32_t node, const std::string& id, base::Duration timeout) {
  node::GetOptions get;
  get.timeout = timeout;
  get.protocol = static_cast<transport::Protocol>(random.Below(4));
  auto asked = std::make_shared<Asked>();
  asked->place = Begin(Kind::kGet, node, id);
  asked->got = (*cluster_)[node].StartGet({id}, get);
  asked_[node].push_back(std::move(asked));
}

void Life::DeleteFrom(uint32_t node, const std::string& id) {
  auto asked = std::make_shared<Asked>();
  const size_t place = asked->place = Begin(Kind::kDelete, node, id);
  asked_to_delete_.insert(base::ObjectId::FromName(id));
  asked->handle = (*cluster_)[node].node().Delete(
      base::ObjectId::FromName(id),
      [this, place, node, id, asked = asked.get()](const absl::StatusOr<uint32_t>& copies) {
        LookWhoIsFenced();
        asked->done = true;
        history.End(place, OutcomeOf(copies.status()), When(), 0, std::string(copies.status().message()));
        if (absl::StartsWith(copies.status().message(), "nothing was deleted")) history.MarkUndone(place);
        if (absl::StartsWith(copies.status().message(), "deleted on all nodes")) history.MarkDecided(place);
        if (copies.ok() && absl::StartsWith(id, "object")) deleted_.emplace_back(node, id);
      });
  asked_[node].push_back(std::move(asked));
}

std::shared_ptr<Life::Asked> Life::Locate(uint32_t node, const std::string& id, base::Duration wait) {
  auto asked = std::make_shared<Asked>();
  asked->handle = (*cluster_)[node].node().Locate(
      base::ObjectId::FromName(id), wait,
      [this, asked = asked.get()](const absl::StatusOr<directory::LocatedObject>& info) {
        asked->done = true;
        if (OutcomeOfGet(info.status()) == Outcome::kWrong) Wrong(info.status().ToString());
      });
  return asked;
}

void Life::ReadEverywhere(const std::string& id) {
  for (uint32_t reader = 0; reader < std::min(options.nodes, kMostReaders); ++reader) {
    GetOn(options.nodes > kMostReaders ? AnyNode() : reader, id, UpTo(base::Milliseconds(200)));
  }
}

void Life::Fetch(uint32_t node, const std::string& id) {
  GetOn(node, id, base::Milliseconds(400));
  const std::shared_ptr<Got> got = asked_[node].back()->got;
  cluster_->RunUntil([&got] { return got->done; }, base::Milliseconds(400));
  Collect();
}

void Life::DropOne(uint32_t node, size_t which) {
  const std::shared_ptr<Asked> asked = asked_[node][which];
  if (asked->got != nullptr && asked->got->done) return;  // Collect gives its pins back
  asked_[node].erase(asked_[node].begin() + static_cast<ptrdiff_t>(which));
  Drop(asked);
}

void Life::Drop(std::shared_ptr<Asked> asked) {
  asked->handle.reset();
  if (asked->got != nullptr) asked->got->handle.reset();
  if (!asked->done) dropped_.push_back(std::move(asked));
}

bool Life::any_dropped_answered() const {
  return std::any_of(dropped_.begin(), dropped_.end(), [](const std::shared_ptr<Asked>& asked) {
    return asked->done || (asked->got != nullptr && asked->got->done);
  });
}

// Hears of refusals after the put.
void Life::Subscribe(uint32_t node) {
  events_[node] = (*cluster_)[node].store().Subscribe([this](absl::Span<const store::Event> events) {
    for (const store::Event& event : events) {
      if (event.kind != store::Event::Kind::kRefused || event.origin != store::Origin::kCreatedHere) continue;
      for (const auto& [id, last] : last_) {
        if (base::ObjectId::FromName(id) == event.id)
          history.Refused(id, static_cast<uint64_t>(event.generation), When());
      }
    }
  });
}

void Life::Collect() {
  for (uint32_t node = 0; node < options.nodes; ++node) {
    auto& asked = asked_[node];
    for (auto& one : asked) {
      if (one->got != nullptr && one->got->done) {
        const node::GetResult& result = one->got->results.front();
        if (!one->done) {
          one->done = true;
          history.End(one->place, OutcomeOfGet(result.status), one->got->done_at.picoseconds(),
                      result.location.has_value() ? static_cast<uint64_t>(result.location->generation) : 0);
        }
        if (random.Chance(0.2)) continue;
        (*cluster_)[node].Release(*one->got);
        one.reset();
      } else if (one->got == nullptr && one->done) {
        one.reset();
      }
    }
    asked.erase(std::remove(asked.begin(), asked.end(), nullptr), asked.end());
  }
}

bool Life::Await(uint32_t node, base::Duration limit) {
  const base::Time end = Now() + limit;
  while (Now() < end) {
    Collect();
    if (asked_[node].empty()) return true;
    Pass(std::min(end - Now(), options.lease / 20));
  }
  return asked_[node].empty();
}

void Life::AwaitLast(uint32_t node, base::Duration limit) {
  const std::shared_ptr<Asked> last = asked_[node].back();
  cluster_->RunUntil([&last] { return last->done; }, limit);
}

void Life::AwaitAll() {
  const auto all_answered = [this] {
    Collect();
    return std::all_of(asked_.begin(), asked_.end(), [](const auto& asked) { return asked.empty(); });
  };
  if (!cluster_->RunUntil(all_answered, base::Seconds(60))) Wrong("something is never answered");
}

void Life::ReadAtTheEnd(const std::string& id, bool last) {
  std::vector<size_t> places;
  std::vector<std::shared_ptr<Got>> gots;
  for (uint32_t node = 0; node < options.nodes; ++node) {
    const size_t place = Begin(Kind::kGet, node, id);
    if (last) history.MarkLast(place);
    node::GetOptions get;
    get.timeout = base::Seconds(20);  // a connection to a restarted node is given up only after its retries
    places.push_back(place);
    gots.push_back((*cluster_)[node].StartGet({id}, get));
  }
  for (uint32_t node = 0; node < options.nodes; ++node) {
    cluster_->Await(gots[node]);
    const node::GetResult& result = gots[node]->results.front();
    history.End(places[node], OutcomeOfGet(result.status), When(),
                result.location.has_value() ? static_cast<uint64_t>(result.location->generation) : 0,
                std::string(result.status.message()));
    (*cluster_)[node].Release(*gots[node]);
  }
}

void Life::Load(uint32_t node, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    if (!(*cluster_)[node].Put(LoadName(node, loads_[node]), 64).ok()) return;
    ++loads_[node];
  }
}

void Life::Fill(uint32_t node) {
  constexpr uint64_t kSize = 20'000;
  const uint32_t first = loads_[node];
  while ((*cluster_)[node].Put(LoadName(node, loads_[node]), kSize).ok()) ++loads_[node];
  if (random.Chance(0.5)) return;
  for (uint32_t i = first; i < loads_[node]; i += 2) DeleteLoad(node, i);
}

void Life::Unload(uint32_t node) {
  for (uint32_t i = 0; i < loads_[node]; ++i) DeleteLoad(node, i);
  loads_[node] = 0;
}

void Life::DeleteLoad(uint32_t node, uint32_t i) {
  (*cluster_)[node].store().Delete(base::ObjectId::FromName(LoadName(node, i))).IgnoreError();  // gone already
}

// ---- faults

void Life::Freeze(uint32_t node, base::Duration time) {
  if (random.Chance(0.5)) return FreezeAll(node, time);
  frozen_until_[node] = std::max(frozen_until_[node], Now() + time);
  (*cluster_)[node].Freeze({time, {}, {}});
}

void Life::FreezeAll(uint32_t node, base::Duration time) {
  frozen_until_[node] = std::max(frozen_until_[node], Now() + time);
  (*cluster_)[node].Freeze({time, time, time});
}

void Life::Crash(uint32_t node) {
  Collect();
  asked_[node].clear();  // the programs die too
  events_[node].reset();
  loads_[node] = 0;
  LookWhoIsFenced();
  history.Lost(node, When());
  if (node == 0) {
    if (outage_.has_value()) EndOutage();
    history.DirectoryForgot(*std::min_element(all_announced_.begin(), all_announced_.end()), When());
    outage_.emplace();
    outage_->begin = Now();
    outage_->cut_off.resize(options.nodes);
    outage_->renewals.resize(options.nodes);
    CountRenewals();
    for (uint32_t i = 1; i < options.nodes; ++i) {
      if (MembershipOf(i).fenced()) history.WasCutOff(i);
    }
  } else if (outage_.has_value()) {
    outage_->renewals[node] = 0;
  }
  cluster_->Crash(node);
  cluster_->Restart(node);
  Subscribe(node);
}

void Life::Cut(uint32_t node) {
  const verbs::Address directory = (*cluster_)[0].address, other = (*cluster_)[node].address;
  if (directory == other) return;
  cluster_->network.Cut(directory, other);
  cluster_->network.Cut(other, directory);
}

void Life::Slow(uint32_t a, uint32_t b) {
  if (a == b || !cluster_->network.has_links()) return;
  LinkOptions slow = cluster_->options.link;
  slow.picoseconds_per_byte = 4'000'000;  // 2 Mb/s: larger objects outlast a lease
  cluster_->network.SetLink((*cluster_)[a].address, (*cluster_)[b].address, slow);
}

void Life::Lag(uint32_t from, uint32_t to, base::Duration more) {
  if (from == to || !cluster_->network.has_links()) return;
  LinkOptions lag = cluster_->options.link;
  lag.latency = lag.latency + more;
  cluster_->network.SetLink((*cluster_)[from].address, (*cluster_)[to].address, lag);
}

void Life::Mend() {
  cluster_->network.Heal();
  cluster_->network.SetAllLinks(cluster_->options.link);
}

void Life::LoseEntry(const std::string& id) {
  for (uint32_t node = 0; node < options.nodes; ++node) {
    const auto here = (*cluster_)[node].store().Stat(base::ObjectId::FromName(id));
    if (!here.ok()) continue;
    directory::Update lost;
    lost.kind = directory::Update::Kind::kWithdraw;
    lost.version = here->version();
    (*cluster_)[0].served()->Update((*cluster_)[node].name, {}, {lost}, base::Duration(), [](const auto&) {}).reset();
  }
}

bool Life::Recover() {
  Mend();
  const base::Time end = Now() + kRecovery;
  while (Now() < end) {
    Pass(options.lease / 4);
    bool all = !outage_.has_value();
    for (uint32_t node = 0; node < options.nodes; ++node) {
      all = all && HasToldAll(node) && !MembershipOf(node).fenced() && !MembershipOf(node).directory_away();
    }
    if (!all) continue;
    NoteThatAllIsTold();
    return true;
  }
  return false;
}

// ---- a node that ends in order

// True if a healthy node has room in one piece, beside its programs' part.
bool Life::HasRoom(uint32_t leaving, uint64_t bytes) const {
  for (uint32_t node = 0; node < options.nodes; ++node) {
    if (node == leaving || frozen_until_[node] >= Now()) continue;
    const auto store = (*cluster_)[node].store().statistics();
    if (store.largest_free_bytes >= bytes + store.capacity_bytes / node::ObjectKeep::kPartOfPrograms) return true;
  }
  return false;
}

void Life::Evacuate(uint32_t node, const std::function<void(bool evacuated)>& meanwhile) {
  constexpr base::Duration kLimit = base::Seconds(100);
  constexpr uint64_t kPutMeanwhile = 64 << 10;  // and gaps between objects
  Host& host = (*cluster_)[node];
  const base::Time begin = Now();
  asked_to_delete_.clear();
  const bool had_room = HasRoom(node, host.store().statistics().used_bytes + kPutMeanwhile);
  std::optional<node::EvacuationReport> report;
  base::Time evacuated_at;
  bool drained = false;
  base::Pending evacuation = host.Leave(
      kLimit,
      [&](const node::EvacuationReport& r) {
        report = r;
        evacuated_at = Now();
        meanwhile(/*evacuated=*/true);  // programs may put until the machine ends
      },
      [&drained] { drained = true; });
  base::Duration step = base::Microseconds(100);
  while (!drained && Now() < begin + kLimit * 2) {
    meanwhile(report.has_value());
    Pass(step);
    if (!report.has_value()) step = std::min(step * 5 / 4, options.lease / 4);
    Collect();
  }
  evacuation.reset();
  if (!drained) {
    Wrong(absl::StrCat("n", node, " does not end"));
    return Crash(node);
  }
  LookWhatIsLeft(node, *report, had_room);
  if (had_room && evacuated_at - begin >= kLimit * 9 / 10) {
    Wrong(absl::StrCat("evacuated: n", node, " took all of its time though there was room"));
  }
  asked_[node].clear();
  events_[node].reset();
  loads_[node] = 0;
  if (report->left_objects > 0) {
    history.Lost(node, When());
  } else {
    history.Left(node, begin.picoseconds(), When());
  }
  cluster_->Crash(node);
  cluster_->Restart(node);
  Subscribe(node);
}

void Life::LookWhatIsLeft(uint32_t node, const node::EvacuationReport& report, bool had_room) {
  uint64_t missing = 0;
  std::string one;
  for (const store::StoredObject& object : (*cluster_)[node].store().List(SIZE_MAX)) {
    if (object.state != store::State::kSealed || object.origin != store::Origin::kCreatedHere) continue;
    if (asked_to_delete_.count(object.id) != 0) continue;  // perhaps after this node had left
    bool is_kept = false;
    for (uint32_t other = 0; other < options.nodes; ++other) {
      if (other == node) continue;
      const auto there = (*cluster_)[other].store().Stat(object.id);
      is_kept = is_kept || (there.ok() && there->version() == object.version() &&
                            there->state == store::State::kSealed && there->origin == store::Origin::kCreatedHere);
    }
    if (is_kept) continue;
    ++missing;
    one = object.id.ToHex();
  }
  const std::string who = absl::StrCat("evacuated: n", node, " handed over ", report.objects, " objects, ");
  if (report.left_objects > 0 && had_room) {
    Wrong(absl::StrCat(who, "and left ", report.left_objects, " though there was room: ", report.trouble.ToString()));
  }
  if (missing > report.left_objects) {
    Wrong(absl::StrCat(who, "named ", report.left_objects, " that are left, but ", missing, " are, such as ", one));
  }
}

// ---- the end

void Life::Heal() {
  cluster_->network.Heal();
  LinkOptions clean;
  clean.picoseconds_per_byte = 80;
  cluster_->network.SetAllLinks(clean);
  cluster_->RunFor(options.lease * 3 + base::Seconds(2));
  AwaitAll();
  for (uint32_t node = 0; node < options.nodes; ++node) Unload(node);
  cluster_->Settle();
  cluster_->RunFor(options.grace() + options.lease * 4);  // given-up nodes are gone; deletions have arrived
  cluster_->Settle();
  if (outage_.has_value()) EndOutage();
  NoteThatAllIsTold();
}

void Life::NoteThatAllIsTold() {
  for (uint32_t node = 0; node < options.nodes; ++node) history.HasToldAll(node, When());
}

}  // namespace tokamak::sim
