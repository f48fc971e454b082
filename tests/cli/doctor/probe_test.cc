#include "lib/cli/doctor/probe.h"

#include <gtest/gtest.h>

#include "absl/strings/match.h"

namespace tokamak::cli::doctor {
namespace {

using Steps = std::vector<std::string>;

// A probe that is a shell script; the flags of a probe are its $1, $2, ...
ProbeOutcome ProbeWith(const std::string& script, const ProbeRequest& request = {"ibv:rxe0", {}, {}},
                       base::Duration deadline = base::Seconds(30)) {
  ChildProberOptions options;
  options.program = {"/bin/sh", "-c", script, "probe"};
  options.deadline = deadline;
  return ProbeInChild(request, options);
}

TEST(ProbeInChildTest, TheLastLineOfTheChildIsTheOutcome) {
  const ProbeOutcome outcome = ProbeWith(R"(
      echo '{"steps":["inspect"]}'
      echo 'libibverbs: Warning'
      echo '{"steps":["inspect","open"],"finished":true,"ports":[{"number":1,"active_mtu":1024,"max_mtu":4096}],
          "address":"10.0.0.1","figures":{"half_round_trip_ns":9000,"rates":{"read":1.5},"peer":{"device":"ibv:a"}}}' |
          tr -d '\n'
      echo; echo '{'; echo 7; echo '{"other":1}')");
  EXPECT_TRUE(outcome.finished);
  EXPECT_TRUE(outcome.failure.ok());
  EXPECT_FALSE(outcome.hung);
  EXPECT_EQ(outcome.steps, (Steps{"inspect", "open"}));
  EXPECT_EQ(outcome.FailedStep(), "");
  ASSERT_EQ(outcome.ports.size(), 1u);
  EXPECT_EQ(outcome.ports[0].active_mtu, 1024u);
  EXPECT_EQ(outcome.address, "10.0.0.1");
  EXPECT_EQ(outcome.figures.half_round_trip_ns, 9000);
  EXPECT_DOUBLE_EQ(outcome.figures.rates.at("read"), 1.5);
  EXPECT_EQ(outcome.figures.peer.device, "ibv:a");
}

TEST(ProbeInChildTest, TheChildIsToldDeviceAndPeerAndHowToConnect) {
  const std::string echo = R"(echo "{\"steps\":[\"$*\"]}")";
  ProbeRequest request;
  request.device = "ibv:rxe0";
  EXPECT_EQ(ProbeWith(echo, request).steps, (Steps{"--device ibv:rxe0"}));
  request.peer = *verbs::Address::Parse("192.0.2.2:7100");
  request.opening.by_tcp = true;
  request.opening.address = *verbs::Address::Parse("192.0.2.1");
  request.opening.fabric.pkey_index = 2;
  request.opening.fabric.service_level = 3;
  request.opening.fabric.traffic_class = 104;
  request.opening.fabric.path_mtu = 2048;
  request.opening.fabric.router_lid = 7;
  EXPECT_EQ(
      ProbeWith(echo, request).steps,
      (Steps{"--device ibv:rxe0 --peer 192.0.2.2:7100 --cm tcp --address 192.0.2.1 --pkey-index 2 --path-mtu 2048 "
             "--router-lid 7 --service-level 3 --traffic-class 104"}));
}

TEST(ProbeInChildTest, AFailureIsThatOfTheLastStep) {
  const ProbeOutcome outcome = ProbeWith(R"(echo '{"steps":["open"],"failure":{"code":7,"text":"no right"}}')");
  EXPECT_FALSE(outcome.finished);
  EXPECT_EQ(outcome.FailedStep(), "open");
  EXPECT_EQ(outcome.failure, absl::PermissionDeniedError("no right"));
}

TEST(ProbeInChildTest, AChildThatHangsIsEndedAndItsStepKnown) {
  for (const char* finished : {"false", "true"}) {
    const ProbeOutcome outcome =
        ProbeWith(std::string(R"(echo '{"steps":["endpoint"],"finished":)") + finished + "}'; exec sleep 1000", {},
                  base::Milliseconds(500));
    EXPECT_TRUE(outcome.hung);
    EXPECT_FALSE(outcome.stuck);
    EXPECT_FALSE(outcome.finished);
    EXPECT_EQ(outcome.FailedStep(), "endpoint");
  }
}

TEST(ProbeInChildTest, AFailureIsKeptIfTheChildHangsAfterwards) {
  const ProbeOutcome outcome =
      ProbeWith(R"(echo '{"steps":["open"],"failure":{"code":7,"text":"no right"}}'; exec sleep 1000)", {},
                base::Milliseconds(500));
  EXPECT_TRUE(outcome.hung);
  EXPECT_EQ(outcome.failure, absl::PermissionDeniedError("no right"));
}

TEST(ProbeInChildTest, AChildThatDiesTellsBySignalAndLastWords) {
  const ProbeOutcome outcome =
      ProbeWith(R"(echo '{"steps":["open"]}'; echo 'libibverbs: bad luck' >&2; kill -SEGV $$)");
  EXPECT_EQ(outcome.FailedStep(), "open");
  EXPECT_TRUE(absl::StrContains(outcome.failure.message(), "signal 11")) << outcome.failure;
  EXPECT_TRUE(absl::StrContains(outcome.failure.message(), "bad luck")) << outcome.failure;
}

TEST(ProbeInChildTest, AProgramThatCannotBeStartedIsAFailureOfTheStart) {
  ChildProberOptions options;
  options.program = {"/nonexistent/tok"};
  const ProbeOutcome outcome = ProbeInChild({}, options);
  EXPECT_EQ(outcome.FailedStep(), "start");
  EXPECT_FALSE(outcome.failure.ok());
}

}  // namespace
}  // namespace tokamak::cli::doctor
