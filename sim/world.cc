#include "sim/world.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"

namespace tokamak::sim {

namespace {

using Kind = Operation::Kind;
using Outcome = Operation::Outcome;

// A life has many leases.
constexpr base::Duration kLease = base::Milliseconds(500);
constexpr base::Duration kGrace = base::Milliseconds(2000);

Outcome OutcomeOf(const absl::Status& status) {
  if (status.ok()) return Outcome::kOk;
  if (absl::IsNotFound(status)) return Outcome::kNothing;
  if (absl::IsAlreadyExists(status)) return Outcome::kRefused;
  return Outcome::kFailed;
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
  for (double* fault : {&options.freeze, &options.cut, &options.partition, &options.crash, &options.directory_crash,
                        &options.slow, &options.loss}) {
    if (random.Chance(0.4)) *fault = 0;
  }
  return options;
}

World::World(const WorldOptions& options)
    : options_(options),
      random_(base::Random(options.seed).Fork(1)),
      cluster_(std::make_unique<Cluster>(Options(options, wrong_))),
      asked_(options.nodes) {
  HostOptions host;
  host.memory = 1 << 20;
  for (uint32_t i = 0; i < options_.nodes; ++i) {
    host.engines = i % 2;
    cluster_->Add(host);
  }
  cluster_->RunFor(base::Milliseconds(20));
}

World::~World() = default;

std::vector<std::string> World::Run() {
  for (uint32_t step = 0; step < options_.steps; ++step) {
    Act();
    Trouble();
    cluster_->RunFor(
        base::Duration::Picoseconds(static_cast<int64_t>(random_.Below(options_.most_between.picoseconds()))));
    Collect();
  }
  Heal();
  Judge();
  for (std::string& violation : history_.Violations()) wrong_.push_back(std::move(violation));
  return wrong_;
}

// ---- programs

void World::Act() {
  switch (random_.Below(10)) {
    case 0:
    case 1:
    case 2:
      return Put();
    case 3:
    case 4:
      return Delete();
    case 5:
      return DropSome();
    default:
      return Get();
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

void World::Put() {
  static constexpr uint64_t kSizes[] = {0, 64, 3000, 60'000, 150'000};
  const uint32_t node = AnyNode();
  const std::string id = AnyId();
  Host& host = (*cluster_)[node];
  const bool confirmed = random_.Chance(0.5);
  const absl::Status created = host.Create(id, kSizes[random_.Below(5)], random_.Below(3));
  if (!created.ok()) return;
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
    EndPut(place, s);
  });
  asked_[node].push_back(std::move(asked));
}

void World::EndPut(size_t place, const absl::Status& status) { history_.End(place, OutcomeOf(status), Now()); }

void World::Get() {
  const uint32_t node = AnyNode();
  const std::string id = AnyId();
  node::GetOptions options;
  options.timeout = base::Milliseconds(static_cast<int64_t>(random_.Below(1500)));
  options.protocol = static_cast<transport::Protocol>(random_.Below(4));
  auto asked = std::make_shared<Asked>();
  asked->place = Begin(Kind::kGet, node, id);
  asked->got = (*cluster_)[node].StartGet({id}, options);
  asked_[node].push_back(std::move(asked));
}

void World::Delete() {
  const uint32_t node = AnyNode();
  const std::string id = AnyId();
  auto asked = std::make_shared<Asked>();
  const size_t place = asked->place = Begin(Kind::kDelete, node, id);
  asked->handle = (*cluster_)[node].node().Delete(
      base::ObjectId::FromName(id), [this, place, asked = asked.get()](const absl::StatusOr<uint32_t>& copies) {
        asked->done = true;
        history_.End(place, OutcomeOf(copies.status()), Now(), 0, std::string(copies.status().message()));
      });
  asked_[node].push_back(std::move(asked));
}

// A program changes its mind.
void World::DropSome() {
  auto& asked = asked_[AnyNode()];
  if (asked.empty()) return;
  const size_t i = random_.Below(asked.size());
  Asked& dropped = *asked[i];
  if (dropped.got != nullptr && dropped.got->done) return;  // Collect gives its pins back
  dropped.handle.reset();
  if (dropped.got != nullptr) dropped.got->handle.reset();
  asked.erase(asked.begin() + static_cast<ptrdiff_t>(i));
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
  if (random_.Chance(options_.freeze)) {
    Host& host = (*cluster_)[AnyNode()];
    const base::Duration time = base::Duration::Picoseconds(
        static_cast<int64_t>(random_.Below(static_cast<uint64_t>((kLease * 3).picoseconds()))));
    host.Freeze(random_.Chance(0.5) ? Host::Freezes{time, time, time} : Host::Freezes{time, {}, {}});
  }
  if (random_.Chance(options_.cut)) {
    const verbs::Address directory = (*cluster_)[0].address, other = (*cluster_)[AnyNode()].address;
    if (directory != other) {
      cluster_->fabric.Cut(directory, other);
      cluster_->fabric.Cut(other, directory);
    }
  }
  if (random_.Chance(options_.partition)) cluster_->fabric.Partition({(*cluster_)[AnyNode()].address});
  if (random_.Chance(options_.crash) && options_.nodes > 1)
    Crash(1 + static_cast<uint32_t>(random_.Below(options_.nodes - 1)));
  if (random_.Chance(options_.directory_crash)) Crash(0);
  if (random_.Chance(options_.slow)) {
    LinkOptions slow = cluster_->options.link;
    slow.picoseconds_per_byte = 4'000'000;  // 2 Mb/s: the larger objects take longer than a lease
    const uint32_t a = AnyNode(), b = AnyNode();
    if (a != b) cluster_->fabric.SetLink((*cluster_)[a].address, (*cluster_)[b].address, slow);
  }
  if (random_.Chance(options_.mend)) {
    cluster_->fabric.Heal();
    cluster_->fabric.SetAllLinks(cluster_->options.link);
  }
}

void World::Crash(uint32_t node) {
  Collect();
  asked_[node].clear();  // the programs die too
  history_.Lost(node, Now());
  if (node == 0) {
    history_.DirectoryForgot(Now() - kLease.picoseconds(), Now(), Now() + (kLease * 4).picoseconds());
  }
  cluster_->Crash(node);
  cluster_->Restart(node);
}

// ---- the end

void World::Heal() {
  cluster_->fabric.Heal();
  LinkOptions clean;
  clean.picoseconds_per_byte = 80;
  cluster_->fabric.SetAllLinks(clean);
  cluster_->RunFor(kLease * 3 + base::Seconds(2));
  const auto all_answered = [this] {
    Collect();
    return std::all_of(asked_.begin(), asked_.end(), [](const auto& asked) { return asked.empty(); });
  };
  if (!cluster_->RunUntil(all_answered, base::Seconds(60))) wrong_.push_back("something is never answered");
  cluster_->Settle();
  cluster_->RunFor(kGrace + kLease * 4);  // nodes that were given up are gone; deletions have been told
  cluster_->Settle();
}

// Twice: the first look may carry on a deletion that the directory had forgotten (docs/consistency.md).
void World::Judge() {
  ReadAll(/*last=*/false);
  cluster_->Settle();
  ReadAll(/*last=*/true);
  cluster_->Settle();
  cluster_->ExpectClean();
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
