// TimedCalls are the calls of one kind that `tok bench` timed, with objects of one size, and their
// text and JSON.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "lib/cli/bench/latencies.h"
#include "nlohmann/json.hpp"

namespace tokamak::cli {

struct TimedCalls {
  uint64_t size = 0;  // data bytes of each object
  Latencies latencies;

  double per_second() const;
  double bytes_per_second() const;

  std::string Time(double quantile) const;
  std::string Rate() const;  // in bytes
  nlohmann::json ToJson() const;
};

template <typename Call>
double SecondsOf(Call call) {
  const auto began = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

}  // namespace tokamak::cli
