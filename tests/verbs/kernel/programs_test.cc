// Unmodified programs of rdma-core and perftest, between two addresses of this test's loopback,
// over our shared object alone.
#include <fcntl.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "lib/base/random.h"
#include "lib/base/time.h"
#include "lib/os/file_descriptor.h"
#include "lib/os/process/child_process.h"
#include "tests/support/command_output.h"

namespace tokamak::verbs::kernel {
namespace {

using os::ChildProcess;
using Words = std::vector<std::string>;

constexpr char kServer[] = "127.0.0.1";
constexpr char kClient[] = "127.0.0.2";
constexpr base::Duration kLongest = base::Seconds(60);

std::string Built(const char* file) {
  return absl::StrCat(std::getenv("TEST_SRCDIR"), "/", std::getenv("TEST_WORKSPACE"), "/", file);
}

std::string SharedObject() { return Built("lib/verbs/kernel/preload/libtokamak-verbs.so"); }

class ProgramsTest : public ::testing::Test {
 protected:
  static std::string FileFor(const std::string& name) { return absl::StrCat(std::getenv("TEST_TMPDIR"), "/", name); }

  std::unique_ptr<ChildProcess> Start(const std::string& address, const Words& words) {
    Words command = {Built("lib/cli/tok"), "verbs", "--address", address, "--library", SharedObject()};
    command.insert(command.end(), flags.begin(), flags.end());
    command.emplace_back("--");
    command.insert(command.end(), words.begin(), words.end());
    os::ChildOptions options;
    options.argv = std::move(command);
    options.output = FileFor(absl::StrCat("output-", ++started_));
    options.environment = environment;
    options.die_with_parent = true;
    outputs_.push_back(options.output);
    auto child = ChildProcess::Start(options);
    EXPECT_TRUE(child.ok()) << child.status();
    return child.ok() ? *std::move(child) : nullptr;
  }

  // Whether somebody listens at a TCP port, which programs do when they are ready.
  static bool Listens(int port) {
    std::ifstream table("/proc/net/tcp");
    std::ifstream table6("/proc/net/tcp6");
    const std::string wanted = absl::StrFormat(":%04X 0", port);
    for (std::ifstream* file : {&table, &table6}) {
      for (std::string line; std::getline(*file, line);) {
        const size_t at = line.find(wanted);
        if (at != std::string::npos && at < 45 && line.find(" 0A ") != std::string::npos) return true;
      }
    }
    return false;
  }

  static std::string Said(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }

  // The output of the program that was started last.
  const std::string& LastOutput() const { return outputs_.back(); }
  // The output of the one before that.
  const std::string& OutputBeforeLast() const { return outputs_[outputs_.size() - 2]; }

  std::string Output() const {
    std::string all;
    for (const std::string& path : outputs_) absl::StrAppend(&all, "---- ", path, "\n", Said(path));
    return all;
  }

  // Until somebody listens at a TCP port, of which nothing tells, or the program ends.
  static void WaitUntilListens(ChildProcess& program, int port) {
    for (int i = 0; i < 1000 && !Listens(port) && program.running(); ++i) {
      const timespec moment{0, 10'000'000};
      nanosleep(&moment, nullptr);
    }
  }

  // Until the program, which was started last, has said `sign`, or ends.
  void WaitUntilSaid(ChildProcess& program, const std::string& sign) { WaitUntilSaid(program, sign, LastOutput()); }
  // The same of any, by the file of what it says.
  static void WaitUntilSaid(ChildProcess& program, const std::string& sign, const std::string& output) {
    const os::FileDescriptor said(inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
    inotify_add_watch(said.get(), output.c_str(), IN_MODIFY);
    // When inotify instances are used up, the file is looked at each second.
    for (int64_t seconds = 0; seconds < kLongest.milliseconds() / 1000;) {
      const bool running = program.running();
      if (Said(output).find(sign) != std::string::npos || !running) return;
      pollfd waits[] = {{said.get(), POLLIN, 0}, {program.descriptor(), POLLIN, 0}};
      if (poll(waits, 2, 1000) == 0) ++seconds;
      char drained[4096];
      while (read(said.get(), drained, sizeof(drained)) > 0) {
      }
    }
  }

  static void WaitForEither(ChildProcess& one, ChildProcess& other) {
    pollfd waits[] = {{one.descriptor(), POLLIN, 0}, {other.descriptor(), POLLIN, 0}};
    poll(waits, 2, static_cast<int>(kLongest.milliseconds()));
  }

  // Runs the two; whether the server ended well, and it is expected that the client did. `port` is
  // where the server listens.
  bool RunUntilTheClientHasAll(const Words& server_words, const Words& client_words, int port) {
    std::unique_ptr<ChildProcess> server = Start(kServer, server_words);
    if (server == nullptr) return false;
    WaitUntilListens(*server, port);
    std::unique_ptr<ChildProcess> client = Start(client_address, client_words);
    if (client == nullptr) return false;
    const auto client_end = client->Wait(kLongest);
    const auto server_end = server->Wait(kLongest);
    EXPECT_TRUE(client_end.ok() && server_end.ok()) << absl::StrJoin(client_words, " ") << "\n" << Output();
    EXPECT_TRUE(client_end.ok() && client_end->ok()) << client_end->ToString() << "\n" << Output();
    return server_end.ok() && server_end->ok();
  }

  // The client ends once it has all. If its last acknowledgement is lost, nobody is left to repeat
  // it: then this is the output of the server, which failed.
  static void ExpectLastAcknowledgementLost(const std::string& output) {
    EXPECT_NE(output.find("transport retry counter exceeded (12) for wr_id 2"), std::string::npos) << output;
  }

  // Runs the two, and expects that both end well.
  void RunPair(const Words& server_words, const Words& client_words, int port) {
    EXPECT_TRUE(RunUntilTheClientHasAll(server_words, client_words, port)) << "the server failed\n" << Output();
  }

  // A program that listens with rdma_cm, once it does: its commands show that.
  std::unique_ptr<ChildProcess> StartListener(const Words& words) {
    const Words before = flags;
    flags.emplace_back("--explain");
    std::unique_ptr<ChildProcess> server = Start(kServer, words);
    flags = before;
    if (server != nullptr) WaitUntilSaid(*server, "rdma_cm: listen(");
    return server;
  }

  // The same as RunPair, for those.
  void RunByConnectionManager(const Words& server_words, const Words& client_words) {
    std::unique_ptr<ChildProcess> server = StartListener(server_words);
    ASSERT_NE(server, nullptr);
    std::unique_ptr<ChildProcess> client = Start(client_address, client_words);
    ASSERT_NE(client, nullptr);
    const auto client_end = client->Wait(kLongest);
    const auto server_end = server->Wait(kLongest);
    ASSERT_TRUE(client_end.ok() && server_end.ok()) << absl::StrJoin(client_words, " ") << "\n" << Output();
    EXPECT_TRUE(client_end->ok()) << client_end->ToString() << "\n" << Output();
    EXPECT_TRUE(server_end->ok()) << server_end->ToString() << "\n" << Output();
  }

  // The client of a pingpong is run with `fault`. One of the two prints `error`: the other waits
  // for more, until it is ended.
  void RunFailing(const Words& fault, const std::string& error) {
    const std::unique_ptr<ChildProcess> server = Start(kServer, {"ibv_rc_pingpong", "-g", "0", "-n", "1000000"});
    ASSERT_NE(server, nullptr);
    WaitUntilListens(*server, 18515);
    flags = fault;
    const std::unique_ptr<ChildProcess> client =
        Start(kClient, {"ibv_rc_pingpong", "-g", "0", "-n", "1000000", kServer});
    flags = {};
    ASSERT_NE(client, nullptr);
    WaitForEither(*client, *server);
    ChildProcess& failed = server->running() ? *client : *server;
    EXPECT_EQ(failed.Wait(kLongest)->code, 1) << Output();
    EXPECT_NE(Output().find("Failed status " + error), std::string::npos) << error << "\n" << Output();
  }

  // One of rdma-core's pingpongs with these options.
  void RunPingPong(const std::string& program, Words options) {
    options.insert(options.begin(), program);
    options.insert(options.end(), {"-g", "0", "-n", "200"});
    Words client = options;
    client.push_back(kServer);
    RunPair(options, client, 18515);
  }

  void RunPerf(const std::string& program, Words options) {
    options.insert(options.begin(), program);
    Words client = options;
    client.push_back(kServer);
    RunPair(options, client, 18515);
  }

  // One of the pingpongs of a pair, at a TCP port of its own; of the client with the server's
  // address.
  static Words CheckedPingPong(int port, Words options) {
    Words words = {"ibv_rc_pingpong", "-c", "-g", "0", "-n", "500", "-p", absl::StrCat(port)};
    words.insert(words.end(), options.begin(), options.end());
    return words;
  }

  // Names by which NICs of this network namespace find each other.
  static std::string NicNames() {
    std::ifstream table("/proc/net/unix");
    std::string found;
    for (std::string line; std::getline(table, line);) {
      if (line.find("tokamak-nic") != std::string::npos) absl::StrAppend(&found, line, "\n");
    }
    return found;
  }

  Words flags;  // for tok verbs
  std::vector<std::pair<std::string, std::string>> environment;
  std::string client_address = kClient;

 private:
  static inline int started_ = 0;
  Words outputs_;
};

TEST_F(ProgramsTest, TheSharedObjectNeedsTheCLibraryAndNothingElse) {
  const std::string needed = support::OutputOf(absl::StrCat("readelf -d ", SharedObject(), " | grep NEEDED"));
  EXPECT_NE(needed.find("libc.so.6"), std::string::npos) << needed;
  for (const char* other : {"stdc++", "gcc_s", "absl", "glog", "isal", "ibverbs", "rdmacm"}) {
    EXPECT_EQ(needed.find(other), std::string::npos) << needed;
  }
}

TEST_F(ProgramsTest, TheSharedObjectShowsNamesOfTheCLibraryAlone) {
  const std::string shown =
      support::OutputOf(absl::StrCat("nm -D --defined-only ", SharedObject(), " | awk '{print $3}'"));
  EXPECT_NE(shown.find("openat64\n"), std::string::npos) << shown;
  EXPECT_EQ(shown.find("_Z"), std::string::npos) << "names of C++ are seen: " << shown;
}

TEST_F(ProgramsTest, ADeviceIsFound) {
  std::unique_ptr<ChildProcess> program = Start(kServer, {"ibv_devinfo", "-v"});
  const auto end = program->Wait(kLongest);
  ASSERT_TRUE(end.ok() && end->ok()) << Output();
  EXPECT_NE(Output().find("rxe_tok0"), std::string::npos) << Output();
  EXPECT_NE(Output().find("PORT_ACTIVE"), std::string::npos) << Output();
}

TEST_F(ProgramsTest, AProgramWithoutRdmaRunsAsBefore) {
  std::unique_ptr<ChildProcess> program = Start(kServer, {"bash", "-c", "ls /sys/class /tmp > /dev/null && (exit 3)"});
  const auto end = program->Wait(kLongest);
  ASSERT_TRUE(end.ok());
  EXPECT_EQ(end->code, 3);
  EXPECT_EQ(Output().find("tokamak-verbs: "), std::string::npos) << Output();
}

TEST_F(ProgramsTest, TheTreeForSysIsCompleteAndGoesWithTheLastProgram) {
  const std::string folder = FileFor("runtime");
  ASSERT_EQ(mkdir(folder.c_str(), 0700), 0);
  environment = {{"XDG_RUNTIME_DIR", folder}};
  // The shell, which is killed, leaves it; and then somebody removes some of its files.
  ASSERT_EQ(Start(kServer, {"bash", "-c", "read line < /sys/class/infiniband_verbs/abi_version; kill -KILL $$"})
                ->Wait(kLongest)
                ->signal,
            SIGKILL);
  ASSERT_NE(support::OutputOf(absl::StrCat("find ", folder, " -name abi_version -print -delete")), "");
  EXPECT_TRUE(Start(kServer, {"ibv_devinfo"})->Wait(kLongest)->ok()) << Output();
  EXPECT_EQ(support::OutputOf(absl::StrCat("ls -A ", folder)), "");
}

TEST_F(ProgramsTest, FilesOfDevicesAreListedAsOthers) {
  const Words commands[] = {
      {"ls", "-l", "/sys/class/infiniband/rxe_tok0/"},
      {"sh", "-c", "cd /sys/class/infiniband && ls && cat rxe_tok0/ports/1/sm_sl"},
      {"ls", "-l", "/dev/infiniband"},
      {"ls", "-l", "/dev/infiniband/uverbs0"},
  };
  for (const Words& command : commands) {
    EXPECT_TRUE(Start(kServer, command)->Wait(kLongest)->ok()) << Output();
    EXPECT_EQ(Said(LastOutput()).find("No such file"), std::string::npos) << Output();
  }
  for (const char* line : {"node_guid\n", "rxe_tok0\n0\n", "231, 192", "10,  58", " uverbs0\n", " rdma_cm\n"}) {
    EXPECT_NE(Output().find(line), std::string::npos) << line << "\n" << Output();
  }
}

TEST_F(ProgramsTest, AMissingProviderIsReportedInOneLine) {
  const std::string folder = FileFor("libibverbs.d");
  ASSERT_EQ(mkdir(folder.c_str(), 0700), 0);
  ASSERT_TRUE(Start(kServer, {"ls", folder, "/etc/libibverbs.d"})->Wait(kLongest)->ok()) << Output();
  EXPECT_NE(Said(LastOutput()).find("there is no " + folder + "/rxe.driver); install the package ibverbs-providers"),
            std::string::npos)
      << Output();
}

// A shell gives descriptors numbers of its own choice.
TEST_F(ProgramsTest, AProgramThatOnlyLooksHasItsDescriptorsToItself) {
  const std::string script =
      "[ -e /sys/class/infiniband ] && read version < /sys/class/infiniband_verbs/abi_version && exec 3>&1 4>&1 5>&1 "
      "6>&1 7>&1 8>&1 9>&1 && "
      "ls /proc/$$/task | wc -l";
  ASSERT_TRUE(Start(kServer, {"bash", "-c", script})->Wait(kLongest)->ok()) << Output();
  EXPECT_EQ(Said(LastOutput()), "1\n") << "threads";
}

TEST_F(ProgramsTest, AForeignAddressIsReportedInOneLine) {
  std::unique_ptr<ChildProcess> program = Start("192.0.2.7", {"ibv_devinfo"});
  const auto end = program->Wait(kLongest);
  ASSERT_TRUE(end.ok());
  EXPECT_FALSE(end->ok());
  EXPECT_NE(Output().find("no interface of this machine has the address 192.0.2.7"), std::string::npos) << Output();
}

TEST_F(ProgramsTest, AProgramThatCannotBePreloadedIsReportedInOneLine) {
  std::ifstream tok(Built("lib/cli/tok"), std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(tok), std::istreambuf_iterator<char>()};
  const std::string musl = "/lib/ld-musl-any.so.1";
  const size_t at = std::min(bytes.find("/lib64/ld-linux-x86-64.so.2"), bytes.find("/lib/ld-linux-aarch64.so.1"));
  ASSERT_NE(at, std::string::npos) << "its dynamic linker has another name";
  bytes.replace(at, musl.size() + 1, musl.c_str(), musl.size() + 1);
  const std::string path = FileFor("of-musl");
  std::ofstream(path, std::ios::binary) << bytes;
  ASSERT_EQ(chmod(path.c_str(), 0700), 0);
  const std::unique_ptr<ChildProcess> program = Start(kServer, {path});
  ASSERT_NE(program, nullptr);
  EXPECT_EQ(program->Wait(kLongest)->code, 126) << Output();
  EXPECT_EQ(Said(LastOutput()), absl::StrCat("tok: ", path,
                                             " is linked with musl, whose dynamic linker cannot preload "
                                             "libtokamak-verbs.so: run a build of it that is linked with glibc\n"));
}

TEST_F(ProgramsTest, TokBecomesTheProgram) {
  EXPECT_EQ(Start(kServer, {"sh", "-c", "exit 7"})->Wait(kLongest)->code, 7);
  EXPECT_EQ(Start(kServer, {"sh", "-c", "kill -USR1 $$"})->Wait(kLongest)->signal, SIGUSR1);
  EXPECT_EQ(Start(kServer, {"there-is-no-such-program"})->Wait(kLongest)->code, 127);
  EXPECT_NE(Output().find("tok: there-is-no-such-program: No such file"), std::string::npos) << Output();
  flags = {"--loss", "much"};
  EXPECT_EQ(Start(kServer, {"true"})->Wait(kLongest)->code, 2);
  EXPECT_NE(Output().find("--loss: 'much' is no share"), std::string::npos) << Output();
}

TEST_F(ProgramsTest, SeveralDevicesHaveAddressesThatFollowEachOther) {
  flags = {"--devices", "3"};
  ASSERT_TRUE(Start(kServer, {"ibv_devinfo", "-v"})->Wait(kLongest)->ok()) << Output();
  for (const char* gid : {"::ffff:127.0.0.1", "::ffff:127.0.0.2", "::ffff:127.0.0.3"}) {
    EXPECT_NE(Output().find(gid), std::string::npos) << Output();
  }
}

TEST_F(ProgramsTest, CommandsToADeviceAreExplained) {
  flags = {"--explain"};
  RunPingPong("ibv_rc_pingpong", {"-e"});
  for (const char* line : {"rxe_tok0: alloc_pd() = pd ", "access local_write) = mr ", "create_qp(type RC, pd ",
                           "state RTS", "req_notify_cq(cq ", "destroy_qp(qp "}) {
    EXPECT_NE(Output().find(line), std::string::npos) << line << "\n" << Output();
  }
}

TEST_F(ProgramsTest, CommandsToTheConnectionManagerAreExplained) {
  flags = {"--explain"};
  RunByConnectionManager({"rping", "-s", "-a", kServer, "-C", "1"}, {"rping", "-c", "-a", kServer, "-C", "1"});
  for (const char* line : {"rdma_cm: create_id(port space TCP) = id ", "get_event() = CONNECT_REQUEST, id ",
                           "get_event() = ESTABLISHED"}) {
    EXPECT_NE(Output().find(line), std::string::npos) << line << "\n" << Output();
  }
}

TEST_F(ProgramsTest, AProgramSurvivesABadNetwork) {
  flags = {"--loss", "2%", "--corrupt", "1%", "--delay", "100us", "--counters"};
  const Words server = {"ibv_rc_pingpong", "-c", "-s", "65536", "-g", "0", "-n", "200"};
  Words client = server;
  client.push_back(kServer);
  const bool server_ended_well = RunUntilTheClientHasAll(server, client, 18515);
  if (!server_ended_well) ExpectLastAcknowledgementLost(Output());
  EXPECT_NE(Output().find("; of those sent, faults lost "), std::string::npos) << Output();
  EXPECT_EQ(Output().find("faults lost 0 "), std::string::npos) << Output();
  EXPECT_EQ(Output().find("retransmitted 0,"), std::string::npos) << Output();
}

TEST_F(ProgramsTest, ARequestFailsOnDemand) {
  RunFailing({"--error-at", "1"}, "transport retry counter exceeded (12) for wr_id 2");
  RunFailing({"--error-at", "200:rnr-retry-exceeded"}, "RNR retry counter exceeded (13) for wr_id 2");
  RunFailing({"--error-at", "3:remote-access", "--counters"}, "remote access error (10) for wr_id 2");
  EXPECT_NE(Output().find("request 3 of process "), std::string::npos) << Output();
  RunFailing({"--error-at", "4:local-protection"}, "local protection error (4) for wr_id 2");
  RunFailing({"--error-at", "5:flushed"}, "Work Request Flushed Error (5) for wr_id 2");
}

TEST_F(ProgramsTest, AProgramWhosePortGoesDownFails) {
  RunFailing({"--port-down", "20ms"}, "transport retry counter exceeded (12)");
}

TEST_F(ProgramsTest, AProgramSurvivesAPortThatIsDownForAMoment) {
  flags = {"--port-down", "20ms:100ms", "--counters"};
  RunPingPong("ibv_rc_pingpong", {"-c", "-n", "2000"});
  EXPECT_NE(Output().find("; while the port was down, "), std::string::npos) << Output();
}

TEST_F(ProgramsTest, AProgramHearsThatItsPortGoesDownAndUp) {
  flags = {"--port-down", "20ms:100ms"};
  const std::unique_ptr<ChildProcess> watch = Start(kServer, {"stdbuf", "-oL", "ibv_asyncwatch", "-d", "rxe_tok0"});
  ASSERT_NE(watch, nullptr);
  WaitUntilSaid(*watch, "IBV_EVENT_PORT_ACTIVE");
  EXPECT_LT(Output().find("IBV_EVENT_PORT_ERR (10), port 1"), Output().find("IBV_EVENT_PORT_ACTIVE (9), port 1"))
      << Output();
}

TEST_F(ProgramsTest, APortThatIsDownIsReportedAsDown) {
  flags = {"--port-down", "1ns"};
  ASSERT_TRUE(Start(kServer, {"ibv_devinfo"})->Wait(kLongest)->ok()) << Output();
  EXPECT_NE(Output().find("PORT_DOWN (1)"), std::string::npos) << Output();
}

TEST_F(ProgramsTest, Rping) {
  RunByConnectionManager({"rping", "-s", "-a", kServer, "-C", "5", "-v"},
                         {"rping", "-c", "-a", kServer, "-C", "5", "-v"});
}
TEST_F(ProgramsTest, Ucmatose) { RunByConnectionManager({"ucmatose", "-b", kServer}, {"ucmatose", "-s", kServer}); }
TEST_F(ProgramsTest, RdmaServerAndClient) { RunByConnectionManager({"rdma_server"}, {"rdma_client", "-s", kServer}); }
TEST_F(ProgramsTest, Rstream) {
  RunByConnectionManager({"rstream", "-b", kServer, "-S", "4096"}, {"rstream", "-s", kServer, "-S", "4096"});
}
TEST_F(ProgramsTest, Udaddy) {
  RunByConnectionManager({"udaddy", "-b", kServer, "-c", "4"}, {"udaddy", "-s", kServer, "-c", "4"});
}

// Nobody asks a receiver whether it is there, but its commands show when its queue pair is in the
// group.
TEST_F(ProgramsTest, Mckey) {
  flags = {"--explain"};
  std::unique_ptr<ChildProcess> receiver = Start(kServer, {"mckey", "-m", "239.77.0.1", "-b", kServer});
  ASSERT_NE(receiver, nullptr);
  WaitUntilSaid(*receiver, "attach_mcast(");
  const auto sent = Start(kClient, {"mckey", "-m", "239.77.0.1", "-b", kClient, "-s"})->Wait(kLongest);
  const auto received = receiver->Wait(kLongest);
  ASSERT_TRUE(sent.ok() && received.ok()) << Output();
  EXPECT_TRUE(sent->ok() && received->ok()) << Output();
}
// The holder of the port at a shared address refuses ports that nobody there serves.
TEST_F(ProgramsTest, ARequestWithoutAListenerIsRejected) {
  const std::unique_ptr<ChildProcess> first = StartListener({"ucmatose", "-b", kServer});
  const std::unique_ptr<ChildProcess> second = StartListener({"rdma_server"});
  ASSERT_TRUE(first != nullptr && second != nullptr);
  flags = {"--explain"};
  for (const char* address : {kClient, kServer}) {
    const auto client = Start(address, {"rping", "-c", "-a", kServer, "-C", "1"})->Wait(kLongest);
    ASSERT_TRUE(client.ok()) << Output();
    EXPECT_NE(Said(LastOutput()).find("get_event() = REJECTED, id 1, status 8"), std::string::npos) << Output();
  }
}

// perftest 4.5 connects twice. If its client is faster than its server listens again it is refused,
// correctly, and continues with an id that it has freed. So the second time the server's address
// takes until then to be resolved.
TEST_F(ProgramsTest, PerftestByTheConnectionManager) {
  const std::string resolved = FileFor("resolved");
  ASSERT_EQ(mkfifo(resolved.c_str(), 0600), 0);
  const os::FileDescriptor pipe(open(resolved.c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_TRUE(pipe.valid());
  const std::unique_ptr<ChildProcess> server = StartListener({"ib_write_bw", "-R", "-n", "100"});
  ASSERT_NE(server, nullptr);
  const std::string server_output = LastOutput();
  environment = {{"LD_PRELOAD", Built("tests/verbs/kernel/liblate_resolver.so")}, {"TOKAMAK_TEST_RESOLVED", resolved}};
  const std::unique_ptr<ChildProcess> client = Start(kClient, {"ib_write_bw", "-R", "-n", "100", kServer});
  ASSERT_NE(client, nullptr);
  WaitUntilSaid(*server, "rdma_cm: listen(id 3", server_output);
  ASSERT_EQ(write(pipe.get(), "", 1), 1);
  const auto client_end = client->Wait(kLongest);
  const auto server_end = server->Wait(kLongest);
  ASSERT_TRUE(client_end.ok() && server_end.ok()) << Output();
  EXPECT_TRUE(client_end->ok()) << client_end->ToString() << "\n" << Output();
  EXPECT_TRUE(server_end->ok()) << server_end->ToString() << "\n" << Output();
}

TEST_F(ProgramsTest, RcPingPong) { RunPingPong("ibv_rc_pingpong", {"-c"}); }
TEST_F(ProgramsTest, RcPingPongWithEvents) { RunPingPong("ibv_rc_pingpong", {"-c", "-e"}); }
TEST_F(ProgramsTest, RcPingPongByTheNewPostSend) { RunPingPong("ibv_rc_pingpong", {"-c", "-N"}); }
TEST_F(ProgramsTest, SrqPingPong) { RunPingPong("ibv_srq_pingpong", {"-c"}); }
TEST_F(ProgramsTest, SrqPingPongWithEvents) { RunPingPong("ibv_srq_pingpong", {"-c", "-e"}); }

TEST_F(ProgramsTest, UdPingPong) { RunPingPong("ibv_ud_pingpong", {"-c"}); }
TEST_F(ProgramsTest, UdPingPongWithEvents) { RunPingPong("ibv_ud_pingpong", {"-c", "-e"}); }

TEST_F(ProgramsTest, ProgramsMayShareAnAddress) {
  client_address = kServer;
  RunPingPong("ibv_rc_pingpong", {"-c"});
  RunPingPong("ibv_ud_pingpong", {"-c"});
  RunPerf("ib_write_bw", {"-n", "100", "-b", "-q", "8"});
  RunByConnectionManager({"rping", "-s", "-a", kServer, "-C", "10", "-V"},
                         {"rping", "-c", "-a", kServer, "-C", "10", "-V"});
  RunByConnectionManager({"udaddy", "-b", kServer, "-c", "4"}, {"udaddy", "-s", kServer, "-c", "4"});
}

TEST_F(ProgramsTest, SharedMemoryInPlaceOfANetwork) {
  for (const char* address : {kServer, kClient}) {
    flags = {"--shm"};
    client_address = address;
    RunPingPong("ibv_rc_pingpong", {"-c"});
    RunPingPong("ibv_rc_pingpong", {"-c", "-e"});
    RunPingPong("ibv_ud_pingpong", {"-c"});
    RunPerf("ib_write_bw", {"-n", "100", "-b", "-q", "8"});
    RunByConnectionManager({"rping", "-s", "-a", kServer, "-C", "10", "-V"},
                           {"rping", "-c", "-a", kServer, "-C", "10", "-V"});
    flags = {"--shm", "--loss", "1%", "--corrupt", "1%", "--seed", "3"};
    RunPingPong("ibv_rc_pingpong", {"-c"});
  }
}

// A process killed at any moment hinders nobody who starts after that; nor, if it had the UDP port
// of its address, those who share the address with it.
TEST_F(ProgramsTest, FiftyKillsHinderNobody) {
  base::Random random(50);
  for (int round = 0; round < 50; ++round) {
    const int port = 20000 + 2 * round;
    const std::unique_ptr<ChildProcess> holder = Start(kServer, CheckedPingPong(port + 1, {}));
    ASSERT_NE(holder, nullptr);
    WaitUntilListens(*holder, port + 1);
    const std::unique_ptr<ChildProcess> server = Start(kServer, CheckedPingPong(port, {}));
    ASSERT_NE(server, nullptr);
    WaitUntilListens(*server, port);
    const std::unique_ptr<ChildProcess> client = Start(kClient, CheckedPingPong(port, {kServer}));
    ASSERT_NE(client, nullptr);

    ChildProcess* const victim = std::vector<ChildProcess*>{holder.get(), server.get(), client.get()}[random.Below(3)];
    const auto ended = client->Wait(base::Microseconds(static_cast<int64_t>(random.Below(150'000))));
    victim->Signal(SIGKILL).IgnoreError();  // unless it has ended
    if (victim != holder.get()) continue;   // the other of the pair waits for nobody; the test ends it
    const auto client_end = ended.ok() ? ended : client->Wait(kLongest);
    const auto server_end = server->Wait(kLongest);
    ASSERT_TRUE(client_end.ok() && server_end.ok()) << "round " << round << "\n" << Output();
    EXPECT_TRUE(client_end->ok()) << "round " << round << ": " << client_end->ToString() << "\n" << Output();
    // Packets that have come to the holder's port, and are not passed on yet, are lost with it.
    if (!server_end->ok()) ExpectLastAcknowledgementLost(Said(OutputBeforeLast()));
  }
  RunPingPong("ibv_rc_pingpong", {"-c"});
  EXPECT_EQ(NicNames(), "");
}

// A kernel closes the devices of a process however it ends, and its peer hears of it.
TEST_F(ProgramsTest, AnEndingPeerIsReportedOnAnIdleConnection) {
  const std::string program = Built("tests/verbs/kernel/idle_connection");
  for (const Words& mode : {Words{}, Words{"--shm"}}) {
    for (const char* address : {kClient, kServer}) {
      for (const char* how : {"wait", "_exit", "exec"}) {
        flags = mode;
        const std::unique_ptr<ChildProcess> server = StartListener({program, "serve", kServer, how});
        ASSERT_NE(server, nullptr);
        const std::unique_ptr<ChildProcess> client = Start(address, {program, "connect", kServer});
        ASSERT_NE(client, nullptr);
        WaitUntilSaid(*client, "RDMA_CM_EVENT_ESTABLISHED");
        if (std::string(how) == "wait") {
          ASSERT_TRUE(server->Signal(SIGKILL).ok());
        }
        const auto end = client->Wait(kLongest);
        ASSERT_TRUE(end.ok()) << how << "\n" << Output();
        EXPECT_TRUE(end->ok()) << how << ": " << end->ToString() << "\n" << Output();
        EXPECT_NE(Said(LastOutput()).find("RDMA_CM_EVENT_DISCONNECTED"), std::string::npos) << Output();
        server->Wait(kLongest).status().IgnoreError();
      }
    }
  }
}

// As with a device, which answers meanwhile: a busy machine stops programs for as long.
TEST_F(ProgramsTest, AStalledPeerIsAwaitedForAMoment) {
  const Words words = {"ibv_rc_pingpong", "-c", "-g", "0", "-n", "10000"};
  const std::unique_ptr<ChildProcess> server = Start(kServer, words);
  ASSERT_NE(server, nullptr);
  WaitUntilListens(*server, 18515);
  flags = {"--explain"};
  Words to_server = words;
  to_server.emplace_back(kServer);
  const std::unique_ptr<ChildProcess> client = Start(kClient, to_server);
  ASSERT_NE(client, nullptr);
  WaitUntilSaid(*client, "state RTS");
  ASSERT_TRUE(server->Signal(SIGSTOP).ok());
  EXPECT_FALSE(client->Wait(base::Seconds(1)).ok()) << "nobody stopped it\n" << Output();
  ASSERT_TRUE(server->Signal(SIGCONT).ok());
  const auto client_end = client->Wait(kLongest);
  const auto server_end = server->Wait(kLongest);
  ASSERT_TRUE(client_end.ok() && server_end.ok()) << Output();
  EXPECT_TRUE(client_end->ok() && server_end->ok()) << Output();
}

TEST_F(ProgramsTest, PerftestByDatagrams) {
  for (const char* program : {"ib_send_lat", "ib_send_bw"}) RunPerf(program, {"-c", "UD", "-n", "100"});
}

// It makes its own connections by datagrams.
TEST_F(ProgramsTest, Ucx) {
  for (const char* transports : {"ud_verbs", "rc_verbs,ud_verbs"}) {
    for (const char* test : {"tag_lat", "ucp_get"}) {
      Words options = {"env",
                       absl::StrCat("UCX_TLS=", transports),
                       "UCX_NET_DEVICES=rxe_tok0:1",
                       "HOME=/",  // MPI, with which Debian 13 builds it, asks for one
                       "ucx_perftest",
                       "-P",  // without MPI
                       "0",
                       "-t",
                       test,
                       "-s",
                       "4096",
                       "-n",
                       "100",
                       "-w",
                       "10"};
      Words client = options;
      client.push_back(kServer);
      RunPair(options, client, 13337);
    }
  }
}

TEST_F(ProgramsTest, PerftestLatencies) {
  for (const char* program : {"ib_send_lat", "ib_write_lat", "ib_read_lat", "ib_atomic_lat"}) {
    RunPerf(program, {"-n", "100"});
  }
}
TEST_F(ProgramsTest, PerftestBandwidths) {
  for (const char* program : {"ib_send_bw", "ib_write_bw", "ib_read_bw", "ib_atomic_bw"}) {
    RunPerf(program, {"-n", "100"});
  }
}
TEST_F(ProgramsTest, PerftestWithEvents) { RunPerf("ib_send_lat", {"-n", "100", "-e"}); }
TEST_F(ProgramsTest, PerftestWithSharedReceives) { RunPerf("ib_send_bw", {"-n", "100", "-r", "64", "--use-srq"}); }
TEST_F(ProgramsTest, PerftestBothWaysWithManyQueuePairs) { RunPerf("ib_write_bw", {"-n", "100", "-b", "-q", "8"}); }

}  // namespace
}  // namespace tokamak::verbs::kernel
