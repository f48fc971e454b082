#include "tests/daemon/full_store/full_store.h"

#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <iomanip>
#include <map>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/check.h"
#include "tests/daemon/full_store/full_store_object.h"
#include "tests/support/sanitized.h"

namespace tokamak::daemon {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kTick = 100;             // milliseconds between two looks at the stores
constexpr uint64_t kMostPause = 1500;  // milliseconds from one kill to the next
constexpr uint64_t kRoundedTo = 64;    // bytes: what an object takes of the arena is a multiple of it
constexpr size_t kWarmUp = 2 << 20;    // bytes of the object by which the nodes meet
// KiB that a daemon's own memory may grow by, whatever the programs do: records of some thousand
// objects, messages of 8 programs, connections of the engines.
constexpr uint64_t kMostGrowth = support::kSanitized ? 512 << 10 : 24 << 10;

uint64_t Taken(const ObjectInfo& object) {
  const uint64_t size = std::max<uint64_t>(object.data_size + object.metadata_size, 1);
  return (size + kRoundedTo - 1) / kRoundedTo * kRoundedTo;
}

}  // namespace

std::string FullStoreReport::Summary() const {
  std::ostringstream out;
  out << std::fixed << std::setprecision(0) << "full store for " << seconds << " s: " << created << " created, "
      << refused << " refused for want of room, " << aborted << " aborted, " << got << " got, " << missed
      << " not there, " << (verified_bytes >> 20) << " MiB verified, " << deleted << " deleted, " << evicted
      << " evicted, " << kills << " programs killed, stores " << std::setprecision(1) << mean_fill * 100
      << " % full, a daemon grew by at most " << most_memory_more << " KiB; at the end " << left_objects
      << " objects of " << left_bytes << " bytes, all whole, then none: ";
  if (wrong.empty()) return out.str() + "good";
  out << "NOT AS PROMISED";
  for (const std::string& what : wrong) out << "; " << what;
  return out.str();
}

FullStore::FullStore(const FullStoreOptions& options) : options_(options), random_(options.seed), nodes_(kNodes) {
  for (size_t i = 0; i < kNodes; ++i) {
    std::vector<std::string> flags = {"--memory", options_.memory};
    if (i > 0) {
      for (const std::string& flag : DirectoryOfNode1()) flags.push_back(flag);
    }
    nodes_[i].process = std::make_unique<TokdProcess>(folder_, static_cast<int>(i) + 1, flags);
    nodes_[i].process->AwaitReady();
    nodes_[i].client = std::make_unique<Client>(nodes_[i].process->Connect());
  }
  MeetOnce();
  for (Node& node : nodes_) {
    node.descriptors = node.process->descriptors();
    node.memory = node.process->own_memory();
  }
  FullStoreTally::MakeFile(folder_.Path("tally"));
  tally_ = FullStoreTally::Map(folder_.Path("tally"));
}

// Connections, and what else a daemon takes once.
void FullStore::MeetOnce() {
  for (size_t i = 0; i < kNodes; ++i) {
    const ObjectId id = ObjectId::FromName(absl::StrCat("warm-up ", i));
    const Status put = nodes_[i].client->Put(id, std::vector<uint8_t>(kWarmUp));
    CHECK(put.ok()) << put;
    for (Node& node : nodes_) CHECK(node.client->Get(id, kPatience).ok());
    const Status deleted = nodes_[i].client->Delete(id);
    CHECK(deleted.ok()) << deleted;
  }
}

void FullStore::StartProgram(size_t place) {
  os::ChildOptions options;
  const uint64_t seed = (options_.seed << 20) + ++last_seed_;
  options.argv = {"tests/daemon/full_store/full_store_program", nodes_[place % kNodes].process->socket(),
                  absl::StrCat(seed), folder_.Path("tally")};
  options.die_with_parent = true;
  auto process = os::ChildProcess::Start(options);
  CHECK(process.ok()) << process.status();
  programs_[place] = *std::move(process);
}

FullStoreReport FullStore::Run(std::ostream& out) {
  began_ = Clock::now();
  programs_.resize(static_cast<size_t>(options_.programs));
  for (size_t i = 0; i < programs_.size(); ++i) StartProgram(i);
  Live(out);
  programs_.clear();  // each is killed, in whatever it was doing
  report_.seconds = std::chrono::duration<double>(Clock::now() - began_).count();
  report_.mean_fill = fills_ / static_cast<double>(std::max<uint64_t>(samples_, 1));
  Judge();
  DeleteAll();
  CountTally();
  Expect(tally_->wrong == 0, absl::StrCat(tally_->wrong.load(), " objects had wrong bytes"));
  Expect(tally_->unexpected == 0, absl::StrCat(tally_->unexpected.load(), " answers were none that may be given"));
  Expect(report_.created > 0 && report_.got > 0 && report_.deleted > 0, "the programs did nothing");
  Expect(report_.refused > 0, "the stores were never full");
  return report_;
}

void FullStore::Live(std::ostream& out) {
  const Clock::time_point end = began_ + options_.duration;
  Clock::time_point next_kill = began_, next_line = began_ + options_.progress;
  while (Clock::now() < end) {
    poll(nullptr, 0, kTick);
    Sample();
    if (Clock::now() >= next_line) {
      out << Progress() << std::endl;
      next_line += options_.progress;
    }
    for (size_t i = 0; i < programs_.size(); ++i) {
      if (programs_[i]->running()) continue;
      Expect(false, absl::StrCat("program ", i, " ended by itself"));
      StartProgram(i);
    }
    if (Clock::now() < next_kill) continue;
    next_kill = Clock::now() + std::chrono::milliseconds(random_.Below(kMostPause));
    const size_t place = random_.Below(programs_.size());
    programs_[place].reset();
    ++report_.kills;
    StartProgram(place);
  }
}

void FullStore::Sample() {
  for (Node& node : nodes_) {
    fills_ += static_cast<double>(Number(*node.client, "store_used_bytes")) /
              static_cast<double>(node.client->capacity()) / kNodes;
    const uint64_t memory = node.process->own_memory();
    if (memory > node.memory) report_.most_memory_more = std::max(report_.most_memory_more, memory - node.memory);
  }
  ++samples_;
}

void FullStore::CountTally() {
  report_.created = tally_->created;
  report_.refused = tally_->refused;
  report_.aborted = tally_->aborted;
  report_.got = tally_->got;
  report_.verified_bytes = tally_->verified_bytes;
  report_.missed = tally_->missed;
  report_.deleted = tally_->deleted;
}

std::string FullStore::Progress() const {
  std::ostringstream out;
  out << std::fixed << std::setprecision(0) << std::setw(4)
      << std::chrono::duration<double>(Clock::now() - began_).count() << " s: " << tally_->created << " created, "
      << tally_->refused << " refused, " << tally_->got << " got, " << (tally_->verified_bytes >> 20)
      << " MiB verified, " << tally_->wrong << " wrong, " << tally_->deleted << " deleted, " << report_.kills
      << " killed; stores " << std::setprecision(1) << fills_ / static_cast<double>(samples_) * 100
      << " % full, grown by " << report_.most_memory_more << " KiB";
  return out.str();
}

void FullStore::Expect(bool good, const std::string& what) {
  if (!good) report_.wrong.push_back(what);
}

void FullStore::Judge() {
  for (size_t i = 0; i < kNodes; ++i) {
    Node& node = nodes_[i];
    const std::string name = absl::StrCat("node", i + 1);
    for (const char* number : {"store_unsealed_objects", "store_quarantined_bytes", "store_pins", "pins_of_peers",
                               "pulls_running", "store_waiting_creates", "directory_updates_behind"}) {
      const bool none = Eventually([&] { return Number(*node.client, number) == 0; });
      Expect(none, absl::StrCat(name, " has ", number, " ", Number(*node.client, number), " without a program"));
    }
    report_.evicted += Number(*node.client, "store_evicted_pulled_objects_total");
    Expect(Number(*node.client, "store_evicted_created_here_objects_total") == 0, name + " evicted what was put");
  }
  for (size_t i = 0; i < kNodes; ++i) JudgeAccount(nodes_[i], absl::StrCat("node", i + 1));
}

void FullStore::JudgeAccount(Node& node, const std::string& name) {
  std::map<ObjectId, FullStoreObject> known;
  for (uint64_t number = 0; number < FullStoreObject::kNumbers; ++number) {
    const FullStoreObject object(number);
    known.emplace(object.id(), object);
  }
  const auto objects = node.client->List();
  Expect(objects.ok(), absl::StrCat(name, " does not list its objects: ", objects.status().ToString()));
  if (!objects.ok()) return;
  uint64_t taken = 0, bytes = 0;
  for (const ObjectInfo& info : *objects) {
    taken += Taken(info);
    bytes += info.data_size + info.metadata_size;
    const auto object = known.find(info.id);
    const auto buffer = node.client->Get(info.id, Timeout());
    const bool whole = object != known.end() && info.state == ObjectState::kSealed && buffer.ok() &&
                       object->second.Is(buffer->data(), buffer->metadata());
    Expect(whole, absl::StrCat(name, ": object ", info.id.ToHex(), " is not whole"));
  }
  const uint64_t used = Number(*node.client, "store_used_bytes"), sealed = Number(*node.client, "store_sealed_bytes");
  Expect(used == taken, absl::StrCat(name, " uses ", used, " bytes, and its objects take ", taken));
  Expect(sealed == bytes, absl::StrCat(name, " counts ", sealed, " bytes, and its objects have ", bytes));
  report_.left_objects += objects->size();
  report_.left_bytes += bytes;
}

void FullStore::DeleteAll() {
  for (Node& node : nodes_) {
    const auto objects = node.client->List();
    if (!objects.ok()) return Expect(false, objects.status().ToString());
    for (const ObjectInfo& info : *objects) {
      const Status deleted = node.client->Delete(info.id);
      Expect(deleted.ok() || deleted.code() == StatusCode::kNotFound, deleted.ToString());
    }
  }
  for (size_t i = 0; i < kNodes; ++i) {
    Node& node = nodes_[i];
    const std::string name = absl::StrCat("node", i + 1);
    for (const char* number : {"store_used_bytes", "store_sealed_objects", "store_pins"}) {
      const bool none = Eventually([&] { return Number(*node.client, number) == 0; });
      Expect(none, absl::StrCat(name, " has ", number, " ", Number(*node.client, number), " after all was deleted"));
    }
    Expect(Number(*node.client, "store_lost_objects_total") == 0, name + " lost objects");
    const bool closed = Eventually([&] { return node.process->descriptors() <= node.descriptors; });
    Expect(closed,
           absl::StrCat(name, " has ", node.process->descriptors(), " descriptors, and had ", node.descriptors));
  }
  Expect(report_.most_memory_more <= kMostGrowth,
         absl::StrCat("a daemon's own memory grew by ", report_.most_memory_more, " KiB, of at most ", kMostGrowth));
}

}  // namespace tokamak::daemon
