#include "sim/json/json_object.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "lib/base/units.h"

namespace tokamak::sim {

using nlohmann::json;

absl::StatusOr<json> ParseJson(absl::string_view text) {
  std::vector<std::set<std::string>> keys;
  std::string twice;
  const auto look = [&](int, json::parse_event_t event, json& parsed) {
    switch (event) {
      case json::parse_event_t::object_start:
        keys.emplace_back();
        break;
      case json::parse_event_t::object_end:
        keys.pop_back();
        break;
      case json::parse_event_t::key:
        if (!keys.back().insert(parsed.get<std::string>()).second) twice = parsed.get<std::string>();
        break;
      default:
        break;
    }
    return true;
  };
  json parsed;
  try {
    parsed = json::parse(text.begin(), text.end(), look);
  } catch (const json::parse_error& error) {
    return absl::InvalidArgumentError(absl::StrCat("this is no JSON: ", error.what()));
  }
  if (!twice.empty()) return absl::InvalidArgumentError(absl::StrCat("an object has '", twice, "' twice"));
  return parsed;
}

void JsonError::Note(absl::string_view place, absl::string_view what) {
  if (!status_.ok()) return;
  status_ = absl::InvalidArgumentError(place.empty() ? std::string(what) : absl::StrCat(place, ": ", what));
}

JsonObject::JsonObject(const json& value, std::string place, JsonError& error)
    : value_(value), place_(std::move(place)), error_(&error) {
  if (!value.is_object()) error.Note(place_, "an object in {} is needed here");
}

std::string JsonObject::PlaceOf(const char* key) const { return place_.empty() ? key : absl::StrCat(place_, ".", key); }

const json* JsonObject::Find(const char* key) {
  known_.insert(key);
  return Has(key) ? &value_[key] : nullptr;
}

void JsonObject::Read(const char* key, std::string* value) {
  const json* found = Find(key);
  if (found == nullptr) return;
  if (!found->is_string()) return error_->Note(PlaceOf(key), "a text in quotes is needed here");
  *value = found->get<std::string>();
}

void JsonObject::Read(const char* key, uint64_t least, uint64_t most, uint32_t* value) {
  const json* found = Find(key);
  if (found == nullptr) return;
  if (!found->is_number_unsigned() || found->get<uint64_t>() < least || found->get<uint64_t>() > most) {
    return error_->Note(PlaceOf(key), absl::StrCat("a whole number from ", least, " to ", most, " is needed here"));
  }
  *value = found->get<uint32_t>();
}

void JsonObject::Read(const char* key, double* value) {
  const json* found = Find(key);
  if (found == nullptr) return;
  if (!found->is_number() || found->get<double>() < 0) {
    return error_->Note(PlaceOf(key), "a number that is not negative is needed here");
  }
  *value = found->get<double>();
}

void JsonObject::Read(const char* key, Rate* value) {
  std::string text;
  Read(key, &text);
  if (text.empty()) return;
  const absl::StatusOr<Rate> rate = Rate::Parse(text);
  if (!rate.ok()) return error_->Note(PlaceOf(key), rate.status().message());
  *value = *rate;
}

void JsonObject::Read(const char* key, base::Duration* value) {
  std::string text;
  Read(key, &text);
  if (text.empty()) return;
  const absl::StatusOr<base::Duration> duration = base::ParseDuration(text);
  if (!duration.ok()) return error_->Note(PlaceOf(key), duration.status().message());
  *value = *duration;
}

void JsonObject::ReadSize(const char* key, uint64_t* value) {
  const json* found = Find(key);
  if (found == nullptr) return;
  if (found->is_number_unsigned()) {
    *value = found->get<uint64_t>();
    return;
  }
  if (!found->is_string())
    return error_->Note(PlaceOf(key), "a number of bytes, or a size such as \"16MiB\", is needed");
  const absl::StatusOr<uint64_t> size = base::ParseSize(found->get<std::string>());
  if (!size.ok()) return error_->Note(PlaceOf(key), size.status().message());
  *value = *size;
}

void JsonObject::Read(const char* key, std::vector<std::string>* value) {
  const json* found = Find(key);
  if (found == nullptr) return;
  std::vector<std::string> texts;
  for (const json& one : *found) {
    if (!found->is_array() || !one.is_string()) return error_->Note(PlaceOf(key), "a list of texts is needed here");
    texts.push_back(one.get<std::string>());
  }
  *value = std::move(texts);
}

void JsonObject::Read(const char* key, std::vector<uint64_t>* value) {
  const json* found = Find(key);
  if (found == nullptr) return;
  std::vector<uint64_t> numbers;
  for (const json& one : *found) {
    if (!found->is_array() || !one.is_number_unsigned()) {
      return error_->Note(PlaceOf(key), "a list of whole numbers is needed here");
    }
    numbers.push_back(one.get<uint64_t>());
  }
  *value = std::move(numbers);
}

std::vector<JsonObject> JsonObject::Objects(const char* key) {
  std::vector<JsonObject> objects;
  const json* found = Find(key);
  if (found == nullptr) return objects;
  if (!found->is_array()) {
    error_->Note(PlaceOf(key), "a list in [] is needed here");
    return objects;
  }
  for (size_t i = 0; i < found->size(); ++i) {
    objects.emplace_back((*found)[i], absl::StrCat(PlaceOf(key), "[", i, "]"), *error_);
  }
  return objects;
}

std::vector<JsonObject> JsonObject::ObjectIfAny(const char* key) {
  std::vector<JsonObject> objects;
  if (const json* found = Find(key)) objects.emplace_back(*found, PlaceOf(key), *error_);
  return objects;
}

void JsonObject::Finish() {
  if (!value_.is_object()) return;
  for (const auto& member : value_.items()) {
    if (known_.count(member.key()) != 0) continue;
    error_->Note(place_, absl::StrCat("unknown key '", member.key(), "'; known are ", absl::StrJoin(known_, ", ")));
  }
}

}  // namespace tokamak::sim
