// Real daemons that have a cluster secret: among themselves, while it is rotated, and with others.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <atomic>
#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "lib/daemon/flags/secret_file.h"
#include "tests/daemon/tokd_process.h"

namespace tokamak::daemon {
namespace {

using testing_support::ShortFolder;

constexpr size_t kSmall = 100;      // bytes: travels in a message
constexpr size_t kLarge = 1 << 20;  // bytes: by READ or WRITE

class SecuredDaemonsTest : public testing::Test {
 protected:
  std::string SecretFile(const std::string& name, const std::string& text) {
    const std::string path = folder_.Path(name);
    Rewrite(path, text);
    return path;
  }
  static void Rewrite(const std::string& path, const std::string& text) {
    std::ofstream(path) << text;
    EXPECT_EQ(chmod(path.c_str(), 0600), 0);
  }

  std::unique_ptr<TokdProcess> Start(int index, const std::string& secret_file) {
    std::vector<std::string> flags = index == 1 ? std::vector<std::string>() : DirectoryOfNode1();
    if (!secret_file.empty()) flags.insert(flags.end(), {"--secret-file", secret_file});
    return std::make_unique<TokdProcess>(folder_, index, flags);
  }

  static void Put(TokdProcess& node, const std::string& name, size_t size) {
    Client client = node.Connect();
    ASSERT_TRUE(client.Put(ObjectId::FromName(name), Pattern(size, static_cast<uint8_t>(size))).ok());
  }
  static bool Gets(TokdProcess& node, const std::string& name, size_t size) {
    Client client = node.Connect();
    auto got = client.Get(ObjectId::FromName(name), kPatience);
    return got.ok() && Same(got->data(), Pattern(size, static_cast<uint8_t>(size)));
  }

  // Its programs are served, but it is in no cluster.
  static void ExpectOutside(TokdProcess& node, const std::string& why) {
    node.AwaitReady();
    EXPECT_TRUE(absl::StrContains(node.log(), "not in a cluster yet")) << node.log();
    EXPECT_TRUE(absl::StrContains(node.log(), why)) << node.log();
  }

  ShortFolder folder_;
};

TEST_F(SecuredDaemonsTest, NodesOfOneSecretShareObjects) {
  const std::string secret = SecretFile("secret", NewSecretFile());
  auto one = Start(1, secret), two = Start(2, secret);
  one->AwaitReady();
  two->AwaitReady();
  EXPECT_FALSE(absl::StrContains(two->log(), "not in a cluster")) << two->log();
  Put(*one, "small", kSmall);
  Put(*one, "large", kLarge);
  EXPECT_TRUE(Gets(*two, "small", kSmall));
  EXPECT_TRUE(Gets(*two, "large", kLarge));
  Client client = two->Connect();
  EXPECT_GT(Number(client, "engine0_peers_proven_total"), 0u);
  EXPECT_EQ(Number(client, "engine0_peers_refused_total"), 0u);
}

TEST_F(SecuredDaemonsTest, ANodeWithAnotherSecretStaysOutsideAndIsToldBothIds) {
  const std::string ours = SecretFile("ours", NewSecretFile()), other = SecretFile("other", NewSecretFile());
  auto one = Start(1, ours), two = Start(2, other);
  one->AwaitReady();
  Put(*one, "x", kSmall);
  for (const std::string& file : {ours, other}) {
    const auto secrets = ReadSecretFile(file);
    ASSERT_TRUE(secrets.ok()) << secrets.status();
    ExpectOutside(*two, (*secrets)->first().id().ToString());
  }
  Client client = two->Connect();
  EXPECT_FALSE(client.Get(ObjectId::FromName("x"), std::chrono::milliseconds(200)).ok());
}

TEST_F(SecuredDaemonsTest, ANodeWithoutSecretStaysOutsideAndIsToldWhatToDo) {
  auto one = Start(1, SecretFile("secret", NewSecretFile())), two = Start(2, "");
  one->AwaitReady();
  ExpectOutside(*two, "give this node the same file (--secret-file)");
}

TEST_F(SecuredDaemonsTest, AFileThatCannotBeUsedEndsTheStart) {
  const auto refused = [this](const std::string& file) {
    auto node = Start(1, file);
    const Ended ended = node->AwaitEnd();
    EXPECT_EQ(ended.status.code, 2);
    EXPECT_EQ(ended.lines(), 1u) << ended.text;
    EXPECT_TRUE(absl::StrContains(ended.text, file)) << ended.text;
    return ended.text;
  };
  EXPECT_TRUE(absl::StrContains(refused(folder_.Path("missing")), "No such file"));
  EXPECT_TRUE(absl::StrContains(refused(SecretFile("text", "hello\n")), "tok secret new"));
  const std::string open = SecretFile("open", NewSecretFile());
  ASSERT_EQ(chmod(open.c_str(), 0644), 0);
  EXPECT_TRUE(absl::StrContains(refused(open), "chmod 600"));
}

// Gets go on all the while; after each step of a node, a node that is new in the cluster proves
// itself to the others with what it was given.
TEST_F(SecuredDaemonsTest, ASecretIsRotatedWithoutAFailedGet) {
  const std::string old_secret = NewSecretFile(), new_secret = NewSecretFile();
  const std::string files[] = {SecretFile("secret1", old_secret), SecretFile("secret2", old_secret)};
  auto one = Start(1, files[0]), two = Start(2, files[1]);
  one->AwaitReady();
  two->AwaitReady();
  Put(*one, "x", kSmall);

  std::atomic<bool> over{false};
  std::atomic<int> got{0}, failed{0};
  std::thread load([&] {
    for (int i = 0; !over; ++i) {
      const std::string name = absl::StrCat("load", i);
      Put(*one, name, kSmall);
      Gets(*two, name, kSmall) ? ++got : ++failed;
    }
  });
  const std::string steps[] = {old_secret + new_secret, new_secret + old_secret, new_secret};
  TokdProcess* nodes[] = {one.get(), two.get()};
  for (const std::string& step : steps) {
    for (int i = 0; i < 2; ++i) {
      Rewrite(files[i], step);
      const size_t before = nodes[i]->log().size();
      nodes[i]->Signal(SIGHUP);
      ASSERT_TRUE(Eventually([&] { return absl::StrContains(nodes[i]->log().substr(before), "reload: changed"); }));
    }
    auto three = Start(3, SecretFile("secret3", step));
    three->AwaitReady();
    EXPECT_FALSE(absl::StrContains(three->log(), "not in a cluster")) << three->log();
    EXPECT_TRUE(Gets(*three, "x", kSmall));
    three->Terminate();
  }
  auto late = Start(3, SecretFile("secret3", old_secret));
  ExpectOutside(*late, "give both nodes the same secret file");
  over = true;
  load.join();
  EXPECT_GT(got, 10);
  EXPECT_EQ(failed, 0);
}

TEST_F(SecuredDaemonsTest, AReloadOfAFileThatIsWrongChangesNothing) {
  const std::string good = NewSecretFile(), file = SecretFile("secret", good);
  auto one = Start(1, file);
  one->AwaitReady();
  Rewrite(file, "nonsense\n");
  one->Signal(SIGHUP);
  ASSERT_TRUE(Eventually([&] { return absl::StrContains(one->log(), "the secrets of before stay valid"); }));
  auto two = Start(2, SecretFile("secret2", good));
  two->AwaitReady();
  EXPECT_FALSE(absl::StrContains(two->log(), "not in a cluster")) << two->log();
}

}  // namespace
}  // namespace tokamak::daemon
