// tok verbs: what its flags mean, and where it finds its shared object.
#include <elf.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "gtest/gtest.h"
#include "lib/cli/verbs/command.h"
#include "lib/cli/verbs/program_file.h"
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

TEST(TokVerbsTest, FaultsArePassedOn) {
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

TEST(TokVerbsTest, APathThatTheDynamicLinkerWouldSplitIsRefused) {
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

class ProgramFileTest : public testing::Test {
 protected:
  // A copy of this very program, changed.
  static std::string Copy(const std::string& name, const std::string& from, const std::string& to) {
    std::ifstream self("/proc/self/exe", std::ios::binary);
    std::string bytes{std::istreambuf_iterator<char>(self), std::istreambuf_iterator<char>()};
    if (!from.empty()) {
      const size_t at = bytes.find(from);
      EXPECT_NE(at, std::string::npos);
      std::string there = to;
      there.resize(from.size());
      bytes.replace(at, from.size(), there);
    }
    return Write(name, bytes);
  }
  static std::string Write(const std::string& name, const std::string& bytes) {
    std::string path = std::string(std::getenv("TEST_TMPDIR")) + "/" + name;
    std::ofstream(path, std::ios::binary) << bytes;
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return path;
  }
  // The dynamic linker that this program names.
  static std::string Linker() {
    for (const char* linker : {"/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1"}) {
      if (std::filesystem::exists(linker)) return linker;
    }
    return {};
  }
};

TEST_F(ProgramFileTest, AProgramOfMuslIsRecognisedByItsDynamicLinker) {
  const std::string own = Copy("own", "", "");
  EXPECT_EQ(FindProgramFile(own).reach, Reach::kWhole);
  const std::string musl = Copy("musl", Linker(), "/lib/ld-musl-any.so.1");
  EXPECT_EQ(FindProgramFile(musl).reach, Reach::kMusl);
  const ProgramFile script = FindProgramFile(Write("script", "#! " + musl + " -x\nls\n"));
  EXPECT_EQ(script.reach, Reach::kMusl);
  EXPECT_EQ(script.path, musl);
  const ProgramFile itself =
      FindProgramFile(Write("itself", std::string("#!") + std::getenv("TEST_TMPDIR") + "/itself\n"));
  EXPECT_EQ(itself.reach, Reach::kWhole) << "it ends";
}

TEST_F(ProgramFileTest, AProgramWithoutADynamicLinkerIsStatic) {
  // The segment that names it is another one now: PT_NULL.
  const std::string own = Copy("own", "", "");
  std::fstream file(own, std::ios::in | std::ios::out | std::ios::binary);
  Elf64_Ehdr header;
  file.read(reinterpret_cast<char*>(&header), sizeof header);
  for (int i = 0; i < header.e_phnum; ++i) {
    const auto at = static_cast<std::streamoff>(header.e_phoff + i * sizeof(Elf64_Phdr));
    Elf64_Phdr segment;
    file.seekg(at);
    file.read(reinterpret_cast<char*>(&segment), sizeof segment);
    if (segment.p_type != PT_INTERP) continue;
    segment.p_type = PT_NULL;
    file.seekp(at);
    file.write(reinterpret_cast<const char*>(&segment), sizeof segment);
  }
  file.close();
  EXPECT_EQ(FindProgramFile(own).reach, Reach::kStatic);
}

TEST_F(ProgramFileTest, AnotherUsersSetuidProgramIsRecognised) {
  const std::string own = Copy("own", "", "");
  std::filesystem::permissions(own, std::filesystem::perms::owner_all | std::filesystem::perms::set_uid);
  EXPECT_EQ(FindProgramFile(own).reach, Reach::kWhole) << "it is ours";
  if (geteuid() != 0 || chown(own.c_str(), 1, 1) != 0) GTEST_SKIP() << "only root can give a file away";
  std::filesystem::permissions(own, std::filesystem::perms::owner_all | std::filesystem::perms::set_uid);
  EXPECT_EQ(FindProgramFile(own).reach, Reach::kMoreRights);
}

TEST_F(ProgramFileTest, ProgramsAreFoundAsAShellFindsThem) {
  const std::string folder = std::getenv("TEST_TMPDIR");
  Copy("tok-test-musl", Linker(), "/lib/ld-musl-any.so.1");
  const std::string path = std::getenv("PATH");
  setenv("PATH", (path + ":" + folder).c_str(), 1);
  EXPECT_EQ(FindProgramFile("tok-test-musl").path, folder + "/tok-test-musl");
  setenv("PATH", path.c_str(), 1);
  const ProgramFile missing = FindProgramFile("tok-test-musl");
  EXPECT_EQ(missing.path, "tok-test-musl");
  EXPECT_EQ(missing.reach, Reach::kWhole);
  EXPECT_EQ(FindProgramFile(folder).reach, Reach::kWhole);
  EXPECT_EQ(FindProgramFile(Write("cut",
                                  "\x7f"
                                  "ELF"))
                .reach,
            Reach::kWhole);
}

TEST(TokVerbsTest, AMissingSharedObjectIsReportedWithItsPlace) {
  const auto found = FindSharedObject("/nowhere/ours.so");
  ASSERT_FALSE(found.ok());
  EXPECT_NE(found.status().message().find("/nowhere/ours.so"), std::string::npos);
  EXPECT_NE(found.status().message().find("--library"), std::string::npos);
}

}  // namespace
}  // namespace tokamak::cli::verbs
