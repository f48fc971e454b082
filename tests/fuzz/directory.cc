// The remote directory: a server that is asked anything, and a client whose server answers anything.
//
// Law: the server answers each request once, within the size that it was given, and is as before when its waits are over.
// Law: each call of the client is answered once, by its deadline.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "lib/directory/local.h"
#include "lib/directory/remote/remote.h"
#include "lib/directory/remote/server.h"
#include "sim/sim_loop.h"
#include "tests/directory/fake_caller.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/target.h"

namespace tokamak::fuzz {
namespace {

using namespace directory;  // NOLINT: the whole of it is the subject

constexpr int kMostSteps = 60;
constexpr base::Duration kDeadline = base::Seconds(2);

// Requests near to right ones: the same few nodes and objects again and again.
class Words final {
 public:
  explicit Words(Input* input) : in_(*input) {}

  NodeId Name() { return in_.Below(16) == 15 ? std::string(in_.Below(100), 'x') : absl::StrCat("n", in_.Below(5)); }
  base::ObjectId Id() { return base::ObjectId::FromName(absl::StrCat(in_.Below(6))); }
  NodeInfo Node() {
    return {Name(), in_.Below(4), std::vector<std::string>(in_.Below(4), "10.0.0.1:7000"), "soft",
            in_.Take<uint16_t>()};
  }

  std::vector<uint8_t> Request() {
    base::Writer writer;
    const uint32_t kind = in_.Below(10);
    writer.Integer(static_cast<uint8_t>(kind));
    switch (static_cast<RequestKind>(kind)) {
      case RequestKind::kJoin:
        WriteNode(writer, Node());
        writer.Integer(base::Seconds(in_.Take<uint16_t>()).picoseconds());
        break;
      case RequestKind::kLeave:
        writer.Text(Name());
        writer.Integer(uint64_t{in_.Below(4)});
        break;
      case RequestKind::kAnnounce:
        writer.Id(Id());
        writer.Integer(uint64_t{in_.Below(2)});
        writer.Integer(uint64_t{0});
        writer.Text(Name());
        break;
      case RequestKind::kWithdraw:
        writer.Id(Id());
        writer.Text(Name());
        break;
      case RequestKind::kLocate:
        writer.Id(Id());
        break;
      case RequestKind::kNodes:
        writer.Text(Name());
        break;
      case RequestKind::kLocateAny: {
        const uint32_t count = in_.Below(4);
        writer.Integer(base::Seconds(in_.Below(80)).picoseconds());
        writer.Integer(count);
        for (uint32_t i = 0; i < count; ++i) writer.Id(Id());
        break;
      }
    }
    std::vector<uint8_t> bytes = writer.Take();
    if (in_.Below(8) == 7) bytes[in_.Take<uint8_t>() % bytes.size()] = in_.Take<uint8_t>();
    if (in_.Below(16) == 15) bytes.resize(in_.Below(200));
    return bytes;
  }

  std::vector<uint8_t> Any() {
    if (in_.Below(4) != 3) return Request();
    const absl::Span<const uint8_t> bytes = in_.Bytes(400);
    return {bytes.begin(), bytes.end()};
  }

 private:
  Input& in_;
};

void TryServer(Input input) {
  sim::Scheduler scheduler;
  sim::SimLoop loop(scheduler);
  LocalDirectory local(loop);
  const size_t most = DirectoryServer::kMinReply + input.Take<uint8_t>() * 8;
  DirectoryServer server(local, most);
  Words words(&input);
  std::vector<int> answers;
  answers.reserve(kMostSteps);
  for (int step = 0; step < kMostSteps && !input.empty(); ++step) {
    const size_t number = answers.size();
    answers.push_back(0);
    server.Handle(words.Any(), [&answers, number, most](absl::Span<const uint8_t> reply) {
      CHECK_LE(reply.size(), most);
      CHECK_GE(reply.size(), 1u);
      ++answers[number];
    });
    if (input.Flag()) scheduler.RunFor(base::Milliseconds(input.Take<uint16_t>()));
  }
  scheduler.RunFor(kMaxRemoteWait + base::Seconds(1));
  for (const int answered : answers) CHECK_EQ(answered, 1);
  scheduler.RunFor(base::Seconds(3600));  // the longest lease
  CHECK_EQ(local.nodes(), 0u);
  CHECK_EQ(local.objects(), 0u);
}

void TryClient(Input input) {
  sim::Scheduler scheduler;
  sim::SimLoop server_loop(scheduler), loop(scheduler);
  LocalDirectory local(server_loop);
  DirectoryServer server(local, 16 * 1024);
  FakeCaller caller(loop, [&server](absl::Span<const uint8_t> request, DirectoryServer::Reply reply) {
    server.Handle(request, std::move(reply));
  });
  caller.garble = [&input](FakeCaller::Bytes& reply) {
    switch (input.Below(4)) {
      case 0:
        return;
      case 1:
        if (!reply.empty()) reply[input.Take<uint16_t>() % reply.size()] = input.Take<uint8_t>();
        return;
      case 2:
        reply.resize(input.Below(200));
        return;
      default: {
        const absl::Span<const uint8_t> bytes = input.Bytes(400);
        reply.assign(bytes.begin(), bytes.end());
      }
    }
  };
  RemoteDirectory remote(loop, caller, *verbs::Address::Parse("10.0.0.1:7000"));
  Words words(&input);
  std::vector<int> answers;
  answers.reserve(kMostSteps);
  for (int step = 0; step < kMostSteps && !input.empty(); ++step) {
    const size_t number = answers.size();
    answers.push_back(0);
    const auto done = [&answers, number](const auto&) { ++answers[number]; };
    NodeInfo node = words.Node();
    if (!CheckNode(node).ok()) node = {"n0", 1, {"10.0.0.1:7000"}, "soft", 1};
    switch (input.Below(6)) {
      case 0:
        remote.Join(node, base::Seconds(60), kDeadline, done);
        break;
      case 1:
        remote.Leave(node.id, node.incarnation, kDeadline, done);
        break;
      case 2:
        remote.Announce(words.Id(), 1, 0, node.id, kDeadline, done);
        break;
      case 3:
        remote.Withdraw(words.Id(), node.id, kDeadline, done);
        break;
      case 4:
        remote.Locate(words.Id(), base::Milliseconds(input.Below(3) * 500), kDeadline, done);
        break;
      case 5:
        remote.Nodes(kDeadline, done);
        break;
    }
    CHECK_EQ(answers[number], 0) << "answered inside the call";
    if (input.Flag()) scheduler.RunFor(base::Milliseconds(input.Below(255)));
  }
  scheduler.RunFor(kDeadline + base::Milliseconds(10));
  for (size_t i = 0; i < answers.size(); ++i) CHECK_EQ(answers[i], 1) << "call " << i;
}

}  // namespace
}  // namespace tokamak::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tokamak::fuzz::Input input(data, size);
  if (input.Flag()) {
    tokamak::fuzz::TryServer(input);
  } else {
    tokamak::fuzz::TryClient(input);
  }
  return 0;
}
