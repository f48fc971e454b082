#include "sim/costs/presets.h"

#include <fstream>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "lib/base/check.h"
#include "lib/base/units.h"
#include "nlohmann/json.hpp"
#include "sim/json/json_object.h"

namespace tokamak::sim {
namespace {

constexpr char kShipped[] =
#include "sim/costs/presets.inc"
    ;

struct Figure {
  const char* key;
  base::Duration HostCosts::*member;
};
constexpr Figure kTimes[] = {
    {"post", &HostCosts::post},
    {"completion", &HostCosts::completion},
    {"registration", &HostCosts::registration},
    {"registration_page", &HostCosts::registration_page},
    {"deregistration", &HostCosts::deregistration},
    {"deregistration_page", &HostCosts::deregistration_page},
    {"client_round_trip", &HostCosts::client_round_trip},
};

std::string ReadFigure(JsonObject& preset, const char* key, const char* unit) {
  if (!preset.Has(key)) {
    preset.error().Note(preset.PlaceOf(key), absl::StrCat("this figure is missing; give its ", unit, " and source"));
  }
  std::string value;
  for (JsonObject& figure : preset.ObjectIfAny(key)) {
    std::string source;
    figure.Read(unit, &value);
    figure.Read("source", &source);
    figure.Finish();
    if (value.empty()) figure.error().Note(figure.PlaceOf(unit), "is missing");
    if (source.empty()) figure.error().Note(figure.PlaceOf("source"), "say where the figure is from, or \"estimate\"");
  }
  return value;
}

void ReadTime(JsonObject& preset, const char* key, base::Duration* time) {
  const std::string text = ReadFigure(preset, key, "time");
  if (text.empty()) return;
  const absl::StatusOr<base::Duration> parsed = base::ParseDuration(text);
  if (!parsed.ok()) return preset.error().Note(preset.PlaceOf(key), parsed.status().message());
  *time = *parsed;
}

void ReadBandwidth(JsonObject& preset, const char* key, uint64_t* bandwidth) {
  const std::string text = ReadFigure(preset, key, "bandwidth");
  if (text.empty() || text == "unlimited") return;
  absl::string_view size = text;
  const bool each_second = absl::ConsumeSuffix(&size, "/s");
  const absl::StatusOr<uint64_t> parsed = base::ParseSize(size);
  if (!each_second || !parsed.ok() || *parsed < 1'000'000) {
    return preset.error().Note(preset.PlaceOf(key),
                               "a bandwidth of at least 1MB/s, such as \"12GB/s\", or \"unlimited\" is needed");
  }
  *bandwidth = *parsed;
}

HostCosts ReadPreset(JsonObject& preset) {
  HostCosts costs;
  std::string about;
  preset.Read("about", &about);
  for (const Figure& figure : kTimes) ReadTime(preset, figure.key, &(costs.*figure.member));
  ReadBandwidth(preset, "copy", &costs.copy_bandwidth);
  preset.Finish();
  return costs;
}

std::string NamesOf(const Presets& presets) {
  return absl::StrJoin(presets, ", ", [](std::string* out, const auto& one) { absl::StrAppend(out, one.first); });
}

absl::StatusOr<Presets> ReadPresets(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  if (!file || !(text << file.rdbuf())) return absl::NotFoundError(absl::StrCat("cannot read ", path));
  absl::StatusOr<Presets> presets = ParsePresets(text.str());
  if (presets.ok()) return presets;
  return absl::Status(presets.status().code(), absl::StrCat(path, ": ", presets.status().message()));
}

}  // namespace

absl::StatusOr<Presets> ParsePresets(absl::string_view text) {
  const absl::StatusOr<nlohmann::json> parsed = ParseJson(text);
  if (!parsed.ok()) return parsed.status();
  JsonError error;
  JsonObject file(*parsed, "", error);
  Presets presets;
  if (parsed->is_object()) {
    for (const auto& member : parsed->items()) {
      for (JsonObject& preset : file.ObjectIfAny(member.key().c_str())) presets[member.key()] = ReadPreset(preset);
    }
  }
  if (!error.status().ok()) return error.status();
  return presets;
}

const Presets& ShippedPresets() {
  static const Presets* const presets = [] {
    auto parsed = ParsePresets(kShipped);
    CHECK(parsed.ok()) << "presets.json: " << parsed.status();
    return new Presets(*std::move(parsed));
  }();
  return *presets;
}

absl::StatusOr<HostCosts> FindPreset(const std::string& name, const std::string& folder) {
  constexpr char kEnding[] = ".json";
  const size_t ending = name.find(kEnding);
  if (ending == std::string::npos) {
    const auto found = ShippedPresets().find(name);
    if (found != ShippedPresets().end()) return found->second;
    return absl::NotFoundError(absl::StrCat("there are no costs '", name, "'; there are ", NamesOf(ShippedPresets()),
                                            ", or the name of a file, as in mine.json"));
  }
  const std::string file = name.substr(0, ending + sizeof(kEnding) - 1);
  absl::string_view rest = absl::string_view(name).substr(file.size());
  const absl::StatusOr<Presets> presets = ReadPresets(file.front() == '/' ? file : absl::StrCat(folder, "/", file));
  if (!presets.ok()) return presets.status();
  if (rest.empty() && presets->size() == 1) return presets->begin()->second;
  const bool named = absl::ConsumePrefix(&rest, ":");
  const auto found = presets->find(std::string(rest));
  if (named && found != presets->end()) return found->second;
  return absl::InvalidArgumentError(
      absl::StrCat("name one of those in ", file, ", as in ", file, ":NAME; there are ", NamesOf(*presets)));
}

}  // namespace tokamak::sim
