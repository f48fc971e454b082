// Elements of the client protocol's bodies: in each, Visit() lists the fields once, for both
// directions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "lib/base/object_id.h"
#include "lib/client/protocol/protocol.h"

namespace tokamak::client {

struct Outcome {
  absl::StatusCode code = absl::StatusCode::kOk;
  std::string message;  // empty when ok

  static Outcome Of(const absl::Status& status) {
    return {status.code(), std::string(status.message().substr(0, kMaxErrorText))};
  }
  absl::Status ToStatus() const { return absl::Status(code, message); }

  template <typename M, typename V>
  static void Visit(M& m, V& v) {
    v.Code(m.code);
    v.Text(m.message, kMaxErrorText);
  }
};

// An object's place in the arena, in bytes; metadata follows data.
struct Location {
  uint64_t offset = 0;
  uint64_t data_size = 0;
  uint64_t metadata_size = 0;

  template <typename M, typename V>
  static void Visit(M& m, V& v) {
    v.Integer(m.offset);
    v.Integer(m.data_size);
    v.Integer(m.metadata_size);
  }
};

struct ObjectEntry {
  base::ObjectId id;
  uint64_t data_size = 0;
  uint64_t metadata_size = 0;
  uint64_t pins = 0;
  uint64_t age_microseconds = 0;  // since creation on this node
  ObjectState state = ObjectState::kCreated;
  Origin origin = Origin::kCreatedHere;
  bool pinned_here = false;  // by a Prefetch with `pin`; one of the pins
  std::string name = {};     // empty: none is kept

  template <typename M, typename V>
  static void Visit(M& m, V& v) {
    v.Id(m.id);
    v.Integer(m.data_size);
    v.Integer(m.metadata_size);
    v.Integer(m.pins);
    v.Integer(m.age_microseconds);
    v.Enum(m.state);
    v.Enum(m.origin);
    v.Bool(m.pinned_here);
    v.Text(m.name, kMaxObjectName);
  }
};

struct NodeEntry {
  std::string name;
  std::string address;  // of its transport, for people
  std::string device;
  uint64_t incarnation = 0;
  uint64_t capacity = 0;  // bytes
  bool is_this = false;   // true for the node of the daemon that answers

  template <typename M, typename V>
  static void Visit(M& m, V& v) {
    v.Text(m.name, kMaxName);
    v.Text(m.address, kMaxAddress);
    v.Text(m.device, kMaxName);
    v.Integer(m.incarnation);
    v.Integer(m.capacity);
    v.Bool(m.is_this);
  }
};

struct NumberEntry {
  std::string name;  // as in metrics, unit last: store_used_bytes
  uint64_t value = 0;

  template <typename M, typename V>
  static void Visit(M& m, V& v) {
    v.Text(m.name, kMaxName);
    v.Integer(m.value);
  }
};

// A node in a view of the cluster.
struct ViewedEntry {
  NodeEntry node;
  NodeState state = NodeState::kAlive;
  uint64_t unheard_microseconds = 0;  // since it answered, or the directory heard of it
  std::string page;                   // its HTTP address, "10.0.0.1:9464"; empty: unknown
  std::vector<NumberEntry> numbers;   // empty: it did not answer

  template <typename M, typename V>
  static void Visit(M& m, V& v) {
    v.Part(m.node);
    v.Enum(m.state);
    v.Integer(m.unheard_microseconds);
    v.Text(m.page, kMaxAddress);
    v.Parts(m.numbers, kMaxNumbersOfNode);
  }
};

struct EventEntry {
  EventKind kind = EventKind::kSealed;
  Origin origin = Origin::kCreatedHere;
  base::ObjectId id;
  uint64_t data_size = 0;
  uint64_t metadata_size = 0;
  std::string name = {};  // the object's; empty: none

  template <typename M, typename V>
  static void Visit(M& m, V& v) {
    v.Enum(m.kind);
    v.Enum(m.origin);
    v.Id(m.id);
    v.Integer(m.data_size);
    v.Integer(m.metadata_size);
    v.Text(m.name, kMaxObjectName);
  }
};

// Borrows bytes and a name: those of a decoded one lie in the frame, which must outlive it.
struct InlineObject {
  base::ObjectId id;
  absl::Span<const uint8_t> data;
  absl::Span<const uint8_t> metadata;
  absl::string_view name = {};  // kept with it; empty: none

  template <typename M, typename V>
  static void Visit(M& m, V& v) {
    v.Id(m.id);
    v.Bytes(m.data, kMaxInlineBytes);
    v.Bytes(m.metadata, kMaxInlineBytes);
    v.Text(m.name, kMaxObjectName);
  }
};

}  // namespace tokamak::client
