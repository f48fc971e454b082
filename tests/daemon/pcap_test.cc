// tokd's file of --pcap is RoCEv2 to an independent judge: tshark decodes every packet.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/daemon/tokd_process.h"

namespace tokamak::daemon {
namespace {

using Strings = std::vector<std::string>;

// Protocols that tshark sees in any payload that begins like one of theirs; ours is none of them.
const Strings kGuessers = {"rpcordma", "smb_direct", "smc", "nvme-rdma", "lnet", "iser", "infiniband_sdp", "fcoib"};

class PcapTest : public testing::Test {
 protected:
  // The lines that tshark prints of the packets that `filter` lets through, as these fields.
  Strings Decode(const std::string& file, const std::string& filter, const Strings& fields) {
    os::ChildOptions options;
    options.argv = {"tshark", "-d", "udp.port==4792,infiniband", "-r", file, "-Y", filter, "-T", "fields"};
    for (const std::string& guesser : kGuessers)
      options.argv.insert(options.argv.end(), {"--disable-protocol", guesser});
    for (const std::string& field : fields) options.argv.insert(options.argv.end(), {"-e", field});
    options.output = folder_.Path("tshark.out");
    options.environment = {{"HOME", folder_.Path("")}};
    std::ofstream(options.output, std::ios::trunc);
    const auto process = os::ChildProcess::Start(options);
    EXPECT_TRUE(process.ok()) << process.status() << " (ci/setup installs it)";
    if (!process.ok()) return {};
    const auto ended = (*process)->Wait(base::Seconds(60));
    std::ifstream output(options.output);
    const std::string text{std::istreambuf_iterator<char>(output), std::istreambuf_iterator<char>()};
    EXPECT_TRUE(ended.ok() && ended->ok()) << text;
    Strings lines = absl::StrSplit(text, '\n', absl::SkipEmpty());
    lines.erase(std::remove_if(lines.begin(), lines.end(),
                               [](const std::string& line) { return absl::StartsWith(line, "Running as user"); }),
                lines.end());
    return lines;
  }

  size_t Count(const std::string& file, const std::string& filter) {
    return Decode(file, filter, {"frame.number"}).size();
  }

  ShortFolder folder_;
};

TEST_F(PcapTest, TsharkDecodesEveryPacketOfTwoNodes) {
  std::vector<std::unique_ptr<TokdProcess>> nodes;
  nodes.push_back(std::make_unique<TokdProcess>(folder_, 1, Strings{"--pcap", folder_.Path("1.pcap")}));
  nodes.back()->AwaitReady();
  Strings flags = DirectoryOfNode1();
  flags.insert(flags.end(), {"--pcap", folder_.Path("2.pcap")});
  nodes.push_back(std::make_unique<TokdProcess>(folder_, 2, flags));
  nodes.back()->AwaitReady();
  {
    Client one = nodes[0]->Connect();
    Client two = nodes[1]->Connect();
    for (const auto protocol : {Protocol::kEager, Protocol::kRead, Protocol::kWrite}) {
      for (const size_t size : {size_t{1}, size_t{1'777'777}}) {
        const auto id = ObjectId::FromName(absl::StrCat(static_cast<int>(protocol), " ", size));
        ASSERT_TRUE(one.Put(id, Pattern(size, 1)).ok());
        ASSERT_TRUE(two.Get(id, kPatience, {protocol}).ok());
      }
    }
  }
  EXPECT_EQ(nodes[1]->Terminate().status.code, 0);
  EXPECT_EQ(nodes[0]->Terminate().status.code, 0);

  // Opcodes of the reliable connection: SEND Only, RDMA WRITE First, RDMA READ Request, READ
  // Response First, ACK.
  const Strings opcodes = {"4", "6", "12", "13", "17"};
  // Attribute ids of the connection manager.
  const std::vector<std::pair<const char*, const char*>> messages = {{"ConnectRequest", "0x0010"},
                                                                     {"ConnectReply", "0x0013"},
                                                                     {"ReadyToUse", "0x0014"},
                                                                     {"DisconnectRequest", "0x0015"}};
  for (const char* node : {"1.pcap", "2.pcap"}) {
    size_t packets = 0;
    std::map<std::string, size_t> of_opcode;
    for (const auto& [suffix, port] : {std::make_pair("", 4791), std::make_pair(".bulk", 4792)}) {
      const std::string file = absl::StrCat(folder_.Path(node), suffix);
      const size_t here = Count(file, "frame");
      EXPECT_EQ(Count(file, absl::StrCat("ip && udp.dstport == ", port, " && infiniband.bth")), here) << file;
      EXPECT_EQ(Decode(file, "_ws.malformed", {"frame.number", "_ws.col.Info"}), Strings()) << file;
      for (const auto& [name, attribute] : messages) {
        EXPECT_GT(
            Count(file, absl::StrCat("infiniband.mad.mgmtclass == 0x07 && infiniband.mad.attributeid == ", attribute)),
            0u)
            << file << " " << name;
      }
      packets += here;
      for (const std::string& opcode : opcodes) of_opcode[opcode] += Count(file, "infiniband.bth.opcode == " + opcode);
    }
    EXPECT_GT(packets, 3 * 1'777'777 / 4096u) << node;
    for (const std::string& opcode : opcodes) EXPECT_GT(of_opcode[opcode], 0u) << node << " opcode " << opcode;
  }
}

}  // namespace
}  // namespace tokamak::daemon
