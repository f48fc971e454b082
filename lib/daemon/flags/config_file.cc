#include "lib/daemon/flags/config_file.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "lib/base/text/nearest_name.h"
#include "nlohmann/json.hpp"

namespace tokamak::daemon {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kPrefix[] = "TOKD_";

bool HasValue(const CLI::Option& option) { return option.get_expected_min() > 0; }

std::vector<std::string> NamesOf(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_configurable()) names.push_back(option->get_single_name());
  }
  return names;
}

// Returns line and column, from 1, where the parser gave up.
std::string PlaceIn(const std::string& text, size_t byte) {
  const size_t at = std::min(byte > 0 ? byte - 1 : 0, text.size());
  const size_t line_begin = at == 0 ? 0 : text.rfind('\n', at - 1) + 1;  // npos + 1 is 0
  const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
  return absl::StrCat("line ", line, ", column ", at - line_begin + 1);
}

// Returns one line, whatever the text contains.
std::string Quoted(const std::string& text) {
  return Json(text).dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace);
}

std::string TextOf(const std::string& key, const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_unsigned()) return value.dump();
  throw CLI::ConfigError(absl::StrCat(Quoted(key), ": give a text or a whole number"));
}

CLI::ConfigItem ItemOf(const CLI::Option& option, const std::string& key, const Json& value) {
  CLI::ConfigItem item;
  item.name = key;
  if (!HasValue(option)) {
    if (!value.is_boolean()) throw CLI::ConfigError(absl::StrCat(Quoted(key), ": give true or false"));
    item.inputs = {value.get<bool>() ? "true" : "false"};
  } else if (value.is_array()) {
    if (option.get_multi_option_policy() == CLI::MultiOptionPolicy::Throw) {
      throw CLI::ConfigError(absl::StrCat(Quoted(key), ": takes one value"));
    }
    for (const Json& one : value) item.inputs.push_back(TextOf(key, one));
  } else {
    item.inputs = {TextOf(key, value)};
  }
  return item;
}

Json ValueOf(const CLI::Option& option) {
  if (!HasValue(option)) return option.count() > 0 && option.as<bool>();
  const std::string text = option.count() > 0 ? option.as<std::string>() : option.get_default_str();
  const bool is_number = !text.empty() && text.size() < 10 &&
                         std::all_of(text.begin(), text.end(), [](char c) { return absl::ascii_isdigit(c); });
  if (is_number) return std::strtoul(text.c_str(), nullptr, 10);
  return text;
}

}  // namespace

std::vector<CLI::ConfigItem> ConfigFile::from_config(std::istream& input) const {
  std::string text(kMax + 1, '\0');
  input.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(input.gcount()));
  if (text.size() > kMax) throw CLI::ConfigError("it has more than 1 MiB");
  Json object;
  std::set<std::string> seen;
  const auto once = [&seen](int depth, Json::parse_event_t event, Json& parsed) {
    if (event != Json::parse_event_t::key || depth != 1 || seen.insert(parsed.get<std::string>()).second) return true;
    throw CLI::ConfigError(absl::StrCat(Quoted(parsed.get<std::string>()), " stands there twice"));
  };
  try {
    object = Json::parse(text, once, /*allow_exceptions=*/true, /*ignore_comments=*/true);
  } catch (const Json::parse_error& error) {
    throw CLI::ConfigError(absl::StrCat("it is no JSON from ", PlaceIn(text, error.byte), " on"));
  } catch (const Json::exception&) {  // such as a number beyond double
    throw CLI::ConfigError("it is no JSON that can be read: a number is out of range");
  }
  if (!object.is_object()) throw CLI::ConfigError("it is no JSON object: {\"listen\": \"10.0.0.1:7000\", ...}");
  const std::vector<std::string> names = NamesOf(app_);
  std::vector<CLI::ConfigItem> read;
  for (const auto& [key, value] : object.items()) {
    if (std::find(names.begin(), names.end(), key) == names.end()) {
      throw CLI::ConfigError(absl::StrCat("unknown key ", Quoted(key), base::DidYouMean(key, names)));
    }
    const char* const variable = std::getenv(VariableOf(key).c_str());
    if (variable != nullptr && *variable != '\0') continue;
    CLI::ConfigItem item = ItemOf(*app_.get_option("--" + key), key, value);
    if (value == false) continue;  // as if absent: excludes no other
    read.push_back(std::move(item));
  }
  return read;
}

std::string ConfigFile::to_config(const CLI::App* app, bool, bool, std::string) const {
  Json object = Json::object();
  for (const CLI::Option* option : app->get_options()) {
    if (!option->get_configurable()) continue;
    const Json value = ValueOf(*option);
    if (value != "") object[option->get_single_name()] = value;
  }
  return object.dump(2, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace);
}

std::string VariableOf(const std::string& flag) {
  return absl::StrCat(kPrefix, absl::AsciiStrToUpper(absl::StrReplaceAll(flag, {{"-", "_"}})));
}

absl::Status ReadEnvironment(CLI::App& app, absl::Span<const char* const> others) {
  std::vector<std::string> variables(others.begin(), others.end());
  variables.push_back(absl::StrCat(kPrefix, "CONFIG"));
  for (CLI::Option* option : app.get_options()) {
    if (!option->get_configurable()) continue;
    variables.push_back(VariableOf(option->get_single_name()));
    option->envname(variables.back());
  }
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string name = std::string(*variable).substr(0, std::string(*variable).find('='));
    if (!absl::StartsWith(name, kPrefix)) continue;
    if (std::find(variables.begin(), variables.end(), name) == variables.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, " in the environment is no flag of tokd", base::DidYouMean(name, variables)));
    }
  }
  return absl::OkStatus();
}

std::vector<std::string> ChangedKeys(const std::string& before, const std::string& after) {
  const Json one = Json::parse(before), other = Json::parse(after);
  std::set<std::string> changed;
  for (const auto& [key, value] : one.items()) {
    if (!other.contains(key) || other[key] != value) changed.insert(key);
  }
  for (const auto& [key, value] : other.items()) {
    if (!one.contains(key)) changed.insert(key);
  }
  return {changed.begin(), changed.end()};
}

}  // namespace tokamak::daemon
