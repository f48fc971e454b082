// Workload turns a scenario's description of one group of transfers, "incast of 16 hosts" say, into
// the transfers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/random.h"
#include "sim/fabric/topology/topology.h"
#include "sim/json/json_object.h"
#include "sim/scenario/host_names.h"
#include "sim/scenario/scenario.h"
#include "sim/scenario/transfer.h"

namespace tokamak::sim {

class Workload final {
 public:
  // Draws from `random`; files are relative to `folder`. Arguments must outlive it.
  Workload(const Topology& topology, const HostNames& names, std::string folder, const base::Random& random)
      : topology_(topology), names_(names), folder_(std::move(folder)), random_(random) {}

  // Appends a group's transfers and objects. Returns its name. Notes mistakes with the object.
  std::string Read(uint32_t group, JsonObject* object, std::vector<Transfer>* transfers,
                   std::vector<StoreObject>* objects);

 private:
  bool ThroughStore() const { return next_.way != Transfer::Way::kMessage; }
  void ReadWay();
  void ReadVerb();
  void ReadProtocol();
  void Flow();
  void Incast();
  void FanOut();
  void Permutation();
  void Shuffle();
  void AllReduceRing();
  void Poisson();
  void Trace();
  void StoreTrace(const std::string& path);

  uint32_t ReadBytes();
  uint32_t ReadHost(const char* key, uint32_t fallback);
  std::vector<uint32_t> ReadHosts(const char* key, uint32_t but = UINT32_MAX);
  std::string ReadPath(const char* key);
  absl::StatusOr<uint32_t> Find(const std::string& name) const {
    return ThroughStore() ? names_.FindHost(name) : names_.Find(name);
  }
  void Add(uint32_t from, uint32_t to, uint32_t bytes);
  void AddObject(uint32_t home, uint32_t bytes, bool there_before);
  void AddRepeated(uint32_t from, uint32_t to, uint32_t bytes, uint32_t count);
  bool TraceLine(absl::string_view line);

  struct Asked {
    bool put = false;
    base::Duration start;
    uint32_t host = 0;
    std::string object;
    uint32_t bytes = 0;
  };
  std::optional<Asked> StoreTraceLine(absl::string_view line) const;

  double HostBitsPerSecond(const std::vector<uint32_t>& hosts) const;

  const Topology& topology_;
  const HostNames& names_;
  const std::string folder_;
  const base::Random& random_;

  // While one is read:
  JsonObject* object_ = nullptr;
  std::vector<Transfer>* transfers_ = nullptr;
  std::vector<StoreObject>* objects_ = nullptr;
  Transfer next_;
  bool one_object_ = false;  // all are about the last object
};

}  // namespace tokamak::sim
