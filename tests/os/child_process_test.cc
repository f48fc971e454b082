#include "lib/os/process/child_process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "lib/os/epoll_loop.h"
#include "tests/support/short_folder.h"

namespace tokamak::os {
namespace {

constexpr base::Duration kPatience = base::Seconds(60);

// A shell whose script may write to $FIFO, from which the test reads: how either hears of the other
// without sleeping.
class ChildProcessTest : public testing::Test {
 protected:
  ChildProcessTest() { EXPECT_EQ(mkfifo(fifo().c_str(), 0600), 0); }

  std::string fifo() const { return folder_.Path("fifo"); }
  std::string output() const { return folder_.Path("output"); }

  ChildOptions Shell(const std::string& script) const {
    ChildOptions options;
    options.argv = {"sh", "-c", script};
    options.environment = {{"FIFO", fifo()}};
    return options;
  }
  static std::unique_ptr<ChildProcess> Start(const ChildOptions& options) {
    auto child = ChildProcess::Start(options);
    EXPECT_TRUE(child.ok()) << child.status();
    return child.ok() ? *std::move(child) : nullptr;
  }
  std::string Output() const {
    std::stringstream text;
    text << std::ifstream(output()).rdbuf();
    return text.str();
  }

  // Waits until somebody opens the other end, and writes a line or closes it.
  std::string ReadLine() {
    if (!reader_.is_open()) reader_.open(fifo());
    std::string line;
    std::getline(reader_, line);
    return line;
  }
  // Waits until no process has the other end open any more.
  bool AllGone() {
    std::string line;
    return !std::getline(reader_, line);
  }

  const testing_support::ShortFolder folder_;
  std::ifstream reader_;
};

TEST_F(ChildProcessTest, WaitReturnsHowTheProgramEnded) {
  EXPECT_EQ(Start(Shell("exit 3"))->Wait(kPatience)->code, 3);
  const auto killed = Start(Shell("kill -USR1 $$"))->Wait(kPatience);
  ASSERT_TRUE(killed.ok());
  EXPECT_EQ(killed->signal, SIGUSR1);
  EXPECT_FALSE(killed->ok());
  EXPECT_TRUE(Start(Shell("true"))->Wait(kPatience)->ok());
}

TEST_F(ChildProcessTest, WaitGivesUpAtItsDeadline) {
  const auto child = Start(Shell("exec sleep 1000"));
  EXPECT_TRUE(absl::IsDeadlineExceeded(child->Wait(base::Milliseconds(1)).status()));
  EXPECT_TRUE(child->running());
}

TEST_F(ChildProcessTest, AMissingProgramIsAnErrorThatNamesIt) {
  const auto unknown = ChildProcess::Start({{"no-such-program-here"}, {}, "", true, false});
  EXPECT_TRUE(absl::IsNotFound(unknown.status()));
  EXPECT_NE(unknown.status().message().find("no-such-program-here"), std::string::npos);
  EXPECT_TRUE(absl::IsNotFound(ChildProcess::Start({{"/no/such/program"}, {}, "", true, false}).status()));
}

TEST_F(ChildProcessTest, AFileThatIsNoProgramIsAnError) {
  EXPECT_FALSE(ChildProcess::Start({{"/etc/passwd"}, {}, "", true, false}).ok());
}

TEST_F(ChildProcessTest, TheEnvironmentIsOursWithTheAdditions) {
  setenv("TOKAMAK_KEPT", "kept", 1);
  setenv("TOKAMAK_REPLACED", "old", 1);
  ChildOptions options = Shell("echo $TOKAMAK_KEPT $TOKAMAK_REPLACED $TOKAMAK_ADDED");
  options.environment = {{"TOKAMAK_REPLACED", "new"}, {"TOKAMAK_ADDED", "more"}};
  options.output = output();
  ASSERT_TRUE(Start(options)->Wait(kPatience).ok());
  EXPECT_EQ(Output(), "kept new more\n");
}

TEST_F(ChildProcessTest, OutputAndErrorsAreAppendedToTheFile) {
  ChildOptions options = Shell("echo out; echo error >&2");
  options.output = output();
  ASSERT_TRUE(Start(options)->Wait(kPatience).ok());
  ASSERT_TRUE(Start(options)->Wait(kPatience).ok());
  EXPECT_EQ(Output(), "out\nerror\nout\nerror\n");
}

TEST_F(ChildProcessTest, StandardInputIsEmpty) { EXPECT_TRUE(Start(Shell("! read line"))->Wait(kPatience)->ok()); }

TEST_F(ChildProcessTest, SignalsThatWeBlockAreNotBlockedInTheProgram) {
  sigset_t blocked, before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &blocked, &before);
  const auto child = Start(Shell("exec sleep 1000"));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  EXPECT_EQ(child->Stop(kPatience).signal, SIGTERM);
}

TEST_F(ChildProcessTest, StopAsksFirst) {
  const auto child = Start(Shell("trap 'exit 7' TERM; echo ready > $FIFO; while :; do :; done"));
  EXPECT_EQ(ReadLine(), "ready");
  EXPECT_EQ(child->Stop(kPatience).code, 7);
}

TEST_F(ChildProcessTest, StopKillsAProgramThatDoesNotListen) {
  const auto child = Start(Shell("trap '' TERM; echo ready > $FIFO; while :; do sleep 1000; done"));
  EXPECT_EQ(ReadLine(), "ready");
  EXPECT_EQ(child->Stop(base::Milliseconds(20)).signal, SIGKILL);
  EXPECT_FALSE(child->running());
}

TEST_F(ChildProcessTest, StoppingAnEndedProgramReturnsHowItEnded) {
  const auto child = Start(Shell("exit 4"));
  ASSERT_TRUE(child->Wait(kPatience).ok());
  EXPECT_EQ(child->Stop(kPatience).code, 4);
  EXPECT_TRUE(absl::IsFailedPrecondition(child->Signal(SIGTERM)));
}

TEST_F(ChildProcessTest, DroppingAChildKillsTheProgramAndItsChildren) {
  auto child = Start(Shell("exec 3> $FIFO; sleep 1000 & echo ready >&3; wait"));
  EXPECT_EQ(ReadLine(), "ready");
  child.reset();
  EXPECT_TRUE(AllGone());
}

TEST_F(ChildProcessTest, ProcessesThatAnEndedProgramLeavesInItsGroupAreKilled) {
  const auto child = Start(Shell("exec 3> $FIFO; sleep 1000 & echo ready >&3"));
  EXPECT_EQ(ReadLine(), "ready");
  EXPECT_TRUE(child->Wait(kPatience)->ok());
  EXPECT_TRUE(AllGone());
}

TEST_F(ChildProcessTest, AProgramWithoutAGroupOfItsOwnIsInOurs) {
  ChildOptions options = Shell("exec sleep 1000");
  options.own_group = false;
  const auto in_ours = Start(options);
  EXPECT_EQ(getpgid(in_ours->pid()), getpgrp());
  const auto in_its_own = Start(Shell("exec sleep 1000"));
  EXPECT_EQ(getpgid(in_its_own->pid()), in_its_own->pid());
}

TEST_F(ChildProcessTest, ADetachedProgramLivesOn) {
  auto child = Start(Shell("echo $$ > $FIFO; exec 3> $FIFO; exec sleep 1000"));
  const pid_t pid = child->pid();
  EXPECT_EQ(ReadLine(), std::to_string(pid));
  child->Detach();
  child.reset();
  EXPECT_EQ(kill(pid, 0), 0);
  EXPECT_EQ(kill(pid, SIGKILL), 0);
  EXPECT_EQ(waitpid(pid, nullptr, 0), pid);
}

TEST_F(ChildProcessTest, AProgramDiesWithItsParentIfAskedFor) {
  const pid_t parent = fork();
  if (parent == 0) {
    ChildOptions options = Shell("exec 3> $FIFO; echo ready >&3; exec sleep 1000");
    options.die_with_parent = true;
    const auto child = ChildProcess::Start(options);
    while (true) pause();
  }
  EXPECT_EQ(ReadLine(), "ready");
  EXPECT_EQ(kill(parent, SIGKILL), 0);
  EXPECT_TRUE(AllGone());
  EXPECT_EQ(waitpid(parent, nullptr, 0), parent);
}

TEST_F(ChildProcessTest, ALoopCanWatchForAProgramsEnd) {
  EpollLoop loop;
  const auto child = Start(Shell("read line < $FIFO; exit 5"));
  bool ended = false;
  const FdWatch watch = loop.Watch(child->descriptor(), EPOLLIN, [&](uint32_t) { ended = true; });
  EXPECT_FALSE(ended);
  std::ofstream(fifo()) << "go\n" << std::flush;
  EXPECT_TRUE(loop.RunUntil([&] { return ended; }, loop.Now() + kPatience));
  EXPECT_EQ(child->Wait(base::Duration())->code, 5);
}

TEST_F(ChildProcessTest, AnExitStatusReadsLikeASentence) {
  EXPECT_EQ((ExitStatus{1, 0}.ToString()), "exit code 1");
  EXPECT_EQ((ExitStatus{0, SIGKILL}.ToString()), "signal 9 (Killed)");
}

}  // namespace
}  // namespace tokamak::os
