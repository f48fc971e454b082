// The fixture of all conformance tests: a world of the Profile's kind, and connected pairs in it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/verbs/conformance/backend.h"
#include "tests/verbs/conformance/ends/end.h"
#include "tests/verbs/conformance/ends/memory.h"
#include "tests/verbs/conformance/ends/work.h"

// Ends the test where the device does not claim `limit` (the name of a member of Limits).
#define TOKAMAK_NEEDS(limit) \
  if (!limits().limit) GTEST_SKIP() << "skipped: device lacks Limits::" #limit

// Runs the suite in every profile of the backend that is linked.
#define TOKAMAK_CONFORMANCE(suite) \
  INSTANTIATE_TEST_SUITE_P(Conformance, suite, testing::ValuesIn(Profiles()), ProfileName)

namespace tokamak::verbs::conformance {

// For GoogleTest's texts.
inline void PrintTo(const Profile& profile, std::ostream* out) { *out << profile.name; }
inline std::string ProfileName(const testing::TestParamInfo<Profile>& tested) { return tested.param.name; }

struct PairOptions {
  size_t active_device = 0;
  size_t passive_device = 1;
  EndOptions active;
  EndOptions passive;
  std::optional<ReliabilityOptions> active_reliability;  // otherwise the backend's
  std::optional<ReliabilityOptions> passive_reliability;
  uint32_t max_path_mtu = kMaxMtu;
};

// Two connected ends.
struct Pair {
  Pair(Backend& backend, const PairOptions& options)
      : active(backend, options.active_device, options.active),
        passive(backend, options.passive_device, options.passive) {}
  End active;
  End passive;
};

// Listens at `passive`, connects `active`, waits for both. Failing to is a failure of the test.
void Establish(Backend& backend, End& active, End& passive, ConnectOptions active_options,
               ConnectOptions passive_options);

class ConformanceTest : public testing::TestWithParam<Profile> {
 protected:
  // A test may call it again for a fresh world, once it has dropped everything that it made in the
  // present one.
  void SetUp() override;

  Backend& backend() { return *backend_; }
  const Limits& limits() { return backend().device(0).limits(); }

  std::unique_ptr<Pair> Connect(const PairOptions& options = {});

  // Connect options with the backend's reliability and a deadline that suits its losses.
  ConnectOptions ConnectDefaults() const;

  // Waits for what must happen; for nothing to happen.
  bool Drive(const std::function<bool()>& done) { return backend().Drive(done, backend().patience()); }
  void LookOn() {
    backend().Drive([] { return false; }, backend().quiet());
  }

  // The next completions of end's send queue are: `bad` for a reason that answers `fault`, then
  // flushes of `rest` in order; and the queue pair is in Error.
  void ExpectFault(End& end, Fault fault, uint64_t bad, const std::vector<uint64_t>& rest = {});
  // The same for the receive queue.
  void ExpectReceiveFault(End& end, Fault fault, uint64_t bad, const std::vector<uint64_t>& rest = {});

  // Expects that `measure` sets `took` to at least `least` and at most `most`: the first time in a
  // world whose time is its own, else in one of Backend::measurements(). A device that counts
  // wrongly does it each time.
  void ExpectTakes(base::Duration least, base::Duration most, const std::function<void(base::Duration* took)>& measure);

  // A short message in both directions arrives.
  void ExpectWorks(End& a, End& b);

 private:
  void ExpectFaultIn(End& end, const Completions& completions, Fault fault, uint64_t bad,
                     const std::vector<uint64_t>& rest);

  std::unique_ptr<Backend> backend_;
};

}  // namespace tokamak::verbs::conformance
