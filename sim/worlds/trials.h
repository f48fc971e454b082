// Trials are courses of events that each lead a life (life.h) to where a promise was broken, or
// could be: a bound, a restart, the end of a node.
//
// Chance alone hardly gets there (more deletions than are remembered, with a holder gone). Events
// on the way are drawn; the life goes on around them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "sim/worlds/life.h"

namespace tokamak::sim {

class Trials final {
 public:
  struct Trial {
    const char* name;
    uint32_t odds;                              // times WorldOptions::trial
    bool (*fits)(const WorldOptions& options);  // null: any life that is not calm
    void (*run)(Life& life);
  };

  static absl::Span<const Trial> All();

  static uint32_t Named(const std::vector<std::string>& names);

  explicit Trials(Life& life) : life_(life) {}

  void MayRun();

  // Puts again ids whose puts failed with nothing stored.
  static void PutWhatWasRefused(Life& life);

 private:
  Life& life_;
};

}  // namespace tokamak::sim
