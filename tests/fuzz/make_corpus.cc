// Writes the first inputs of each fuzz target, one valid message of each kind or a random program:
// make_corpus FOLDER
//
// The files committed below corpus/ began like this and were then extended and minimised by ci/fuzz
// --minimise.
#include <sys/stat.h>

#include <fstream>
#include <initializer_list>
#include <iostream>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/base/check.h"
#include "lib/base/codec.h"
#include "lib/base/random.h"
#include "lib/client/protocol/frame.h"
#include "lib/node/calls/node_numbers.h"
#include "lib/node/calls/object_messages.h"
#include "lib/security/cluster_secret.h"
#include "lib/transport/messages/hello.h"
#include "lib/transport/messages/message.h"
#include "lib/transport/messages/rail_messages.h"
#include "lib/verbs/datagrams.h"
#include "lib/verbs/soft/cm/connection_rules.h"
#include "lib/verbs/soft/cm/mad.h"
#include "lib/verbs/soft/packets/datagram.h"
#include "tests/support/hex.h"

namespace tokamak::fuzz {
namespace {

using Bytes = std::vector<uint8_t>;

class Corpus final {
 public:
  explicit Corpus(std::string folder) : folder_(std::move(folder)) { mkdir(folder_.c_str(), 0755); }

  void Add(const std::string& target, const Bytes& bytes) {
    const std::string folder = folder_ + "/" + target;
    mkdir(folder.c_str(), 0755);
    std::ofstream file(absl::StrCat(folder, "/seed-", number_++), std::ios::binary);
    file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    CHECK(file.good()) << folder;
  }
  void Add(const std::string& target, uint8_t first, const std::string& text) {
    Bytes bytes = {first};
    bytes.insert(bytes.end(), text.begin(), text.end());
    Add(target, bytes);
  }

 private:
  const std::string folder_;
  int number_ = 0;
};

void AddPackets(Corpus& corpus) {
  using namespace verbs::soft;  // NOLINT: in a function
  const IcrcFlow flow(*verbs::Address::Parse("10.0.0.1:50000"), *verbs::Address::Parse("10.0.0.2:4791"));
  const Bytes payload(256, 0x5a);
  for (int opcode = 0; opcode < 256; ++opcode) {
    Packet packet;
    packet.opcode = static_cast<PacketOpcode>(opcode);
    if (!IsKnown(packet.opcode)) continue;
    packet.destination = 0x123456;
    packet.psn = 0xfffffe;
    packet.remote_address = 0x7f0000001000;
    packet.rkey = 0x1234;
    packet.dma_length = 5;
    const bool bare = packet.opcode == PacketOpcode::kReadRequest || packet.opcode == PacketOpcode::kAcknowledge ||
                      packet.opcode >= PacketOpcode::kAtomicAcknowledge;
    packet.slices = bare ? 0 : 1;
    packet.payload[0] = {payload.data(), static_cast<uint32_t>(opcode % 3 == 0 ? payload.size() : 5)};
    Bytes bytes(2 + kMaxDatagram);
    bytes.resize(2 + EncodeDatagram(packet, flow, 0, bytes.data() + 2));
    corpus.Add("packet", bytes);
  }
  // From the kernel's Soft-RoCE: an acknowledgement, and a WRITE of nothing, behind their IP and
  // UDP headers.
  for (const char* hex : {"1100ffff00123456001111111f000001bce11caa",
                          "0a40ffff000000118011111b00007fc3258540000000025b00000000b37f2676"}) {
    Bytes bytes = {0x9f, 0x09};
    const Bytes datagram = support::BytesOfHex(hex);
    bytes.insert(bytes.end(), datagram.begin(), datagram.end());
    corpus.Add("packet", bytes);
  }
  corpus.Add(
      "packet",
      support::BytesOfHex(
          "000045000030099f400040111c820a4d00020a4d0001f9b012b7001c00001100ffff00123456001111111f000001bce11caa"));
}

void AddMads(Corpus& corpus) {
  using namespace verbs::soft;  // NOLINT: in a function
  ConnectionOffer offer;
  offer.queue_pair = 17;
  offer.max_path_mtu = 1024;
  const ReqMad req =
      MakeReq(offer, *verbs::Address::Parse("10.0.0.9:40000"), *verbs::Address::Parse("10.0.0.2:7000"), 99, 1);
  SidrReqMad sidr_req;
  sidr_req.request_id = 1;
  sidr_req.service_id = ServiceId(PortSpace::kUdp, 7000);
  sidr_req.private_data =
      JoinPrivateData({*verbs::Address::Parse("10.0.0.9:40000"), *verbs::Address::Parse("10.0.0.2")}, ServiceData{});
  SidrRepMad sidr_rep;
  sidr_rep.request_id = 1;
  sidr_rep.queue_pair = 17;
  sidr_rep.service_id = sidr_req.service_id;
  sidr_rep.qkey = verbs::kServiceQkey;
  for (const Mad& mad :
       {Mad{1, req}, Mad{1, MraMad{1, 2}}, Mad{1, MakeMtuRej(req, 512)}, Mad{1, MakeRep(offer, req, 7, 3)},
        Mad{1, RtuMad{1, 2}}, Mad{1, DreqMad{1, 2, 3}}, Mad{1, DrepMad{1, 2}}, Mad{1, sidr_req}, Mad{1, sidr_rep}}) {
    const MadBytes bytes = EncodeMad(mad);
    corpus.Add("mad", Bytes(bytes.begin(), bytes.end()));
  }
}

void AddMessages(Corpus& corpus) {
  using namespace transport;  // NOLINT: in a function
  for (uint8_t kind = 1; kind <= static_cast<uint8_t>(MessageKind::kRelease); ++kind) {
    Header header;
    header.kind = static_cast<MessageKind>(kind);
    if (header.kind != MessageKind::kCredit && header.kind < MessageKind::kRails) header.transfer = 7;
    size_t body = 0;
    Bytes text;
    switch (header.kind) {
      case MessageKind::kTransfer:
        header.flags = kProtocolGiven;
        header.protocol = transport::Protocol::kWrite;
        header.size = {100, 20};
        header.generation = base::Generation{77};
        header.arrived = 30;
        header.remote = {0x7f0000001000, 0x1234, {2, {{{1, 0x77}, {3, 0x78}}}}};
        break;
      case MessageKind::kData:
        header.protocol = transport::Protocol::kRead;
        header.size = {100, 20};
        header.remote = {0x7f0000001000, 0x1234, {1, {{{1, 0x77}}}}};
        break;
      case MessageKind::kChunk:
        header.protocol = transport::Protocol::kEager;
        header.size = {100, 20};
        header.offset = 50;
        body = 30;
        break;
      case MessageKind::kDone:
        header.protocol = transport::Protocol::kRead;
        break;
      case MessageKind::kFail:
        header.status = absl::StatusCode::kNotFound;
        header.arrived = 30;
        body = 9;
        break;
      case MessageKind::kCall:
      case MessageKind::kReply:
        body = 12;
        break;
      case MessageKind::kProgress:
        header.offset = 50;
        header.arrived = 40;
        break;
      case MessageKind::kRails:
        text = EncodeRails({*verbs::Address::Parse("10.0.0.1:7000"), *verbs::Address::Parse("10.0.1.1:7000")});
        break;
      case MessageKind::kRailDown:
        header.rail = 1;
        text = EncodeWanted({{7, 1}, {9, 0}});
        break;
      case MessageKind::kCancel:
      case MessageKind::kCredit:
      case MessageKind::kRelease:
        header.credits = 3;
        header.flags = kMoreSlots;
        break;
    }
    if (text.empty()) text.assign(body, 0x61);
    Bytes bytes(1 + MessageSize(header, text.size()));
    bytes[0] = 2;
    EncodeMessage(header, text, absl::MakeSpan(bytes).subspan(1));
    corpus.Add("message", bytes);
  }
  Hello hello;
  hello.reads_served = 16;
  hello.slot_size = 16384;
  hello.first_slots = 4;
  hello.receive_slots = 128;
  hello.max_transfers = hello.max_calls = 100;
  Bytes bytes(1 + kHelloSize);
  EncodeHello(hello, absl::MakeSpan(bytes).subspan(1));
  corpus.Add("message", bytes);
  hello.queue = 1;
  hello.attempt = 1;
  EncodeHello(hello, absl::MakeSpan(bytes).subspan(1));
  corpus.Add("message", bytes);
  corpus.Add("message", {1, 7, 0, 0, 2});
}

template <typename... Messages>
void AddClientMessages(Corpus& corpus) {
  (corpus.Add("client_message", client::Encode(1, Messages())), ...);
  (corpus.Add("client_message", client::Encode(2, typename Messages::Reply())), ...);
}

void AddClientMessages(Corpus& corpus) {
  using namespace client;  // NOLINT: in a function
  AddClientMessages<HelloRequest, CreateRequest, CreateAndSealRequest, SealRequest, GetRequest, CancelRequest,
                    ContainsRequest, ListRequest, StatRequest, EvictRequest, HashRequest, ProgressRequest, WaitRequest,
                    NodesRequest, NodeStatsRequest, ClusterRequest>(corpus);
  GetRequest get;
  get.ids.resize(2);
  corpus.Add("client_message", Encode(3, get));
  GetReply got;
  got.entries.resize(2);
  got.entries[0].outcome = {absl::StatusCode::kNotFound, "gone"};
  corpus.Add("client_message", Encode(3, got));
  StatReply stat;
  stat.holders = {"a", "b"};
  corpus.Add("client_message", Encode(4, stat));
  const Bytes data(10, 0x64);
  CreateAndSealRequest create;
  create.objects.push_back({base::ObjectId::FromName("x"), data, {}, "x"});
  corpus.Add("client_message", Encode(5, create));
  NodesReply nodes;
  nodes.nodes.resize(1);
  nodes.nodes[0].name = "node";
  corpus.Add("client_message", Encode(6, nodes));
  EventsNotification events;
  events.events.resize(1);
  corpus.Add("client_message", Encode(7, events));
  Header header;
  header.kind = SealRequest::kKind;
  corpus.Add("client_message", EncodeError(header, absl::NotFoundError("no such object")));
}

void AddNodeNumbers(Corpus& corpus) {
  node::NodeNumbers numbers;
  corpus.Add("node_numbers", node::NodeNumbers::Encode(numbers));
  numbers.page = "10.0.0.1:9464";
  numbers.numbers = {{"store_used_bytes", 4096}, {"rail0_bytes_total", UINT64_MAX}};
  corpus.Add("node_numbers", node::NodeNumbers::Encode(numbers));
}

// As tests/fuzz/object_message.cc reads them: a zero before a request, the call before an answer.
void AddObjectMessages(Corpus& corpus) {
  using namespace node;  // NOLINT: in a function
  const base::ObjectVersion x{base::ObjectId::FromName("x"), base::Generation{7}};
  const base::ObjectVersion y{base::ObjectId::FromName("y"), base::Generation{8}};
  const auto one = *verbs::Address::Parse("10.0.0.1:7000"), other = *verbs::Address::Parse("[fd00::1]:7000@4792");
  const auto add = [&corpus](uint8_t first, Bytes bytes) {
    bytes.insert(bytes.begin(), first);
    corpus.Add("object_message", bytes);
  };
  for (const ObjectRequest& request : std::initializer_list<ObjectRequest>{
           DropRequest{x}, KeepRequest{x, 100, 3}, VouchRequest{x, one}, DropCopyRequest{x}, BringRequest{x, other},
           BringAllRequest{{x, y}}, PushRequest{base::Seconds(5), {x.id, y.id}}, HowFarRequest{{x, y}}}) {
    add(0, EncodeRequest(request));
  }
  const auto answer = [&add](ObjectCall call, Bytes bytes) { add(static_cast<uint8_t>(call), std::move(bytes)); };
  const Bytes contents = {'d', 'a', 't', 'a', 'm'};
  BringAllAnswer all(2);
  all.Bring(contents);
  all.LeaveOut();
  answer(ObjectCall::kDrop, EncodeDropAnswer(true));
  answer(ObjectCall::kKeep, EncodeKeepAnswer(KeepAnswer::kGone));
  answer(ObjectCall::kVouch, EncodeVouchAnswer(base::Seconds(70)));
  answer(ObjectCall::kDropCopy, EncodeDropCopyAnswer({one, other}));
  answer(ObjectCall::kBring, EncodeBringAnswer(BringAnswer{base::Seconds(6), 4, 1, contents}));
  answer(ObjectCall::kBringAll, all.Take());
  answer(ObjectCall::kPush, EncodePushAnswer({absl::OkStatus(), absl::NotFoundError("")}));
  answer(ObjectCall::kHowFar, EncodeHowFarAnswer({5, uint64_t{1} << 40}));
}

void AddTexts(Corpus& corpus) {
  const std::vector<std::vector<std::string>> texts = {
      {"10.0.0.1:7000", "[fd00::1]:7000", "10.0.0.1", "fd00::1"},
      {"soft:udp@10.0.0.1", "soft:udp@[fd00::1]:4792"},
      {"eager:32KiB,read", "eager:32KiB,read:1MiB,write", "read",
       R"({"tokamak_policy": 1, "table": [{"up_to": "40KiB", "protocol": "eager"}, {"up_to": 1048576, "protocol": )"
       R"("read"}, {"protocol": "write"}], "measured": {"date": "2026-01-31T12:00:00Z", "puller": {"node": "b", )"
       R"("device": "soft:udp@10.0.0.2"}}})"},
      {"512MiB", "1.5GiB", "17", "64k", "2TB"},
      {"250ms", "1.5s", "3min", "20us", "7ns"},
      {"serve", "tokd@node1.example.com:7000", "redis@localhost:6379", "redis@unix:/run/redis.sock",
       "rediss://tok@[::1]:7/3", "unix://tok@/run/redis.sock?db=2", "sentinel://s1,s2:7,10.0.0.3/mymaster/4",
       "cluster+tls://tok@c1,c2:7"},
      {"--listen\n10.0.0.1:7000\n--device\nsoft:udp@10.0.0.1\n--socket\n/run/t.sock\n--memory\n64MiB\n--engines\n2",
       "--help"},
  };
  for (size_t kind = 0; kind < texts.size(); ++kind) {
    for (const std::string& text : texts[kind]) corpus.Add("text", static_cast<uint8_t>(kind), text);
  }
}

// Two frames in three pieces, one with a descriptor.
void AddStreams(Corpus& corpus) {
  corpus.Add("unix_frame", {0, 7, 0, 3, 0, 0, 0, 'a', 'b', 'c', 24, 6, 0, 2, 0, 0, 1, 'd', 'e', 0, 4, 0, 0, 0, 0, 0});
}

// Inputs of lib/security, as tests/fuzz/security.cc reads its program.
void AddSecurity(Corpus& corpus) {
  const std::string secret = security::ClusterSecret(Bytes(32, 7)).ToText();
  corpus.Add("security", 0, absl::StrCat("# ours\n", secret, "\n"));
  corpus.Add("security", 0, absl::StrCat(secret, "\n", security::ClusterSecret(Bytes(32, 8)).ToText()));
  corpus.Add("security", {1, 1, 3, 3, 3});                                        // a handshake that nobody disturbs
  corpus.Add("security", {1, 0, 0, 0, 5, 0, 1});                                  // its first message with another bit
  corpus.Add("security", {1, 1, 3, 1, 20, 0});                                    // the second one cut
  corpus.Add("security", {1, 0, 3, 3, 0, 0, 2, 0, 128});                          // the confirming one with another bit
  corpus.Add("security", {2, 1, 3, 0, 'a', 'b', 'c', 1, 3, 1, 0, 'd', 1, 3});     // two messages in order
  corpus.Add("security", {2, 0, 3, 0, 'a', 'b', 'c', 1, 3, 1, 0, 'd', 0, 0, 3});  // the first one repeated
  corpus.Add("security", {2, 0, 3, 0, 'a', 'b', 'c', 1, 1, 18, 0});               // one that is cut
  corpus.Add("security", {3, 3, 3});                                              // a proof
  corpus.Add("security", {3, 3, 0, 0, 1, 0, 1});                                  // with another bit
}

// Programs of steps: any bytes are one.
void AddPrograms(Corpus& corpus) {
  base::Random random(1);
  for (const char* target : {"nic", "connections", "endpoint", "directory", "udp", "session"}) {
    for (int i = 0; i < 4; ++i) {
      Bytes bytes(200);
      for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random.Next());
      corpus.Add(target, bytes);
    }
  }
}

// Two rails, as tests/fuzz/endpoint.cc reads its program.
void AddRailPrograms(Corpus& corpus) {
  const Bytes moment = {8, 2}, pause = {8, 3}, seconds = {8, 4};
  const Bytes say_rails = {9, 0, 0, 0, 0}, rail_is_down = {9, 1, 0, 0};
  const Bytes join = {9, 2, 0, 0}, drop = {9, 3}, cut = {9, 5, 0, 0}, mend = {9, 5};
  const Bytes greet = {3, 0, 3, 0, 4, 0, 0, 0, 0}, greet_on_rail = {9, 4, 0, 3, 0, 4, 0, 0, 0, 0};
  const Bytes data_with_both_keys = {0, 0, 0, 0, 0, 0, 0, 1, 0};
  const auto pull = [](uint8_t protocol) { return Bytes{6, 3, 3, protocol, 4, 0, 0}; };
  const auto note = [](uint8_t number) { return Bytes{3, 0, 1, 3, number, 0, 1}; };
  const auto note_on_rail = [](uint8_t number) { return Bytes{9, 4, 0, 1, 3, number, 1, 1}; };
  const auto ask = [](uint8_t number, uint8_t protocol) {  // the number is one more, wanted()'s too
    return Bytes{0, number, 3, protocol, 0xff, 0x0f, 3, 3, 0, 0, 0, 1, 0};
  };
  const auto wanted = [](uint8_t number) { return Bytes{9, 1, 0, 1, number, 0, 0}; };
  const auto add = [&corpus](std::initializer_list<Bytes> steps) {
    Bytes bytes;
    for (const Bytes& step : steps) bytes.insert(bytes.end(), step.begin(), step.end());
    corpus.Add("endpoint", bytes);
  };
  const Bytes owner = {3, 0, 3, 0, 2, 4, 0, 0}, puller = {2, 0};  // the first pull is of nothing
  // It pulls by READ and by WRITE; its rail joins, ends in the middle, and joins again.
  add({owner,
       say_rails,
       pause,
       pull(2),
       moment,
       data_with_both_keys,
       pause,
       pull(2),
       moment,
       data_with_both_keys,
       {8, 1},
       drop,
       pause,
       rail_is_down,
       seconds,
       seconds,
       pull(2),
       moment,
       data_with_both_keys,
       pause});
  add({owner,  say_rails, pause,   pull(3),         moment, note(2), note_on_rail(2), pause, pull(3),
       moment, note(3),   cut,     note_on_rail(3), pause,  drop,    rail_is_down,    pause, note(3),
       mend,   seconds,   seconds, pull(3),         moment});
  // It is pulled from by WRITE; its rail joins, ends in the middle or is cut, and what was not seen
  // is wanted again.
  add({puller,
       greet,
       join,
       pause,
       greet_on_rail,
       ask(0, 3),
       pause,
       ask(1, 3),
       {8, 1},
       drop,
       pause,
       wanted(1),
       pause,
       join,
       pause,
       greet_on_rail,
       ask(2, 3),
       pause});
  add({puller, greet, join, pause, greet_on_rail, cut, ask(0, 3), pause, wanted(0), mend, pause, rail_is_down, pause,
       join, pause, greet_on_rail, ask(1, 3), pause});
}

}  // namespace
}  // namespace tokamak::fuzz

int main(int argc, char** argv) {
  using namespace tokamak::fuzz;  // NOLINT: in a function
  if (argc != 2 || argv[1][0] == '-') {
    std::cerr << "usage: make_corpus FOLDER" << std::endl;
    return 2;
  }
  Corpus corpus(argv[1]);
  AddPackets(corpus);
  AddSecurity(corpus);
  AddMads(corpus);
  AddMessages(corpus);
  AddClientMessages(corpus);
  AddNodeNumbers(corpus);
  AddObjectMessages(corpus);
  AddTexts(corpus);
  AddStreams(corpus);
  AddPrograms(corpus);
  AddRailPrograms(corpus);
  return 0;
}
