// JsonObject reads one object's members in a file that people write: a missing one keeps its
// default; a wrong, unknown or repeated one is an error with its place.
//
// A file's objects share one JsonError, which keeps the first: read all, look once.
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

// kInvalidArgument names the place that is no JSON, or a key given twice.
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
  // `place`: "hosts[2]", or "" for the file. Arguments must outlive it.
  JsonObject(const nlohmann::json& value, std::string place, JsonError& error);

  bool Has(const char* key) const { return value_.is_object() && value_.contains(key); }

  // Change `*value` only if the key is there and valid.
  void Read(const char* key, std::string* value);
  void Read(const char* key, uint64_t least, uint64_t most, uint32_t* value);
  void Read(const char* key, double* value);
  void Read(const char* key, Rate* value);            // "100Gb/s"
  void Read(const char* key, base::Duration* value);  // "1us"
  void ReadSize(const char* key, uint64_t* value);    // a number, or "16MiB"
  void Read(const char* key, std::vector<std::string>* value);
  void Read(const char* key, std::vector<uint64_t>* value);

  // Empty: the key is missing.
  std::vector<JsonObject> Objects(const char* key);
  std::vector<JsonObject> ObjectIfAny(const char* key);

  // Null: missing.
  const nlohmann::json* Find(const char* key);

  // Members not asked for are unknown, and errors.
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
