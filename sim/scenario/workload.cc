#include "sim/scenario/workload.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <numeric>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "lib/base/units.h"
#include "sim/scenario/size_distribution.h"

namespace tokamak::sim {
namespace {

// Beyond, the file is a mistake.
constexpr uint32_t kMostTransfers = 4'000'000;
constexpr uint64_t kMostBytes = 1 << 30;  // per transfer

}  // namespace

std::string Workload::Read(uint32_t group, JsonObject* object, std::vector<Transfer>* transfers,
                           std::vector<StoreObject>* objects) {
  object_ = object;
  transfers_ = transfers;
  objects_ = objects;
  next_ = Transfer();
  next_.group = group;
  one_object_ = false;
  std::string kind;
  object->Read("kind", &kind);
  std::string name = kind;
  object->Read("name", &name);
  object->Read("start", &next_.start);
  ReadWay();
  const std::vector<std::pair<const char*, void (Workload::*)()>> kinds = {
      {"flow", &Workload::Flow},       {"incast", &Workload::Incast},
      {"fan-out", &Workload::FanOut},  {"permutation", &Workload::Permutation},
      {"shuffle", &Workload::Shuffle}, {"all-reduce-ring", &Workload::AllReduceRing},
      {"poisson", &Workload::Poisson}, {"trace", &Workload::Trace},
  };
  const auto found = std::find_if(kinds.begin(), kinds.end(), [&](const auto& one) { return one.first == kind; });
  if (found == kinds.end()) {
    object->error().Note(object->PlaceOf("kind"),
                         absl::StrCat("there is no '", kind,
                                      "'; there are flow, incast, fan-out, permutation, shuffle, all-reduce-ring, "
                                      "poisson and trace"));
    return name;
  }
  (this->*found->second)();
  object->Finish();
  return name;
}

void Workload::ReadWay() {
  std::string through = "network";
  object_->Read("through", &through);
  if (through == "store") {
    next_.way = Transfer::Way::kGet;
    next_.verb = verbs::Opcode::kRead;
    return ReadProtocol();
  }
  if (through != "network") object_->error().Note(object_->PlaceOf("through"), "it is \"network\" or \"store\"");
  ReadVerb();
}

void Workload::ReadVerb() {
  std::string verb = "write";
  object_->Read("verb", &verb);
  if (verb == "read") {
    next_.verb = verbs::Opcode::kRead;
  } else if (verb == "send") {
    next_.verb = verbs::Opcode::kSend;
  } else if (verb != "write") {
    object_->error().Note(object_->PlaceOf("verb"), "it is \"write\", \"read\" or \"send\"");
  }
}

void Workload::ReadProtocol() {
  using transport::Protocol;
  std::string text = transport::ToString(Protocol::kAuto);
  object_->Read("protocol", &text);
  for (Protocol protocol : {Protocol::kAuto, Protocol::kEager, Protocol::kRead, Protocol::kWrite}) {
    if (text != transport::ToString(protocol)) continue;
    next_.protocol = protocol;
    return;
  }
  object_->error().Note(object_->PlaceOf("protocol"), "it is \"auto\", \"eager\", \"read\" or \"write\"");
}

void Workload::Flow() {
  const uint32_t from = ReadHost("from", 0);
  const uint32_t to = ReadHost("to", 1);
  uint32_t count = 1;
  object_->Read("count", 1, kMostTransfers, &count);
  const uint32_t bytes = ReadBytes();
  if (from == to) return object_->error().Note(object_->PlaceOf("to"), "it must be another host than \"from\"");
  AddRepeated(from, to, bytes, count);
}

void Workload::Incast() {
  const uint32_t to = ReadHost("to", 0);
  std::vector<uint32_t> senders = ReadHosts("from", to);
  uint32_t count = 1;
  object_->Read("count", 1, kMostTransfers, &count);
  const uint32_t bytes = ReadBytes();
  if (object_->Has("senders")) {
    uint32_t most = 0;
    object_->Read("senders", 1, senders.size(), &most);
    senders.resize(std::min<size_t>(most, senders.size()));
  }
  for (uint32_t from : senders) AddRepeated(from, to, bytes, count);
}

void Workload::FanOut() {
  const uint32_t from = ReadHost("from", 0);
  const std::vector<uint32_t> receivers = ReadHosts("to", from);
  const uint32_t bytes = ReadBytes();
  base::Duration gap;
  object_->Read("gap", &gap);
  if (ThroughStore()) AddObject(from, bytes, /*there_before=*/true);
  one_object_ = true;
  for (uint32_t to : receivers) {
    Add(from, to, bytes);
    next_.start = next_.start + gap;
  }
}

// Each host sends to one, and receives from one, other than itself.
void Workload::Permutation() {
  const std::vector<uint32_t> hosts = ReadHosts("hosts");
  const auto n = static_cast<uint32_t>(hosts.size());
  const uint32_t bytes = ReadBytes();
  if (n < 2) return object_->error().Note(object_->PlaceOf("hosts"), "at least two are needed");
  uint32_t shift = 0;
  object_->Read("shift", 1, n - 1, &shift);
  std::vector<uint32_t> to(n);
  std::iota(to.begin(), to.end(), 0);
  if (shift != 0) {
    for (uint32_t i = 0; i < n; ++i) to[i] = (i + shift) % n;
  } else {
    // Sattolo's shuffle: one cycle, no fixed point.
    base::Random random = random_.Fork(next_.group);
    for (uint32_t i = n - 1; i > 0; --i) std::swap(to[i], to[random.Below(i)]);
  }
  for (uint32_t i = 0; i < n; ++i) Add(hosts[i], hosts[to[i]], bytes);
}

// A host's partners are spread evenly: as many write to each.
void Workload::Shuffle() {
  const std::vector<uint32_t> hosts = ReadHosts("hosts");
  const uint32_t bytes = ReadBytes();
  const size_t n = hosts.size();
  if (n < 2) return object_->error().Note(object_->PlaceOf("hosts"), "at least two are needed");
  auto partners = static_cast<uint32_t>(n - 1);
  object_->Read("partners", 1, n - 1, &partners);
  for (size_t k = 0; k < partners; ++k) {
    const size_t distance = 1 + k * (n - 1) / partners;
    for (size_t i = 0; i < n; ++i) Add(hosts[i], hosts[(i + distance) % n], bytes);
  }
}

// In 2 (n - 1) rounds each host sends a piece to its successor, once it has its predecessor's.
void Workload::AllReduceRing() {
  if (ThroughStore()) {
    return object_->error().Note(object_->PlaceOf("through"),
                                 "pieces of a ring are messages, not objects; leave it out, or take another kind");
  }
  const std::vector<uint32_t> hosts = ReadHosts("hosts");
  const auto n = static_cast<uint32_t>(hosts.size());
  const uint32_t bytes = ReadBytes();
  if (n < 2) return object_->error().Note(object_->PlaceOf("hosts"), "at least two are needed");
  const auto first = static_cast<uint32_t>(transfers_->size());
  for (uint32_t round = 0; round < 2 * (n - 1); ++round) {
    for (uint32_t i = 0; i < n; ++i) {
      next_.after.reset();
      if (round != 0) next_.after = first + (round - 1) * n + (i + n - 1) % n;
      Add(hosts[i], hosts[(i + 1) % n], (bytes + n - 1) / n);
    }
  }
}

void Workload::Poisson() {
  const std::vector<uint32_t> hosts = ReadHosts("hosts");
  double load = 0.5;
  uint32_t count = 1000;
  object_->Read("load", &load);
  object_->Read("transfers", 1, kMostTransfers, &count);
  const std::string path = ReadPath("sizes");
  if (hosts.size() < 2) return object_->error().Note(object_->PlaceOf("hosts"), "at least two are needed");
  if (load <= 0 || load > 2) {
    return object_->error().Note(object_->PlaceOf("load"), "a part of what hosts can send, above 0 and at most 2");
  }
  if (path.empty()) return;
  const absl::StatusOr<SizeDistribution> sizes = SizeDistribution::ReadFile(path);
  if (!sizes.ok()) return object_->error().Note(object_->PlaceOf("sizes"), sizes.status().message());
  base::Random random = random_.Fork(next_.group);
  const double mean_gap = 8 * sizes->Mean() / (load * HostBitsPerSecond(hosts));  // seconds
  double time = next_.start.seconds();
  for (uint32_t i = 0; i < count; ++i) {
    time -= mean_gap * std::log(1 - random.Fraction());
    next_.start = base::Duration::Picoseconds(std::llround(time * 1e12));
    const uint64_t from = random.Below(hosts.size());
    const uint64_t to = (from + 1 + random.Below(hosts.size() - 1)) % hosts.size();
    Add(hosts[from], hosts[to], sizes->Draw(&random));
  }
}

void Workload::Trace() {
  const std::string path = ReadPath("file");
  if (path.empty()) return;
  if (ThroughStore()) return StoreTrace(path);
  std::ifstream file(path);
  std::string line;
  for (uint32_t number = 1; std::getline(file, line); ++number) {
    const absl::string_view text = absl::StripAsciiWhitespace(absl::string_view(line).substr(0, line.find('#')));
    if (text.empty() || TraceLine(text)) continue;
    return object_->error().Note(
        object_->PlaceOf("file"),
        absl::StrCat(path, ", line ", number, ": a line is \"start,from,to,bytes\", as in 12.5us,host0,host3,64KiB"));
  }
}

bool Workload::TraceLine(absl::string_view line) {
  std::vector<std::string> fields = absl::StrSplit(line, ',');
  if (fields.size() != 4) return false;
  for (std::string& field : fields) absl::StripAsciiWhitespace(&field);
  const absl::StatusOr<base::Duration> start = base::ParseDuration(fields[0]);
  const absl::StatusOr<uint32_t> from = names_.Find(fields[1]);
  const absl::StatusOr<uint32_t> to = names_.Find(fields[2]);
  const absl::StatusOr<uint64_t> bytes = base::ParseSize(fields[3]);
  if (!start.ok() || !from.ok() || !to.ok() || !bytes.ok()) return false;
  if (*from == *to || *bytes == 0 || *bytes > kMostBytes) return false;
  next_.start = *start;
  Add(*from, *to, static_cast<uint32_t>(*bytes));
  return true;
}

// Objects are known after the whole file: a get may precede its put, and waits.
void Workload::StoreTrace(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::vector<std::pair<uint32_t, Asked>> lines;
  std::map<std::string, uint32_t> objects;
  const auto wrong = [&](uint32_t number, const std::string& what) {
    object_->error().Note(object_->PlaceOf("file"), absl::StrCat(path, ", line ", number, ": ", what));
  };
  for (uint32_t number = 1; std::getline(file, line); ++number) {
    const absl::string_view text = absl::StripAsciiWhitespace(absl::string_view(line).substr(0, line.find('#')));
    if (text.empty()) continue;
    const std::optional<Asked> asked = StoreTraceLine(text);
    if (!asked) {
      return wrong(number, "a line is \"time,host,put or get,object,bytes\", as in 12.5us,host0,put,weights,64KiB");
    }
    if (asked->put) {
      if (objects.count(asked->object) != 0) {
        return wrong(number, absl::StrCat("'", asked->object, "' is put twice; objects never change"));
      }
      objects[asked->object] = static_cast<uint32_t>(objects_->size());
      AddObject(asked->host, asked->bytes, /*there_before=*/false);
    }
    lines.emplace_back(number, *asked);
  }
  one_object_ = true;
  for (const auto& [number, asked] : lines) {
    const auto found = objects.find(asked.object);
    if (found == objects.end()) return wrong(number, absl::StrCat("nobody puts '", asked.object, "'"));
    const StoreObject& object = (*objects_)[found->second];
    if (asked.bytes != object.bytes) {
      return wrong(number, absl::StrCat("'", asked.object, "' has ", object.bytes, " bytes where it is put"));
    }
    next_.way = asked.put ? Transfer::Way::kPut : Transfer::Way::kGet;
    next_.start = asked.start;
    next_.object = found->second;
    Add(object.home, asked.host, object.bytes);
  }
}

std::optional<Workload::Asked> Workload::StoreTraceLine(absl::string_view line) const {
  std::vector<std::string> fields = absl::StrSplit(line, ',');
  if (fields.size() != 5) return std::nullopt;
  for (std::string& field : fields) absl::StripAsciiWhitespace(&field);
  const absl::StatusOr<base::Duration> start = base::ParseDuration(fields[0]);
  const absl::StatusOr<uint32_t> host = names_.FindHost(fields[1]);
  const absl::StatusOr<uint64_t> bytes = base::ParseSize(fields[4]);
  if (!start.ok() || !host.ok() || !bytes.ok() || fields[3].empty()) return std::nullopt;
  if ((fields[2] != "put" && fields[2] != "get") || *bytes == 0 || *bytes > kMostBytes) return std::nullopt;
  return Asked{fields[2] == "put", *start, *host, fields[3], static_cast<uint32_t>(*bytes)};
}

uint32_t Workload::ReadBytes() {
  uint64_t bytes = 1'000'000;
  object_->ReadSize("bytes", &bytes);
  if (bytes == 0 || bytes > kMostBytes) {
    object_->error().Note(object_->PlaceOf("bytes"), "at least 1 and at most 1 GiB are needed here");
    return 1;
  }
  return static_cast<uint32_t>(bytes);
}

uint32_t Workload::ReadHost(const char* key, uint32_t fallback) {
  std::string name;
  object_->Read(key, &name);
  if (name.empty()) return fallback;
  const absl::StatusOr<uint32_t> host = Find(name);
  if (!host.ok()) object_->error().Note(object_->PlaceOf(key), host.status().message());
  return host.value_or(fallback);
}

std::vector<uint32_t> Workload::ReadHosts(const char* key, uint32_t but) {
  std::vector<std::string> texts;
  object_->Read(key, &texts);
  std::vector<uint32_t> hosts;
  for (const std::string& text : texts) {
    const absl::StatusOr<uint32_t> host = Find(text);
    if (!host.ok()) {
      object_->error().Note(object_->PlaceOf(key), host.status().message());
    } else if (*host == but) {
      object_->error().Note(object_->PlaceOf(key), absl::StrCat("'", text, "' is the other end of these transfers"));
    } else if (std::find(hosts.begin(), hosts.end(), *host) != hosts.end()) {
      object_->error().Note(object_->PlaceOf(key), absl::StrCat("'", text, "' is there twice"));
    }
    hosts.push_back(host.value_or(0));
  }
  if (!texts.empty()) return hosts;
  for (uint32_t i = 0; i < names_.count(); ++i) {
    if (i != but && (!ThroughStore() || names_.IsFirst(i))) hosts.push_back(i);
  }
  return hosts;
}

std::string Workload::ReadPath(const char* key) {
  std::string path;
  object_->Read(key, &path);
  if (path.empty()) {
    object_->error().Note(object_->PlaceOf(key), "the name of a file is needed here");
    return path;
  }
  if (path[0] != '/' && !folder_.empty()) path = absl::StrCat(folder_, "/", path);
  if (std::ifstream(path).good()) return path;
  object_->error().Note(object_->PlaceOf(key), absl::StrCat("cannot read ", path));
  return {};
}

void Workload::Add(uint32_t from, uint32_t to, uint32_t bytes) {
  if (transfers_->size() >= kMostTransfers) {
    return object_->error().Note(object_->PlaceOf("kind"),
                                 absl::StrCat("these are more than ", kMostTransfers, " transfers; ask for fewer"));
  }
  if (ThroughStore() && !one_object_) AddObject(from, bytes, /*there_before=*/true);
  next_.from = from;
  next_.to = to;
  next_.bytes = bytes;
  transfers_->push_back(next_);
}

void Workload::AddObject(uint32_t home, uint32_t bytes, bool there_before) {
  next_.object = static_cast<uint32_t>(objects_->size());
  objects_->push_back({home, bytes, there_before});
}

void Workload::AddRepeated(uint32_t from, uint32_t to, uint32_t bytes, uint32_t count) {
  next_.after.reset();
  for (uint32_t i = 0; i < count; ++i) {
    Add(from, to, bytes);
    next_.after = static_cast<uint32_t>(transfers_->size()) - 1;
  }
  next_.after.reset();
}

double Workload::HostBitsPerSecond(const std::vector<uint32_t>& hosts) const {
  std::vector<double> rates;
  std::vector<uint32_t> first;
  for (const Topology::Host& host : topology_.hosts) {
    first.push_back(static_cast<uint32_t>(rates.size()));
    rates.resize(rates.size() + host.addresses.size());
  }
  for (const Topology::Cable& cable : topology_.cables) {
    for (const Topology::End& end : cable.ends) {
      if (!topology_.is_host(end.node)) continue;
      rates[first[end.node] + end.port] = static_cast<double>(cable.parameters.rate.bits_per_second());
    }
  }
  double sum = 0;
  for (uint32_t host : hosts) sum += rates[host];
  return sum;
}

}  // namespace tokamak::sim
