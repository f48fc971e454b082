// Strangers, who do not have the cluster's secret, at real daemons: they say what could once read,
// change and delete all objects, and end nodes.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/base/codec.h"
#include "lib/daemon/flags/secret_file.h"
#include "lib/transport/messages/message.h"
#include "tests/daemon/security/stranger.h"
#include "tests/daemon/tokd_process.h"
#include "tests/support/test_devices.h"

namespace tokamak::daemon {
namespace {

using base::Milliseconds;
using base::Seconds;
using testing_support::ShortFolder;
using Bytes = std::vector<uint8_t>;

constexpr size_t kSize = 100;                                       // bytes of an object
constexpr base::Duration kPatienceWithStrangers = Seconds(6);       // a second more than kHandshakeTime
constexpr uint8_t kDirectoryService = 1, kObjectsService = 2;       // lib/node/calls
constexpr uint8_t kJoin = 1, kLeave = 2, kUpdate = 3, kDelete = 5;  // lib/directory/remote
constexpr uint8_t kDrop = 1, kPush = 7;                             // lib/node/calls, about objects

Bytes Encoded(const transport::Header& header, const Bytes& body) {
  Bytes bytes(transport::MessageSize(header, body.size()));
  transport::EncodeMessage(header, body, absl::MakeSpan(bytes));
  return bytes;
}

Bytes Call(uint8_t service, uint8_t request, const std::string& name) {
  base::Writer writer;
  writer.Integer(service);
  writer.Integer(request);
  writer.Text(name);
  writer.Integer(uint64_t{1});
  transport::Header header;
  header.kind = transport::MessageKind::kCall;
  header.transfer = 1;
  header.deadline_ms = 5000;
  return Encoded(header, writer.Take());
}

Bytes Transfer(const base::ObjectId& object, transport::Protocol protocol) {
  transport::Header header;
  header.kind = transport::MessageKind::kTransfer;
  header.transfer = 1;
  header.deadline_ms = 5000;
  header.protocol = protocol;
  header.object = object;
  header.size = {kSize, 0};
  return Encoded(header, {});
}

class StrangersTest : public testing::Test {
 protected:
  StrangersTest() {
    const std::string secret = folder_.Path("secret"), text = NewSecretFile();
    std::ofstream(secret) << text;
    EXPECT_EQ(chmod(secret.c_str(), 0600), 0);
    secret_ = (*ReadSecretFile(secret))->first().id();
    const auto start = [&](int index, std::vector<std::string> flags) {
      flags.insert(flags.end(), {"--secret-file", secret});
      nodes_.push_back(std::make_unique<TokdProcess>(folder_, index, flags));
      nodes_.back()->AwaitReady();
    };
    start(1, {});
    start(2, DirectoryOfNode1());
    service_ = testing_support::PlaceOfNode(1).listen;
  }

  bool AllIsWell(const std::string& name) {
    const ObjectId id = ObjectId::FromName(name);
    Client one = nodes_[0]->Connect(), two = nodes_[1]->Connect();
    if (!one.Put(id, Pattern(kSize, 7)).ok()) return false;
    auto got = two.Get(id, kPatience);
    return got.ok() && Same(got->data(), Pattern(kSize, 7));
  }

  uint64_t OfBoth(const char* number) {
    Client one = nodes_[0]->Connect();
    return Number(one, absl::StrCat("engine0_", number)) + Number(one, absl::StrCat("engine1_", number));
  }

  ShortFolder folder_;
  security::SecretId secret_;
  std::vector<std::unique_ptr<TokdProcess>> nodes_;
  verbs::Address service_;
};

TEST_F(StrangersTest, NothingThatHeSaysIsAnsweredOrBelieved) {
  ASSERT_TRUE(AllIsWell("before"));
  const base::ObjectId object = base::ObjectId::FromName("before");
  Stranger stranger("soft:udp@127.0.0.79");
  transport::Hello knows_the_id = Stranger::Hello();
  knows_the_id.secret = secret_;
  knows_the_id.seals = true;
  const Bytes words[] = {
      {},
      Bytes(48, 1),
      Call(kDirectoryService, kJoin, "evil"),
      Call(kDirectoryService, kJoin, "node2"),
      Call(kDirectoryService, kLeave, "node2"),
      Call(kDirectoryService, kUpdate, "node1"),
      Call(kDirectoryService, kDelete, "before"),
      Call(kObjectsService, kDrop, "before"),
      Call(kObjectsService, kPush, "before"),
      Transfer(object, transport::Protocol::kEager),
      Transfer(object, transport::Protocol::kRead),
  };
  uint64_t refused = 0;
  for (const Bytes& first : words) {
    const Stranger::Outcome with_id = stranger.Say(service_, knows_the_id, first, kPatienceWithStrangers);
    EXPECT_TRUE(with_id.connected && with_id.ended) << first.size();
    EXPECT_EQ(with_id.messages_came, 0u);
    const Stranger::Outcome without = stranger.Say(service_, Stranger::Hello(), first, kPatienceWithStrangers);
    EXPECT_TRUE(without.rejected && !without.connected);
    refused += 2;
  }
  EXPECT_TRUE(Eventually([&] { return OfBoth("peers_refused_total") == refused; })) << OfBoth("peers_refused_total");
  EXPECT_EQ(OfBoth("protocol_errors_total"), 0u);
  Client two = nodes_[1]->Connect();
  auto still_there = two.Get(ObjectId::FromName("before"), kPatience);
  EXPECT_TRUE(still_there.ok() && Same(still_there->data(), Pattern(kSize, 7)));
  EXPECT_TRUE(AllIsWell("after"));
}

// Each asks, and then says nothing.
TEST_F(StrangersTest, ACrowdTakesNoPlaceFromHonestNodes) {
  ASSERT_TRUE(AllIsWell("before"));
  Stranger stranger("soft:udp@127.0.0.79");
  transport::Hello hello = Stranger::Hello();
  hello.secret = secret_;
  hello.seals = true;
  size_t came_up = 0;
  for (int wave = 0; wave < 20; ++wave) {
    came_up += stranger.Crowd(service_, hello, 50, Seconds(10));
    EXPECT_TRUE(AllIsWell(absl::StrCat("wave", wave)));
  }
  EXPECT_GT(came_up, 500u);
  EXPECT_EQ(OfBoth("connections_lost_total"), 0u);
  // A node that is new gets in.
  TokdProcess three(folder_, 3,
                    {"--directory", "tokd@" + service_.ToString(), "--secret-file", folder_.Path("secret")});
  three.AwaitReady();
  EXPECT_EQ(three.log().find("not in a cluster"), std::string::npos) << three.log();
}

}  // namespace
}  // namespace tokamak::daemon
