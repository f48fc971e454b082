// Workload turns what a scenario says about one group of transfers, "incast of 16 hosts" say, into
// the transfers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/base/random.h"
#include "sim/fabric/json_object.h"
#include "sim/fabric/topology.h"
#include "sim/scenario/host_names.h"
#include "sim/scenario/transfer.h"

namespace tokamak::sim {

class Workload final {
 public:
  // What it draws comes from `random`; files are found relative to `folder`. All must outlive it.
  Workload(const Topology& topology, const HostNames& names, std::string folder, const base::Random& random)
      : topology_(topology), names_(names), folder_(std::move(folder)), random_(random) {}

  // Appends the transfers of a group. Returns its name. What is wrong is noted with the object.
  std::string Read(uint32_t group, JsonObject* object, std::vector<Transfer>* transfers);

 private:
  void Flow();
  void Incast();
  void FanOut();
  void Permutation();
  void Shuffle();
  void AllReduceRing();
  void Poisson();
  void Trace();

  uint32_t ReadBytes();
  uint32_t ReadHost(const char* key, uint32_t fallback);
  std::vector<uint32_t> ReadHosts(const char* key, uint32_t but = UINT32_MAX);
  std::string ReadPath(const char* key);
  void Add(uint32_t from, uint32_t to, uint32_t bytes);
  void AddRepeated(uint32_t from, uint32_t to, uint32_t bytes, uint32_t count);
  bool TraceLine(absl::string_view line);
  double HostBitsPerSecond(const std::vector<uint32_t>& hosts) const;

  const Topology& topology_;
  const HostNames& names_;
  const std::string folder_;
  const base::Random& random_;

  // While one is read.
  JsonObject* object_ = nullptr;
  std::vector<Transfer>* transfers_ = nullptr;
  Transfer next_;
};

}  // namespace tokamak::sim
