#include "sim/fabric/topology/topology_file.h"

#include <fstream>
#include <map>
#include <sstream>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "sim/fabric/topology/generators.h"
#include "sim/fabric/topology/topology_builder.h"

namespace tokamak::sim {
namespace {

using nlohmann::json;

// More nodes in a file are a mistake.
constexpr uint32_t kMostNodes = 65536;
constexpr uint32_t kMostPorts = 1024;  // of a switch or a host
constexpr uint32_t kMostWeight = 1000;

void ReadLink(JsonObject* object, LinkParameters* link) {
  object->Read("rate", &link->rate);
  object->Read("delay", &link->delay);
}

void ReadLinkObject(JsonObject* parent, const char* key, LinkParameters* link) {
  for (JsonObject& object : parent->ObjectIfAny(key)) {
    ReadLink(&object, link);
    object.Finish();
  }
}

void ReadBuffer(JsonObject* object, BufferOptions* buffer) {
  object->ReadSize("bytes", &buffer->bytes);
  object->ReadSize("reserved", &buffer->reserved);
  object->Read("ingress_alpha", &buffer->ingress_alpha);
  object->Read("egress_alpha", &buffer->egress_alpha);
  object->Read("mtu", verbs::kMinMtu, verbs::kMaxMtu, &buffer->mtu);
}

void ReadPfc(JsonObject* object, PfcOptions* pfc) {
  if (object->Has("lossless")) {
    std::vector<uint64_t> priorities;
    object->Read("lossless", &priorities);
    pfc->lossless = 0;
    for (uint64_t priority : priorities) {
      if (priority >= kPriorities) {
        object->error().Note(object->PlaceOf("lossless"), absl::StrCat("there is no priority ", priority));
        return;
      }
      pfc->lossless = static_cast<uint8_t>(pfc->lossless | 1u << priority);
    }
  }
  object->ReadSize("xoff", &pfc->xoff);
  object->ReadSize("xon", &pfc->xon);
  object->ReadSize("headroom", &pfc->headroom);
  object->Read("response", &pfc->response);
  uint32_t quanta = pfc->quanta;
  object->Read("quanta", 1, UINT16_MAX, &quanta);
  pfc->quanta = static_cast<uint16_t>(quanta);
  if (pfc->xon > pfc->xoff) object->error().Note(object->PlaceOf("xon"), "it must not be larger than xoff");
}

void ReadEcn(JsonObject* object, EcnOptions* ecn) {
  object->ReadSize("kmin", &ecn->kmin);
  object->ReadSize("kmax", &ecn->kmax);
  object->Read("pmax", &ecn->pmax);
}

void ReadWatchdog(JsonObject* object, WatchdogOptions* watchdog) {
  object->Read("detection", &watchdog->detection);
  object->Read("restoration", &watchdog->restoration);
  std::string action = watchdog->action == WatchdogOptions::Action::kDrop ? "drop" : "forward";
  object->Read("action", &action);
  if (action != "drop" && action != "forward") {
    return object->error().Note(object->PlaceOf("action"), "it is \"drop\" or \"forward\"");
  }
  watchdog->action = action == "drop" ? WatchdogOptions::Action::kDrop : WatchdogOptions::Action::kForward;
}

void ReadWeights(JsonObject* object, SchedulingOptions* scheduling) {
  const json* weights = object->Find("weights");
  if (weights == nullptr) return;
  bool right = weights->is_array() && weights->size() == kPriorities;
  for (size_t i = 0; right && i < kPriorities; ++i) {
    const json& weight = (*weights)[i];
    if (weight == "strict") {
      scheduling->weights[i] = SchedulingOptions::kStrict;
    } else if (weight.is_number_unsigned() && weight >= 1 && weight <= kMostWeight) {
      scheduling->weights[i] = weight.get<uint32_t>();
    } else {
      right = false;
    }
  }
  if (right) return;
  object->error().Note(
      object->PlaceOf("weights"),
      absl::StrCat("for each of the 8 priorities write a weight from 1 to ", kMostWeight, ", or \"strict\""));
}

void ReadSwitch(JsonObject* parent, const char* key, SwitchOptions* options) {
  for (JsonObject& object : parent->ObjectIfAny(key)) {
    const auto part = [&object](const char* name, auto read, auto* value) {
      for (JsonObject& inner : object.ObjectIfAny(name)) {
        read(&inner, value);
        inner.Finish();
      }
    };
    part("buffer", ReadBuffer, &options->buffer);
    part("pfc", ReadPfc, &options->pfc);
    part("ecn", ReadEcn, &options->ecn);
    part("watchdog", ReadWatchdog, &options->watchdog);
    ReadWeights(&object, &options->scheduling);
    object.Finish();
  }
}

void ReadLoss(JsonObject* parent, const char* key, LossOptions* loss) {
  for (JsonObject& object : parent->ObjectIfAny(key)) {
    object.Read("rate", &loss->rate);
    object.Read("burst_rate", &loss->burst_rate);
    object.Read("burst_length", &loss->burst_length);
    object.Read("nth", &loss->nth);
    object.Read("corrupt", &loss->corrupt);
    object.Finish();
  }
}

class Numbers final {
 public:
  explicit Numbers(JsonObject& file) : file_(file) {}
  uint32_t Of(const char* key, uint32_t fallback, uint32_t most) {
    file_.Read(key, 1, most, &fallback);
    return fallback;
  }

 private:
  JsonObject& file_;
};

Topology Generate(const std::string& generator, JsonObject* file) {
  GeneratorOptions options;
  ReadLinkObject(file, "host_link", &options.host);
  options.uplink = options.host;
  ReadLinkObject(file, "uplink", &options.uplink);
  ReadSwitch(file, "switch", &options.switches);
  Numbers numbers(*file);
  if (generator == "pair") return Pair(options);
  if (generator == "star") return Star(options, numbers.Of("hosts", 2, kMostPorts));
  if (generator == "dumbbell") return Dumbbell(options, numbers.Of("hosts_per_side", 2, kMostPorts));
  if (generator == "parking-lot") {
    const uint32_t switches = numbers.Of("switches", 3, kMostPorts);
    return ParkingLot(options, switches, numbers.Of("hosts_per_switch", 1, kMostPorts));
  }
  if (generator == "leaf-spine") {
    const uint32_t leaves = numbers.Of("leaves", 2, kMostPorts);
    const uint32_t spines = numbers.Of("spines", 2, kMostPorts);
    return LeafSpine(options, leaves, spines, numbers.Of("hosts_per_leaf", 2, kMostPorts));
  }
  if (generator == "fat-tree") {
    const uint32_t k = numbers.Of("k", 4, 64);
    if (k % 2 == 0) return FatTree(options, k);
    file->error().Note("k", "a fat tree's k is even");
    return {};
  }
  if (generator == "rail-optimised") {
    const uint32_t hosts = numbers.Of("hosts", 4, kMostNodes);
    const uint32_t rails = numbers.Of("rails", 2, 64);
    const uint32_t group = numbers.Of("hosts_per_group", hosts, kMostNodes);
    return RailOptimised(options, hosts, rails, group, numbers.Of("spines", 1, kMostPorts));
  }
  file->error().Note("generator", absl::StrCat("there is no '", generator,
                                               "'; there are pair, star, dumbbell, parking-lot, leaf-spine, fat-tree "
                                               "and rail-optimised"));
  return {};
}

// Hosts, switches and cables one by one.
class Listed final {
 public:
  explicit Listed(JsonObject& file) : file_(file) {}

  Topology Read() {
    ReadLinkObject(&file_, "link", &link_);
    ReadSwitch(&file_, "switch", &switch_);
    for (JsonObject& host : file_.Objects("hosts")) AddHost(&host);
    for (JsonObject& node : file_.Objects("switches")) AddSwitch(&node);
    for (JsonObject& cable : file_.Objects("cables")) AddCable(&cable);
    return std::move(builder_.topology());
  }

 private:
  std::string ReadName(JsonObject* object) {
    std::string name;
    object->Read("name", &name);
    if (name.empty()) object->error().Note(object->PlaceOf("name"), "a name is needed here");
    if (name.find(':') != std::string::npos) object->error().Note(object->PlaceOf("name"), "a name has no colon");
    return name;
  }

  void Know(JsonObject* object, const std::string& name, uint32_t node) {
    if (nodes_.emplace(name, node).second) return;
    object->error().Note(object->PlaceOf("name"), absl::StrCat("there is another '", name, "'"));
  }

  void AddHost(JsonObject* object) {
    const std::string name = ReadName(object);
    std::vector<std::string> texts;
    object->Read("addresses", &texts);
    std::vector<verbs::Address> addresses;
    for (const std::string& text : texts) {
      const absl::StatusOr<verbs::Address> address = verbs::Address::Parse(text);
      if (!address.ok()) return object->error().Note(object->PlaceOf("addresses"), address.status().message());
      addresses.push_back(*address);
    }
    if (texts.empty()) {
      uint32_t interfaces = 1;
      object->Read("interfaces", 1, 64, &interfaces);
      Know(object, name, builder_.AddHost(name, interfaces));
    } else {
      Know(object, name, builder_.AddHost(name, std::move(addresses)));
    }
    object->Finish();
  }

  void AddSwitch(JsonObject* object) {
    const std::string name = ReadName(object);
    SwitchOptions options = switch_;
    ReadSwitch(object, "switch", &options);
    object->Finish();
    Know(object, name, builder_.AddSwitch(name, options));
  }

  // "leaf0", whose next port is taken, or "leaf0:3".
  bool FindEnd(JsonObject* object, const std::string& text, Topology::End* end) {
    const size_t colon = text.find(':');
    const auto node = nodes_.find(text.substr(0, colon));
    if (node == nodes_.end()) {
      object->error().Note(object->PlaceOf("ends"),
                           absl::StrCat("there is no host or switch '", text.substr(0, colon), "'"));
      return false;
    }
    *end = builder_.NextPort(node->second);
    if (colon == std::string::npos) return true;
    if (absl::SimpleAtoi(text.substr(colon + 1), &end->port) && end->port < kMostPorts) return true;
    object->error().Note(object->PlaceOf("ends"), absl::StrCat("'", text, "' names no port: write a number below ",
                                                               kMostPorts, " behind the colon"));
    return false;
  }

  void AddCable(JsonObject* object) {
    Topology::Cable cable;
    cable.parameters = link_;
    ReadLink(object, &cable.parameters);
    ReadLoss(object, "loss", &cable.loss[0]);
    cable.loss[1] = cable.loss[0];
    ReadLoss(object, "loss_back", &cable.loss[1]);
    uint32_t count = 1;
    object->Read("count", 1, kMostPorts, &count);
    std::vector<std::string> ends;
    object->Read("ends", &ends);
    object->Finish();
    if (ends.size() != 2) return object->error().Note(object->PlaceOf("ends"), "a cable has two ends");
    for (uint32_t i = 0; i < count; ++i) {
      for (size_t end = 0; end < 2; ++end) {
        if (!FindEnd(object, ends[end], &cable.ends[end])) return;
      }
      builder_.Connect(cable);
    }
  }

  JsonObject& file_;
  LinkParameters link_;
  SwitchOptions switch_;
  TopologyBuilder builder_;
  std::map<std::string, uint32_t> nodes_;
};

}  // namespace

absl::StatusOr<Topology> TopologyFromJson(const json& value) {
  JsonError error;
  JsonObject file(value, "", error);
  std::string generator;
  file.Read("generator", &generator);
  Topology topology = file.Has("generator") ? Generate(generator, &file) : Listed(file).Read();
  file.Finish();
  if (!error.status().ok()) return error.status();
  if (absl::Status s = topology.Check(); !s.ok()) return s;
  return topology;
}

absl::StatusOr<Topology> ParseTopology(absl::string_view text) {
  const absl::StatusOr<json> value = ParseJson(text);
  if (!value.ok()) return value.status();
  return TopologyFromJson(*value);
}

absl::StatusOr<Topology> ReadTopologyFile(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf())) return absl::NotFoundError(absl::StrCat("cannot read ", path));
  absl::StatusOr<Topology> topology = ParseTopology(text.str());
  if (topology.ok()) return topology;
  return absl::Status(topology.status().code(), absl::StrCat(path, ": ", topology.status().message()));
}

}  // namespace tokamak::sim
