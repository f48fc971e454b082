// Trials are courses of events, each of which leads a life (life.h) to one place where a promise
// has been broken, or could be: a bound, a restart, the end of a node.
//
// Chance alone hardly ever comes there: a deletion has to be followed by more others than are
// remembered, say, while a node with a copy is gone. The events on the way are drawn all the same,
// and the life goes on around them.
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
    bool (*fits)(const WorldOptions& options);  // true for lives that it fits; null: any that is not calm
    void (*run)(Life& life);
  };

  static absl::Span<const Trial> All();

  // Returns the bits of WorldOptions::trials.
  static uint32_t Named(const std::vector<std::string>& names);

  explicit Trials(Life& life) : life_(life) {}

  // Runs, perhaps, one of the trials of this life.
  void MayRun();

  // Puts ids again whose puts failed with nothing stored: the ids are free.
  static void PutWhatWasRefused(Life& life);

 private:
  Life& life_;
};

}  // namespace tokamak::sim
