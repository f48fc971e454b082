#include "lib/cli/doctor/child_prober.h"

#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace tokamak::cli::doctor {
namespace {

using Steps = std::vector<std::string>;

// A probe that is a shell script; the flags of a probe are its $1, $2, ...
ProbeOutcome ProbeWith(const std::string& script, base::Duration deadline = base::Seconds(30)) {
  ChildProberOptions options;
  options.program = {"/bin/sh", "-c", script, "probe"};
  options.deadline = deadline;
  return ChildProber(options).Probe({"ibv:rxe0", "host2", 7100});
}

TEST(ChildProberTest, WhatTheChildSaysIsFoldedIntoAnOutcome) {
  const ProbeOutcome outcome = ProbeWith(R"(
      echo '{"step":"inspect"}'
      echo '{"port":{"number":1,"active_mtu":1024,"max_mtu":4096}}'
      echo '{"step":"open"}'
      echo '{"device":{"address":"10.0.0.1","active_mtu":1024,"is_rdma":true}}'
      echo '{"numbers":{"connected_ns":12000000,"path_mtu":1024,"half_round_trip_ns":9000,"write_rate":2.5,"read_rate":1.5}}'
      echo '{"end":true}')");
  EXPECT_TRUE(outcome.finished);
  EXPECT_TRUE(outcome.failure.ok());
  EXPECT_FALSE(outcome.hung);
  EXPECT_EQ(outcome.steps, (Steps{"inspect", "open"}));
  EXPECT_EQ(outcome.FailedStep(), "");
  ASSERT_EQ(outcome.ports.size(), 1u);
  EXPECT_EQ(outcome.ports[0].active_mtu, 1024u);
  EXPECT_EQ(outcome.address, "10.0.0.1");
  EXPECT_TRUE(outcome.is_rdma);
  ASSERT_TRUE(outcome.numbers.has_value());
  EXPECT_EQ(outcome.numbers->half_round_trip, base::Microseconds(9));
  EXPECT_DOUBLE_EQ(outcome.numbers->write_rate, 2.5);
}

TEST(ChildProberTest, TheChildIsToldDeviceAndPeer) {
  const ProbeOutcome outcome = ProbeWith(R"(echo "{\"step\":\"$*\"}")");
  EXPECT_EQ(outcome.steps, (Steps{"--device ibv:rxe0 --peer host2 --port 7100"}));
}

TEST(ChildProberTest, TheChildIsToldHowToConnect) {
  ChildProberOptions options;
  options.program = {"/bin/sh", "-c", R"(echo "{\"step\":\"$*\"}")", "probe"};
  ProbeRequest request;
  request.device = "ibv:rxe0";
  request.by_tcp = true;
  EXPECT_EQ(ChildProber(options).Probe(request).steps, (Steps{"--device ibv:rxe0 --cm tcp"}));
  request.address = *verbs::Address::Parse("192.0.2.1");
  EXPECT_EQ(ChildProber(options).Probe(request).steps, (Steps{"--device ibv:rxe0 --cm tcp --address 192.0.2.1"}));
  request.fabric.pkey_index = 2;
  request.fabric.service_level = 3;
  request.fabric.traffic_class = 104;
  request.fabric.path_mtu = 2048;
  request.fabric.router_lid = 7;
  EXPECT_EQ(ChildProber(options).Probe(request).steps,
            (Steps{"--device ibv:rxe0 --cm tcp --address 192.0.2.1 --pkey-index 2 --path-mtu 2048 --router-lid 7 "
                   "--service-level 3 --traffic-class 104"}));
}

TEST(ChildProberTest, AFailureIsThatOfTheLastStep) {
  const ProbeOutcome outcome = ProbeWith(R"(
      echo '{"step":"open"}'
      echo '{"failure":{"code":7,"text":"no right"}}')");
  EXPECT_FALSE(outcome.finished);
  EXPECT_EQ(outcome.FailedStep(), "open");
  EXPECT_EQ(outcome.failure, absl::PermissionDeniedError("no right"));
}

TEST(ChildProberTest, AChildThatHangsIsEndedAndItsStepKnown) {
  const ProbeOutcome outcome = ProbeWith(R"(echo '{"step":"queue pair"}'; exec sleep 1000)", base::Milliseconds(500));
  EXPECT_TRUE(outcome.hung);
  EXPECT_FALSE(outcome.stuck);
  EXPECT_FALSE(outcome.finished);
  EXPECT_EQ(outcome.FailedStep(), "queue pair");
}

TEST(ChildProberTest, AChildThatHangsAfterItsEndDidNotFinish) {
  const ProbeOutcome outcome =
      ProbeWith(R"(echo '{"step":"close"}'; echo '{"end":true}'; exec sleep 1000)", base::Milliseconds(500));
  EXPECT_TRUE(outcome.hung);
  EXPECT_EQ(outcome.FailedStep(), "close");
}

TEST(ChildProberTest, AChildThatDiesTellsBySignalAndLastWords) {
  const ProbeOutcome outcome = ProbeWith(R"(echo '{"step":"open"}'; echo 'libibverbs: bad luck' >&2; kill -SEGV $$)");
  EXPECT_EQ(outcome.FailedStep(), "open");
  EXPECT_TRUE(absl::StrContains(outcome.failure.message(), "signal 11")) << outcome.failure;
  EXPECT_TRUE(absl::StrContains(outcome.failure.message(), "bad luck")) << outcome.failure;
}

TEST(ChildProberTest, AProgramThatCannotBeStartedIsAFailureOfTheStart) {
  ChildProberOptions options;
  options.program = {"/nonexistent/tok"};
  const ProbeOutcome outcome = ChildProber(options).Probe({"ibv:rxe0", "", 0});
  EXPECT_EQ(outcome.FailedStep(), "start");
  EXPECT_FALSE(outcome.failure.ok());
}

TEST(FoldLineTest, LinesThatAreNoneOfOursAreIgnored) {
  ProbeOutcome outcome;
  for (const char* line : {"", "{", "[]", "7", "libibverbs: Warning", "{\"step\":7}", "{\"step\":\"a\",\"end\":true}",
                           "{\"other\":1}", "{\"port\":7}", "{\"peer\":\"elsewhere"}) {
    EXPECT_FALSE(FoldLine(line, outcome)) << line;
  }
  EXPECT_TRUE(outcome.steps.empty());
  EXPECT_TRUE(FoldLine(R"({"port":{"number":"one","active_mtu":-3}})", outcome))
      << "of the right kind, whatever its values";
  EXPECT_TRUE(FoldLine(R"({"peer":"elsewhere"})", outcome));
  EXPECT_FALSE(outcome.peer.has_value());
}

}  // namespace
}  // namespace tokamak::cli::doctor
