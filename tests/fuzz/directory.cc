// The remote directory: a server that is asked anything, and a client whose server answers
// anything.
//
// Law: the server answers each request once, within the size that it was given, or drops the reply,
// as where the asker has begun another session. It is as before when nobody asks any more.
// Law: each call of the client is answered once, by its deadline; one that was dropped, never.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/base/check.h"
#include "lib/directory/local.h"
#include "lib/directory/remote/remote.h"
#include "lib/directory/remote/server.h"
#include "sim/time/sim_loop.h"
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
  NodeId NameOrNone() { return in_.Flag() ? Name() : NodeId(); }
  base::ObjectId Id() { return base::ObjectId::FromName(absl::StrCat(in_.Below(6))); }
  base::ObjectVersion Version() { return {Id(), base::Generation{in_.Below(4)}}; }
  JoinRequest Join() {
    JoinRequest join;
    join.node = {Name(), in_.Below(4), std::vector<std::string>(in_.Below(4), "10.0.0.1:7000"), "soft",
                 in_.Take<uint16_t>()};
    if (in_.Flag() && !join.node.engines.empty()) join.node.engines[0] = "10.0.0.2:7000";
    join.lease = base::Milliseconds(in_.Take<uint16_t>());
    join.grace = base::Milliseconds(in_.Take<uint16_t>());
    join.returning = in_.Flag();
    join.complete = in_.Flag();
    join.mark = Mark();
    return join;
  }
  directory::Update Update() {
    const auto kind = in_.Flag() ? Update::Kind::kAnnounce : Update::Kind::kWithdraw;
    const uint32_t object = in_.Below(6);
    const std::string name = absl::StrCat(object);
    const base::ObjectVersion version = {base::ObjectId::FromName(name), base::Generation{in_.Below(4)}};
    directory::Update update = {kind, version, in_.Below(2), 0, static_cast<Standing>(in_.Below(3))};
    if (object % 2 == 1) update.name = *base::ObjectName::For(version.id, name);
    return update;
  }
  std::vector<directory::Update> Updates() {
    std::vector<directory::Update> updates(in_.Below(4));
    for (directory::Update& update : updates) update = Update();
    return updates;
  }
  DeleteRequest Delete() {
    const base::ObjectVersion version = Version();
    DeleteRequest step{version.id, version.generation, std::vector<NodeId>(in_.Below(3)), NameOrNone()};
    for (NodeId& node : step.dropped) node = Name();
    return step;
  }
  std::vector<base::ObjectVersion> Versions() {
    std::vector<base::ObjectVersion> versions(in_.Below(4));
    for (base::ObjectVersion& version : versions) version = Version();
    return versions;
  }
  // The server's mark, which begins at the moment zero, or anything.
  std::string Mark() {
    if (in_.Below(4) != 3) return absl::StrCat("0.", in_.Below(4));
    const absl::Span<const uint8_t> bytes = in_.Bytes(100);
    return {bytes.begin(), bytes.end()};
  }
  std::string Cursor() {
    const base::ObjectId id = Id();
    return in_.Flag() ? std::string(in_.Below(70), 'x')
                      : std::string(reinterpret_cast<const char*>(id.data()), base::ObjectId::kSize);
  }

  std::vector<uint8_t> Request() {
    const uint32_t kind = in_.Below(12);
    base::Writer writer = BeginRequest(static_cast<RequestKind>(kind));
    switch (static_cast<RequestKind>(kind)) {
      case RequestKind::kJoin: {
        const JoinRequest join = Join();
        WriteNode(writer, join.node);
        writer.Integer(join.lease.picoseconds());
        writer.Integer(join.grace.picoseconds());
        writer.Integer(static_cast<uint8_t>(in_.Below(5)));
        writer.Text(join.mark);
        break;
      }
      case RequestKind::kLeave:
        writer.Text(Name());
        writer.Integer(uint64_t{in_.Below(4)});
        break;
      case RequestKind::kUpdate: {
        writer.Text(Name());
        writer.Text(Mark());
        const std::vector<directory::Update> updates = Updates();
        writer.Integer(static_cast<uint32_t>(updates.size()));
        for (const directory::Update& update : updates) WriteUpdate(writer, update);
        break;
      }
      case RequestKind::kLocate: {
        writer.Text(NameOrNone());
        const uint32_t asked = in_.Below(4);
        writer.Integer(asked);
        for (uint32_t i = 0; i < asked; ++i) {
          writer.Id(Id());
          writer.Integer(static_cast<uint8_t>(in_.Below(3)));
        }
        break;
      }
      case RequestKind::kDelete: {
        const DeleteRequest step = Delete();
        WriteVersion(writer, {step.id, step.generation});
        WriteNames(writer, step.dropped);
        writer.Text(step.after);
        break;
      }
      case RequestKind::kVerify: {
        writer.Text(Name());
        const std::vector<base::ObjectVersion> versions = Versions();
        writer.Integer(static_cast<uint32_t>(versions.size()));
        for (const base::ObjectVersion& version : versions) WriteVersion(writer, version);
        break;
      }
      case RequestKind::kRoster:
        writer.Text(NameOrNone());
        break;
      case RequestKind::kWatch: {
        WriteSession(writer, Session());
        writer.Integer(static_cast<uint8_t>(in_.Below(2)));
        writer.Text(NameOrNone());
        const uint32_t ended = in_.Below(3), begun = in_.Below(5);
        writer.Integer(ended);
        for (uint32_t i = 0; i < ended; ++i) writer.Integer(uint64_t{in_.Below(8)});
        writer.Integer(begun);
        for (uint32_t i = 0; i < begun; ++i) WriteWatch(writer, {in_.Below(8), Id(), in_.Flag(), in_.Flag()});
        break;
      }
      case RequestKind::kPoll:
        WriteSession(writer, Session());
        break;
      case RequestKind::kHeld:
        writer.Text(Name());
        writer.Text(Cursor());
        break;
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
  SessionName Session() { return {in_.Below(3), in_.Below(3)}; }

  Input& in_;
};

void TryServer(Input input) {
  sim::Scheduler scheduler;
  sim::SimLoop loop(scheduler);
  LocalDirectory local(loop);
  const size_t most = DirectoryServer::kMinReply + input.Take<uint8_t>() * 8;
  DirectoryServer server(loop, local, most);
  Words words(&input);
  struct Asked {
    base::Pending work;
    std::weak_ptr<int> reply;  // gone when the server has dropped it
    int answers = 0;
    bool cancelled = false;
  };
  std::vector<Asked> asked(kMostSteps);
  size_t steps = 0;
  for (; steps < asked.size() && !input.empty(); ++steps) {
    Asked& call = asked[steps];
    auto right_to_reply = std::make_shared<int>();
    call.reply = right_to_reply;
    call.work =
        server.Handle(words.Any(), [&call, most, right = std::move(right_to_reply)](absl::Span<const uint8_t> reply) {
          CHECK_LE(reply.size(), most);
          CHECK_GE(reply.size(), 1u);
          CHECK(!call.cancelled);
          ++call.answers;
        });
    if (input.Flag()) scheduler.RunFor(base::Milliseconds(input.Take<uint16_t>()));
    if (input.Below(4) == 0) {
      Asked& cancelled = asked[input.Below(static_cast<uint32_t>(steps) + 1)];
      cancelled.cancelled = true;
      cancelled.work.reset();
    }
  }
  scheduler.RunFor(kPollTurn + base::Seconds(1));
  for (size_t i = 0; i < steps; ++i) {
    CHECK_LE(asked[i].answers, 1) << "request " << i;
    CHECK(asked[i].answers == 1 || asked[i].reply.expired()) << "request " << i;
  }
  scheduler.RunFor(base::Seconds(7200));  // the longest lease and grace
  CHECK_EQ(server.sessions(), 0u);
  CHECK_EQ(local.nodes(), 0u);
  CHECK_EQ(local.objects(), 0u);
  CHECK_EQ(local.deletions(), 0u);
  CHECK_EQ(local.waiting(), 0u);
}

void TryClient(Input input) {
  sim::Scheduler scheduler;
  sim::SimLoop server_loop(scheduler), loop(scheduler);
  LocalDirectory local(server_loop);
  DirectoryServer server(server_loop, local, 16 * 1024);
  FakeCaller caller(loop, [&server](absl::Span<const uint8_t> request, transport::Reply reply) {
    return server.Handle(request, std::move(reply));
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
  RemoteDirectory remote(loop, caller, *verbs::Address::Parse("10.0.0.1:7000"), base::Random(1));
  Words words(&input);
  struct Asked {
    base::Pending handle;
    int answers = 0;
    bool cancelled = false;
  };
  std::vector<Asked> asked(kMostSteps);
  size_t steps = 0;
  for (; steps < asked.size() && !input.empty(); ++steps) {
    Asked& call = asked[steps];
    const auto done = [&call](const auto&) {
      CHECK(!call.cancelled);
      ++call.answers;
    };
    switch (input.Below(8)) {
      case 0:
        call.handle = remote.Join(words.Join(), kDeadline, done);
        break;
      case 1:
        call.handle = remote.Leave(words.Name(), input.Below(4), kDeadline, done);
        break;
      case 2:
        call.handle = remote.Update(words.Name(), words.Mark(), words.Updates(), kDeadline, done);
        break;
      case 3:
        call.handle = remote.Delete(words.Delete(), kDeadline, done);
        break;
      case 4: {
        const base::Duration wait = base::Milliseconds(input.Below(3) * 500);
        call.handle = remote.Locate({words.Id(), wait, kDeadline, words.NameOrNone()}, done);
        break;
      }
      case 5:
        call.handle = remote.Verify(words.Name(), words.Versions(), kDeadline, done);
        break;
      case 6:
        call.handle = remote.Roster(kDeadline, done);
        break;
      case 7:
        call.handle = remote.Held(words.Name(), words.Cursor(), kDeadline, done);
        break;
    }
    CHECK_EQ(call.answers, 0) << "answered inside the call";
    if (input.Flag()) scheduler.RunFor(base::Milliseconds(input.Below(255)));
    if (input.Below(4) == 0) {
      Asked& cancelled = asked[input.Below(static_cast<uint32_t>(steps) + 1)];
      cancelled.cancelled = true;
      cancelled.handle.reset();
    }
  }
  scheduler.RunFor(kDeadline + base::Milliseconds(10));
  for (size_t i = 0; i < steps; ++i) {
    CHECK(asked[i].answers == 1 || (asked[i].cancelled && asked[i].answers == 0)) << "call " << i;
  }
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
