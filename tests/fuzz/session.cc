// Programs that speak to a daemon's session: right requests about the same few objects, damaged
// ones, noise, and leaving.
//
// Law: each request is answered once by a reply of its kind, none with id 0; whatever is sent is
// well-formed.
// Law: what a reply says of an object's place lies in the arena, and a got object has the bytes
// with which it was sealed.
// Law: when all programs are gone the store is consistent: no pin, nothing unsealed, nobody
// waiting.
#include "lib/daemon/clients/session.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/base/check.h"
#include "lib/client/protocol/frame.h"
#include "sim/time/sim_loop.h"
#include "tests/daemon/clients/lonely_node.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/target.h"

namespace tokamak::fuzz {
namespace {

using namespace client;  // NOLINT: its whole protocol is the subject
using Bytes = std::vector<uint8_t>;

constexpr int kMostSteps = 120;
constexpr size_t kArena = 128 * 1024;
constexpr uint32_t kObjects = 8;
constexpr size_t kPrograms = 2;

struct alignas(4096) Arena {
  uint8_t bytes[kArena] = {};
};

class Player final {
 public:
  explicit Player(Input input) : in_(input), node_(loop_, absl::MakeSpan(arena_->bytes)) {
    scheduler_.RunFor(base::Milliseconds(10));
  }

  void Play() {
    for (int step = 0; step < kMostSteps && !in_.empty(); ++step) Step();
    for (Program& program : programs_) Leave(program);
    scheduler_.RunFor(base::Seconds(1));
    // Objects pinned on the node outlive the session that asked for it.
    for (uint32_t i = 0; i < kObjects; ++i) node_.store().UnpinHere(Id(i)).IgnoreError();
    const absl::Status consistent = node_.store().CheckConsistency();
    CHECK(consistent.ok()) << consistent;
    CHECK_EQ(node_.store().statistics().pins, 0u);
    CHECK_EQ(node_.store().statistics().unsealed_objects, 0u);
    CHECK_EQ(node_.store().statistics().waiting, 0u);
  }

 private:
  struct Program {
    std::unique_ptr<daemon::Session> session;
    std::map<uint64_t, uint16_t> asked;              // id to kind, until answered
    std::map<uint64_t, std::vector<uint32_t>> gets;  // objects that a Get is about
    std::map<uint64_t, uint32_t> creates;
    bool congested = false;
  };

  // ---- Requests.

  void Step() {
    Program& program = programs_[in_.Below(kPrograms)];
    if (program.session == nullptr) Open(program);
    const uint64_t id = in_.Below(16) == 15 ? 0 : ++last_id_;
    switch (in_.Below(20)) {
      case 0: {
        HelloRequest hello;
        hello.access = in_.Below(4) == 3 ? Access::kRead : Access::kReadAndCreate;
        return Tell(program, id, hello);
      }
      case 1:
      case 2: {
        CreateRequest create;
        const uint32_t object = in_.Below(kObjects);
        create.id = Id(object);
        create.data_size = in_.Below(8) == 7 ? in_.Take<uint64_t>() : in_.Take<uint16_t>();
        create.metadata_size = in_.Below(3);
        create.name = NameOf(object);
        program.creates[id] = object;
        return Tell(program, id, create);
      }
      case 3: {
        CreateAndSealRequest create;
        std::vector<Bytes> contents;
        std::vector<std::string> names;
        for (uint32_t count = in_.Below(4); count > 0; --count) {
          const uint32_t object = in_.Below(kObjects);
          contents.emplace_back(in_.Take<uint16_t>() % 5000, ByteOf(object));
          names.push_back(NameOf(object));
          create.objects.push_back({Id(object), {}, {}});
        }
        for (size_t i = 0; i < contents.size(); ++i) create.objects[i].data = contents[i];
        for (size_t i = 0; i < names.size(); ++i) create.objects[i].name = names[i];
        return Tell(program, id, create);
      }
      case 4:
      case 5:
        return AboutOne(program, id, SealRequest());
      case 6:
        return AboutOne(program, id, AbortRequest());
      case 7:
      case 8: {
        GetRequest get;
        get.timeout_microseconds = in_.Below(4) == 3 ? in_.Take<uint32_t>() : 0;
        get.protocol = static_cast<Protocol>(in_.Below(4));
        std::vector<uint32_t>& objects = program.gets[id];
        for (uint32_t count = in_.Below(4); count > 0; --count) {
          objects.push_back(in_.Below(kObjects));
          get.ids.push_back(Id(objects.back()));
        }
        return Tell(program, id, get);
      }
      case 9: {
        ReleaseRequest release;
        for (uint32_t count = in_.Below(3); count > 0; --count) release.ids.push_back(Id(in_.Below(kObjects)));
        return Tell(program, id, release);
      }
      case 10:
        return AboutOne(program, id, DeleteRequest());
      case 11:
        return in_.Flag() ? AboutOne(program, id, ContainsRequest()) : AboutOne(program, id, TouchRequest());
      case 12:
        if (in_.Flag()) return AboutOne(program, id, HashRequest());
        return in_.Flag() ? AboutOne(program, id, ProgressRequest()) : AboutOne(program, id, StatRequest());
      case 13: {
        WaitRequest wait;
        wait.timeout_microseconds = in_.Take<uint16_t>();
        wait.count = in_.Below(4);
        wait.scope = in_.Flag() ? Scope::kAnywhere : Scope::kLocal;
        for (uint32_t count = in_.Below(4); count > 0; --count) wait.ids.push_back(Id(in_.Below(kObjects)));
        return Tell(program, id, wait);
      }
      case 14:
        return Whatever(program, id);
      case 15:
        return Noise(program);
      case 16:
        flip_at_ = in_.Take<uint8_t>();
        flip_to_ = in_.Take<uint8_t>();
        return;
      case 17:
        return Leave(program);
      case 18:
        program.congested = in_.Flag();
        return;
      default:
        scheduler_.RunFor(base::Microseconds(in_.Flag() ? in_.Take<uint16_t>() : 10));
    }
  }

  template <typename Request>
  void AboutOne(Program& program, uint64_t id, Request request) {
    request.id = Id(in_.Below(kObjects));
    Tell(program, id, request);
  }

  void Whatever(Program& program, uint64_t id) {
    switch (in_.Below(8)) {
      case 0: {
        ListRequest list;
        list.limit = in_.Below(kObjects + 2);
        list.continued = in_.Flag();
        list.after = Id(in_.Below(kObjects));
        return Tell(program, id, list);
      }
      case 1: {
        EvictRequest evict;
        evict.bytes = in_.Take<uint16_t>();
        return Tell(program, id, evict);
      }
      case 2:
        return Tell(program, id, SubscribeRequest());
      case 3:
        return Tell(program, id, NodesRequest());
      case 4:
        return in_.Flag() ? Tell(program, id, NodeStatsRequest()) : Tell(program, id, ClusterRequest());
      case 5: {
        CancelRequest cancel;
        cancel.request_id = last_id_ - in_.Below(16);
        return Tell(program, id, cancel);
      }
      case 6: {
        PrefetchRequest prefetch;
        prefetch.timeout_microseconds = in_.Flag() ? in_.Take<uint16_t>() : 0;
        prefetch.pin = in_.Flag();
        for (uint32_t count = in_.Below(4); count > 0; --count) prefetch.ids.push_back(Id(in_.Below(kObjects)));
        return Tell(program, id, prefetch);
      }
      case 7: {
        if (in_.Flag()) return AboutOne(program, id, UnpinRequest());
        SubscribeRequest subscribe;
        subscribe.existing = true;
        return Tell(program, id, subscribe);
      }
    }
  }

  void Noise(Program& program) {
    const absl::Span<const uint8_t> body = in_.Bytes(200);
    Header header;
    header.kind = static_cast<uint16_t>(in_.Below(24) | (in_.Below(8) == 7 ? kReplyBit : 0));
    header.request_id = ++last_id_;
    const Bytes frame = Frame(header, body);
    Distrust(frame);
    Handle(program, frame);
  }

  // Objects that a frame creates without our knowing their bytes.
  void Distrust(const Bytes& frame) {
    const absl::StatusOr<Header> header = DecodeHeader(frame);
    if (!header.ok()) return;
    if (header->kind == CreateRequest::kKind) {
      if (const auto create = DecodeBody<CreateRequest>(frame); create.ok()) unknown_.insert(create->id);
    } else if (header->kind == CreateAndSealRequest::kKind) {
      const auto create = DecodeBody<CreateAndSealRequest>(frame);
      if (!create.ok()) return;
      for (const InlineObject& object : create->objects) unknown_.insert(object.id);
    }
  }

  template <typename Request>
  void Tell(Program& program, uint64_t id, const Request& request) {
    Handle(program, Encode(id, request));
  }

  void Handle(Program& program, Bytes frame) {
    if (program.session == nullptr) return;  // its hello was damaged
    const bool damaged = flip_at_ < frame.size() && flip_to_ != 0;
    if (damaged) frame[flip_at_] ^= flip_to_;
    flip_to_ = 0;
    const absl::StatusOr<Header> header = DecodeHeader(frame);
    if (header.ok() && header->request_id != 0) program.asked[header->request_id] = header->kind;
    if (header.ok() && (damaged || header->request_id == 0)) {  // what it is about now is anybody's guess
      Distrust(frame);
      program.gets.erase(header->request_id);
      program.creates.erase(header->request_id);
    }
    if (!program.session->Handle(frame).ok()) Leave(program);
  }

  void Open(Program& program) {
    program.session = std::make_unique<daemon::Session>(
        node_.context(), "pid 1 fuzzed",
        [this, &program](Bytes frame, daemon::Descriptors) { OnReply(program, frame); },
        [&program] { return program.congested; });
    if (in_.Below(8) != 7) Tell(program, ++last_id_, HelloRequest());
  }

  void Leave(Program& program) {
    program.session.reset();
    program.asked.clear();
    program.gets.clear();
    program.creates.clear();
  }

  // ---- Replies.

  void OnReply(Program& program, const Bytes& frame) {
    const absl::StatusOr<Header> header = DecodeHeader(frame);
    CHECK(header.ok()) << header.status();
    if (header->kind == EventsNotification::kKind) {
      CHECK(DecodeBody<EventsNotification>(frame).ok());
      return;
    }
    if (header->request_id == 0) {  // a hello is answered all the same: it brings the arena
      CHECK_EQ(header->kind, WelcomeReply::kKind);
      return;
    }
    const auto asked = program.asked.find(header->request_id);
    CHECK(asked != program.asked.end()) << "answered twice, or what nobody asked";
    CHECK_EQ(header->kind, asked->second | kReplyBit);
    program.asked.erase(asked);
    if (header->status != 0) return;
    if (header->kind == CreateReply::kKind) OnCreated(program, *header, frame);
    if (header->kind == GetReply::kKind) OnGot(program, *header, frame);
    if (header->kind == ListReply::kKind) OnListed(frame);
  }

  absl::Span<uint8_t> At(const Location& location) {
    CHECK_LE(location.offset, kArena);
    CHECK_LE(location.data_size, kArena - location.offset);
    CHECK_LE(location.metadata_size, kArena - location.offset - location.data_size);
    return absl::MakeSpan(arena_->bytes).subspan(location.offset, location.data_size + location.metadata_size);
  }

  void OnCreated(Program& program, const Header& header, const Bytes& frame) {
    const absl::StatusOr<CreateReply> reply = DecodeBody<CreateReply>(frame);
    CHECK(reply.ok());
    const absl::Span<uint8_t> memory = At(reply->location);
    const auto object = program.creates.find(header.request_id);
    if (object != program.creates.end()) std::fill(memory.begin(), memory.end(), ByteOf(object->second));
  }

  void OnGot(Program& program, const Header& header, const Bytes& frame) {
    const absl::StatusOr<GetReply> reply = DecodeBody<GetReply>(frame);
    CHECK(reply.ok());
    const auto objects = program.gets.find(header.request_id);
    for (size_t i = 0; i < reply->entries.size(); ++i) {
      const GetEntry& entry = reply->entries[i];
      if (entry.outcome.code != absl::StatusCode::kOk) continue;
      const absl::Span<const uint8_t> memory = At(entry.location);
      if (objects == program.gets.end()) continue;
      const uint32_t object = objects->second.at(i);
      if (unknown_.count(Id(object)) > 0) continue;
      const uint8_t byte = ByteOf(object);
      CHECK(std::all_of(memory.begin(), memory.end(), [byte](uint8_t b) { return b == byte; }));
    }
  }

  void OnListed(const Bytes& frame) {
    const absl::StatusOr<ListReply> reply = DecodeBody<ListReply>(frame);
    CHECK(reply.ok());
    for (const ObjectEntry& object : reply->objects) {
      CHECK(object.name.empty() || base::ObjectId::FromName(object.name) == object.id);
    }
  }

  // Half of them have one.
  static std::string NameOf(uint32_t object) { return object % 2 == 0 ? std::string() : absl::StrCat(object); }
  static base::ObjectId Id(uint32_t object) { return base::ObjectId::FromName(absl::StrCat(object)); }
  static uint8_t ByteOf(uint32_t object) { return static_cast<uint8_t>(0x40 + object); }

  Input in_;
  const std::unique_ptr<Arena> arena_ = std::make_unique<Arena>();
  sim::Scheduler scheduler_;
  sim::SimLoop loop_{scheduler_};
  daemon::LonelyNode node_;
  Program programs_[kPrograms];
  std::set<base::ObjectId> unknown_;
  uint64_t last_id_ = 0;
  uint8_t flip_at_ = 0, flip_to_ = 0;
};

}  // namespace
}  // namespace tokamak::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tokamak::fuzz::Player(tokamak::fuzz::Input(data, size)).Play();
  return 0;
}
