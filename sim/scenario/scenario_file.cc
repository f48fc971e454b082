#include "sim/scenario/scenario_file.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "lib/base/units.h"
#include "sim/costs/presets.h"
#include "sim/fabric/topology/topology_file.h"
#include "sim/json/json_object.h"
#include "sim/scenario/host_names.h"
#include "sim/scenario/workload.h"

namespace tokamak::sim {
namespace {

using nlohmann::json;

void ReadBits(const char* key, JsonObject* object, uint64_t* bits) {
  Rate rate = Rate::BitsPerSecond(Rate::kLeast);
  object->Read(key, &rate);
  if (object->Has(key)) *bits = rate.bits_per_second();
}

void ReadPositive(const char* key, JsonObject* object, base::Duration* time) {
  object->Read(key, time);
  if (*time <= base::Duration()) object->error().Note(object->PlaceOf(key), "a time above 0 is needed here");
}

void ReadDcqcn(JsonObject* object, verbs::soft::DcqcnParameters* dcqcn) {
  ReadBits("minimum_rate", object, &dcqcn->minimum_rate);
  object->Read("g", &dcqcn->g);
  if (dcqcn->g <= 0 || dcqcn->g > 1) object->error().Note(object->PlaceOf("g"), "above 0 and at most 1");
  ReadPositive("alpha_timer", object, &dcqcn->alpha_timer);
  ReadPositive("rate_timer", object, &dcqcn->rate_timer);
  object->ReadSize("byte_counter", &dcqcn->byte_counter);
  if (dcqcn->byte_counter == 0) object->error().Note(object->PlaceOf("byte_counter"), "at least 1 byte is needed");
  object->Read("fast_recovery", 1, 1000, &dcqcn->fast_recovery);
  ReadBits("additive_increase", object, &dcqcn->additive_increase);
  ReadBits("hyper_increase", object, &dcqcn->hyper_increase);
}

void ReadNic(JsonObject* object, NicSettings* nic) {
  std::string congestion = verbs::soft::ToString(nic->congestion);
  object->Read("congestion", &congestion);
  if (const auto parsed = verbs::soft::ParseCongestionControl(congestion); parsed.ok()) {
    nic->congestion = *parsed;
  } else {
    object->error().Note(object->PlaceOf("congestion"), parsed.status().message());
  }
  for (JsonObject& inner : object->ObjectIfAny("dcqcn")) {
    ReadDcqcn(&inner, &nic->dcqcn);
    inner.Finish();
  }
  object->Read("window", 1, verbs::soft::kUnboundedWindow, &nic->window);
  object->Read("mtu", verbs::kMinMtu, verbs::kMaxMtu, &nic->mtu);
  if ((nic->mtu & (nic->mtu - 1)) != 0) {
    object->error().Note(object->PlaceOf("mtu"), "it is 256, 512, 1024, 2048 or 4096");
  }
  object->Read("ack_every", 0, 1 << 20, &nic->ack_every);
  std::string recovery = "go-back-n";
  object->Read("recovery", &recovery);
  if (recovery != "go-back-n" && recovery != "selective-repeat") {
    object->error().Note(object->PlaceOf("recovery"), "it is \"go-back-n\" or \"selective-repeat\"");
  }
  nic->selective_repeat = recovery == "selective-repeat";
  object->Read("dscp", 0, 63, &nic->dscp);
  ReadPositive("ack_timeout", object, &nic->ack_timeout);
  object->Read("retries", 0, verbs::kMaxRetryCount, &nic->retries);
}

Topology ReadTopology(JsonObject* file, const std::string& folder) {
  const json* value = file->Find("topology");
  if (value == nullptr) {
    file->error().Note("topology", "a generator with its numbers, or the name of a topology file, is needed");
    return {};
  }
  absl::StatusOr<Topology> topology;
  if (value->is_string()) {
    const auto path = value->get<std::string>();
    topology = ReadTopologyFile(path[0] == '/' || folder.empty() ? path : absl::StrCat(folder, "/", path));
  } else {
    topology = TopologyFromJson(*value);
  }
  if (topology.ok()) return *std::move(topology);
  file->error().Note("topology", topology.status().message());
  return {};
}

void ReadPayload(JsonObject* file, Scenario* scenario) {
  std::string payload = "phantom";
  file->Read("payload", &payload);
  if (payload != "phantom" && payload != "real") file->error().Note("payload", "it is \"real\" or \"phantom\"");
  scenario->phantom = payload == "phantom";
}

void ReadStore(JsonObject* object, StoreSettings* store) {
  constexpr uint64_t kLeastMemory = 1 << 20, kMostMemory = uint64_t{1} << 40;
  object->ReadSize("memory", &store->memory);
  if (store->memory < kLeastMemory || store->memory > kMostMemory) {
    object->error().Note(object->PlaceOf("memory"), "at least 1 MiB and at most 1 TiB are needed here");
  }
  store->memory = store->memory / 64 * 64;
  object->Read("engines", 0, 16, &store->engines);
  std::string policy;
  object->Read("policy", &policy);
  if (!policy.empty()) {
    const absl::StatusOr<transport::Policy> parsed = transport::Policy::Parse(policy);
    if (!parsed.ok()) object->error().Note(object->PlaceOf("policy"), parsed.status().message());
    if (parsed.ok()) store->endpoint.policy = *parsed;
  }
  std::string connections = "before";
  object->Read("connections", &connections);
  if (connections != "before" && connections != "when-needed") {
    object->error().Note(object->PlaceOf("connections"), "it is \"before\" or \"when-needed\"");
  }
  store->connect_before = connections == "before";
  object->Read("receive_slots", 2, 1 << 15, &store->endpoint.receive_slots);
  object->Read("chunks_in_flight", 1, 1024, &store->endpoint.chunks_in_flight);
}

// For the named hosts, or all.
void ReadCostsOfSome(JsonObject* object, const HostNames& names, const std::string& folder, Scenario* scenario) {
  std::string preset;
  object->Read("preset", &preset);
  const absl::StatusOr<HostCosts> costs = FindPreset(preset, folder);
  if (!costs.ok()) object->error().Note(object->PlaceOf("preset"), costs.status().message());
  std::vector<std::string> hosts;
  object->Read("hosts", &hosts);
  object->Finish();
  if (!costs.ok()) return;
  if (hosts.empty()) return scenario->costs.assign(scenario->topology.hosts.size(), *costs);
  for (const std::string& host : hosts) {
    const absl::StatusOr<uint32_t> found = names.FindHost(host);
    if (!found.ok()) return object->error().Note(object->PlaceOf("hosts"), found.status().message());
    scenario->costs[names.HostOf(*found)] = *costs;
  }
}

// A preset for all, or a list by groups; the last with a host counts.
void ReadCosts(JsonObject* file, const std::string& folder, Scenario* scenario) {
  scenario->costs.assign(scenario->topology.hosts.size(), ShippedPresets().at("zero"));
  const json* found = file->Find("costs");
  if (found == nullptr) return;
  if (found->is_string()) {
    const absl::StatusOr<HostCosts> costs = FindPreset(found->get<std::string>(), folder);
    if (!costs.ok()) return file->error().Note("costs", costs.status().message());
    return scenario->costs.assign(scenario->topology.hosts.size(), *costs);
  }
  const HostNames names(scenario->topology);
  for (JsonObject& some : file->Objects("costs")) ReadCostsOfSome(&some, names, folder, scenario);
}

void CheckMemory(JsonObject* file, const Scenario& scenario) {
  std::vector<uint64_t> put(scenario.topology.interfaces());
  for (const StoreObject& object : scenario.objects) put[object.home] += object.bytes;
  const auto most = std::max_element(put.begin(), put.end());
  if (most == put.end() || *most <= scenario.store.memory) return;
  file->error().Note("store.memory",
                     absl::StrCat(HostNames(scenario.topology).NameOf(static_cast<uint32_t>(most - put.begin())),
                                  " puts ", base::FormatSize(*most), ", and copies need room, too: ask for more than ",
                                  base::FormatSize(scenario.store.memory)));
}

void ReadOutputs(JsonObject* object, OutputSettings* outputs) {
  ReadPositive("interval", object, &outputs->interval);
  object->Read("most_samples", 2, 1'000'000, &outputs->most_samples);
}

void ReadSeed(JsonObject* file, uint64_t* seed) {
  const json* found = file->Find("seed");
  if (found == nullptr) return;
  if (!found->is_number_unsigned()) return file->error().Note("seed", "a whole number is needed here");
  *seed = found->get<uint64_t>();
}

void ReadWorkloads(JsonObject* file, const std::string& folder, Scenario* scenario) {
  const HostNames names(scenario->topology);
  const base::Random random(scenario->seed);
  Workload workload(scenario->topology, names, folder, random);
  for (JsonObject& object : file->Objects("workload")) {
    const auto group = static_cast<uint32_t>(scenario->groups.size());
    scenario->groups.push_back(workload.Read(group, &object, &scenario->transfers, &scenario->objects));
    for (uint32_t i = 0; i < group; ++i) {
      if (scenario->groups[i] != scenario->groups[group]) continue;
      file->error().Note(object.PlaceOf("name"), absl::StrCat("there is another '", scenario->groups[i],
                                                              "': give each workload a name of its own"));
    }
  }
  if (scenario->transfers.empty()) file->error().Note("workload", "at least one transfer is needed");
}

}  // namespace

absl::StatusOr<Scenario> ScenarioFromJson(const json& value, const std::string& folder) {
  Scenario scenario;
  JsonError error;
  JsonObject file(value, "", error);
  if (!error.status().ok()) return error.status();
  file.Read("name", &scenario.name);
  file.Read("question", &scenario.question);
  scenario.topology = ReadTopology(&file, folder);
  if (!error.status().ok()) return error.status();  // hosts' names need a topology
  for (JsonObject& nic : file.ObjectIfAny("nic")) {
    ReadNic(&nic, &scenario.nic);
    nic.Finish();
  }
  for (JsonObject& store : file.ObjectIfAny("store")) {
    ReadStore(&store, &scenario.store);
    store.Finish();
  }
  ReadCosts(&file, folder, &scenario);
  ReadPayload(&file, &scenario);
  ReadSeed(&file, &scenario.seed);
  ReadPositive("duration", &file, &scenario.duration);
  ReadPositive("freeze_after", &file, &scenario.freeze_after);
  for (JsonObject& outputs : file.ObjectIfAny("outputs")) {
    ReadOutputs(&outputs, &scenario.outputs);
    outputs.Finish();
  }
  ReadWorkloads(&file, folder, &scenario);
  CheckMemory(&file, scenario);
  file.Finish();
  if (!error.status().ok()) return error.status();
  return scenario;
}

absl::StatusOr<json> ReadJsonFile(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf())) return absl::NotFoundError(absl::StrCat("cannot read ", path));
  absl::StatusOr<json> value = ParseJson(text.str());
  if (value.ok()) return value;
  return absl::Status(value.status().code(), absl::StrCat(path, ": ", value.status().message()));
}

absl::Status SetMember(absl::string_view assignment, json* value) {
  const size_t equals = assignment.find('=');
  if (equals == 0 || equals == absl::string_view::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", assignment, "': write KEY=VALUE, as in nic.congestion=dcqcn or workload.0.bytes=1MB"));
  }
  const std::string text(assignment.substr(equals + 1));
  json parsed = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (parsed.is_discarded()) parsed = text;
  const std::string pointer = absl::StrCat("/", absl::StrReplaceAll(assignment.substr(0, equals), {{".", "/"}}));
  try {
    (*value)[json::json_pointer(pointer)] = std::move(parsed);
  } catch (const json::exception&) {
    return absl::InvalidArgumentError(absl::StrCat("'", assignment.substr(0, equals),
                                                   "' leads nowhere: keys are separated by dots, and members of "
                                                   "lists are numbered from 0, as in workload.0.bytes"));
  }
  return absl::OkStatus();
}

}  // namespace tokamak::sim
