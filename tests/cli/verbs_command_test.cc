// tok verbs: what its flags mean, and where it finds its shared object.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "gtest/gtest.h"
#include "lib/cli/verbs/command.h"
#include "lib/cli/verbs/shared_object.h"

namespace tokamak::cli::verbs {
namespace {

TEST(TokVerbsTest, DevicesHaveAddressesThatFollowEachOther) {
  CommandFlags flags;
  flags.addresses = {"10.0.0.255"};
  flags.devices = 2;
  const auto options = OptionsOf(flags);
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->ToString(), "address=10.0.0.255+10.0.1.0");
}

TEST(TokVerbsTest, FaultsAreHandedOn) {
  CommandFlags flags;
  flags.loss = "1%";
  flags.corrupt = "0.5%";
  flags.delay = "2ms";
  flags.seed = 12;
  flags.error_at = "3:flushed";
  flags.port_down = "1s";
  const auto options = OptionsOf(flags);
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->ToString(),
            "loss=0.01,corrupt=0.005,delay=2000000ns,seed=12,error-at=3:flushed,port-down=1000000000ns");
}

TEST(TokVerbsTest, AWrongFlagIsNamed) {
  CommandFlags flags;
  flags.delay = "long";
  EXPECT_NE(OptionsOf(flags).status().message().find("--delay"), std::string::npos);
  flags = CommandFlags();
  flags.addresses = {"nowhere"};
  EXPECT_NE(OptionsOf(flags).status().message().find("--address"), std::string::npos);
  flags = CommandFlags();
  flags.error_at = "0";
  EXPECT_NE(OptionsOf(flags).status().message().find("--error-at"), std::string::npos);
  flags = CommandFlags();
  flags.port_down = "soon";
  EXPECT_NE(OptionsOf(flags).status().message().find("--port-down"), std::string::npos);
  flags = CommandFlags();
  flags.pcap = "/tmp/a,b";
  EXPECT_NE(OptionsOf(flags).status().message().find("--pcap"), std::string::npos);
}

TEST(TokVerbsTest, TheSharedObjectStandsBeforeOthersThatArePreloaded) {
  EXPECT_EQ(WithPreload("/x/ours.so", ""), "/x/ours.so");
  EXPECT_EQ(WithPreload("/x/ours.so", "a.so b.so"), "/x/ours.so:a.so:b.so");
  EXPECT_EQ(WithPreload("/x/ours.so", "a.so:/x/ours.so"), "/x/ours.so:a.so");
}

TEST(TokVerbsTest, ASanitizersRuntimeStaysBeforeIt) {
  EXPECT_EQ(WithPreload("/x/ours.so", "a.so:/usr/lib/libasan.so.8"), "/usr/lib/libasan.so.8:/x/ours.so:a.so");
  EXPECT_EQ(WithPreload("/x/ours.so", "libtsan.so.2"), "libtsan.so.2:/x/ours.so");
}

TEST(TokVerbsTest, APathThatTheDynamicLinkerWouldTakeApartIsRefused) {
  for (const char* folder : {"a b", "a:b"}) {
    const std::string path = std::string(std::getenv("TEST_TMPDIR")) + "/" + folder;
    ASSERT_TRUE(std::filesystem::create_directories(path));
    std::ofstream(path + "/ours.so") << "";
    const auto found = FindSharedObject(path + "/ours.so");
    ASSERT_FALSE(found.ok());
    EXPECT_NE(found.status().message().find(path), std::string::npos) << found.status();
    EXPECT_NE(found.status().message().find("--library"), std::string::npos) << found.status();
    EXPECT_EQ(found.status().message().find('\n'), std::string::npos) << found.status();
  }
}

TEST(TokVerbsTest, ASharedObjectThatIsNotThereIsSaidWithItsPlace) {
  const auto found = FindSharedObject("/nowhere/ours.so");
  ASSERT_FALSE(found.ok());
  EXPECT_NE(found.status().message().find("/nowhere/ours.so"), std::string::npos);
  EXPECT_NE(found.status().message().find("--library"), std::string::npos);
}

}  // namespace
}  // namespace tokamak::cli::verbs
