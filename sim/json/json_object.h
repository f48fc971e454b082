// JsonObject reads the members of one object in a file that people write: a missing one keeps its
// default; a wrong, unknown or repeated one is an error with its place.
//
// All objects of a file share one JsonError, which keeps the first error, so a reader reads
// everything and looks once.
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

// kInvalidArgument names the place that is no JSON, or the key that an object has twice.
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
  // `place` is where it stands: "hosts[2]", or nothing for the whole file. The arguments must
  // outlive it.
  JsonObject(const nlohmann::json& value, std::string place, JsonError& error);

  bool Has(const char* key) const { return value_.is_object() && value_.contains(key); }

  // Each changes `*value` only if the key is there and valid.
  void Read(const char* key, std::string* value);
  void Read(const char* key, uint64_t least, uint64_t most, uint32_t* value);
  void Read(const char* key, double* value);
  void Read(const char* key, Rate* value);            // "100Gb/s"
  void Read(const char* key, base::Duration* value);  // "1us"
  void ReadSize(const char* key, uint64_t* value);    // bytes: a number, or "16MiB"
  void Read(const char* key, std::vector<std::string>* value);
  void Read(const char* key, std::vector<uint64_t>* value);

  // Returns the members of an array of objects, or an object; nothing if the key is missing.
  std::vector<JsonObject> Objects(const char* key);
  std::vector<JsonObject> ObjectIfAny(const char* key);

  // Returns the value for the caller to read; null if it is missing.
  const nlohmann::json* Find(const char* key);

  // Ends the reading of the object: members that were not asked for are unknown.
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
