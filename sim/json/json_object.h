// JsonObject reads the members of one object in a file that people write: what is missing keeps its
// default, and what is wrong, unknown or twice there is told with the place where it stands.
//
// All objects of a file share one JsonError, which keeps the first thing that is wrong, so that a
// reader reads everything and looks once.
#pragma once

#include <array>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lib/base/time.h"
#include "nlohmann/json.hpp"
#include "sim/fabric/link/rate.h"

namespace tokamak::sim {

// kInvalidArgument: where it is no JSON, or a key that an object has twice.
absl::StatusOr<nlohmann::json> ParseJson(absl::string_view text);

class JsonError final {
 public:
  void Note(absl::string_view place, absl::string_view what);
  const absl::Status& status() const { return status_; }

 private:
  absl::Status status_;
};

class JsonObject final {
 public:
  // `place` says where it stands: "hosts[2]", or nothing for the whole file. All must outlive it.
  JsonObject(const nlohmann::json& value, std::string place, JsonError& error);

  bool Has(const char* key) const { return value_.is_object() && value_.contains(key); }

  // Each changes `*value` only where the key is there and right.
  void Read(const char* key, std::string* value);
  void Read(const char* key, uint64_t least, uint64_t most, uint32_t* value);
  void Read(const char* key, double* value);
  void Read(const char* key, Rate* value);            // "100Gb/s"
  void Read(const char* key, base::Duration* value);  // "1us"
  void ReadSize(const char* key, uint64_t* value);    // bytes: a number, or "16MiB"
  void Read(const char* key, std::vector<std::string>* value);
  void Read(const char* key, std::vector<uint64_t>* value);

  // The members of an array of objects, or an object; nothing where the key is missing.
  std::vector<JsonObject> Objects(const char* key);
  std::vector<JsonObject> ObjectIfAny(const char* key);

  // As it stands, to be read by the caller; null where it is missing.
  const nlohmann::json* Find(const char* key);

  // Whoever reads the object says when it is done: what has not been asked for is unknown.
  void Finish();

  std::string PlaceOf(const char* key) const;
  JsonError& error() { return *error_; }

 private:
  const nlohmann::json& value_;
  const std::string place_;
  JsonError* error_;
  std::set<std::string> known_;
};

}  // namespace tokamak::sim
