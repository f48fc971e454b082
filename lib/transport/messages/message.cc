#include "lib/transport/messages/message.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/bytes.h"
#include "lib/base/check.h"

namespace tokamak::transport {
namespace {

// Without alignment or padding.
struct WireHeader {
  uint8_t kind;
  uint8_t protocol;
  uint8_t flags;
  uint8_t status;
  uint8_t credits[2];
  uint8_t zero[2];
  uint8_t body_size[4];
  uint8_t deadline_ms[4];
  uint8_t transfer[8];
  uint8_t data_size[8];
  uint8_t metadata_size[8];
  // TRANSFER: object id, 20 bytes; CHUNK: offset, 8; DATA: address, 8, and rkey, 4; RAIL_DOWN:
  // rail, 4; PROGRESS: offset, 8, and arrived, 8; FAIL: arrived, 8.
  uint8_t detail[24];
};
static_assert(sizeof(WireHeader) == kHeaderSize, "the header's size is part of the protocol");

constexpr uint8_t kLastStatus = static_cast<uint8_t>(absl::StatusCode::kUnauthenticated);

absl::Status Malformed(const char* what, uint64_t value) {
  return absl::InvalidArgumentError(absl::StrCat("message with ", what, " ", value));
}

bool AllZero(const uint8_t* bytes, size_t size) {
  return std::all_of(bytes, bytes + size, [](uint8_t b) { return b == 0; });
}

void StoreRange(const RemoteRange& range, uint8_t* out) {
  base::StoreLittle<uint64_t>(out, range.address);
  base::StoreLittle<uint32_t>(out + 8, range.rkey);
}

RemoteRange LoadRange(const uint8_t* in) {
  return RemoteRange{base::LoadLittle<uint64_t>(in), base::LoadLittle<uint32_t>(in + 8)};
}

bool BodyIsFields(const Header& header) {
  return header.kind == MessageKind::kTransfer || header.kind == MessageKind::kData;
}

size_t FieldsSize(const Header& header) {
  return (header.kind == MessageKind::kTransfer ? kVersionSize : 0) + (CarriesRange(header) ? kRemoteRangeSize : 0) +
         header.remote.further.count * kRailKeySize;
}

void StoreFields(const Header& header, uint8_t* out) {
  std::memset(out, 0, FieldsSize(header));
  if (header.kind == MessageKind::kTransfer) {
    base::StoreLittle<uint64_t>(out, static_cast<uint64_t>(header.generation));
    base::StoreLittle<uint64_t>(out + 8, header.arrived);
    out += kVersionSize;
  }
  if (CarriesRange(header)) {
    StoreRange(header.remote, out);
    out += kRemoteRangeSize;
  }
  const RailKeys& further = header.remote.further;
  for (uint32_t i = 0; i < further.count; ++i, out += kRailKeySize) {
    base::StoreLittle<uint32_t>(out, further.keys[i].rail);
    base::StoreLittle<uint32_t>(out + 4, further.keys[i].rkey);
  }
}

// The fields of a kind beyond kind, credits and body.
struct Shape {
  bool protocol, flags, status, deadline, transfer, size;
  size_t detail;  // bytes
  bool body;
};

const Shape* ShapeOf(uint8_t kind) {
  static constexpr Shape kShapes[] = {
      {},                                                    // none
      {true, true, false, true, true, true, 20, false},      // TRANSFER; its body is checked apart
      {true, false, false, true, true, true, 12, false},     // DATA; its further keys are checked apart
      {true, false, false, false, true, true, 8, true},      // CHUNK
      {true, false, false, false, true, false, 0, false},    // DONE
      {false, false, false, false, true, false, 0, false},   // CANCEL
      {false, false, true, false, true, false, 8, true},     // FAIL
      {false, false, false, false, false, false, 0, false},  // CREDIT
      {false, false, false, true, true, false, 0, true},     // CALL
      {false, false, false, false, true, false, 0, true},    // REPLY
      {false, false, false, false, true, false, 16, false},  // PROGRESS
      {false, false, false, false, false, false, 0, true},   // RAILS
      {false, false, false, false, false, false, 4, true},   // RAIL_DOWN
      {false, false, false, false, false, false, 0, false},  // RELEASE
  };
  return kind >= 1 && kind < std::size(kShapes) ? &kShapes[kind] : nullptr;
}

absl::Status CheckUnused(const WireHeader& wire, const Shape& shape) {
  if (!shape.protocol && wire.protocol != 0) return Malformed("protocol", wire.protocol);
  if (!shape.flags && (wire.flags & ~kMoreSlots) != 0) return Malformed("flags", wire.flags);
  if (!shape.status && wire.status != 0) return Malformed("status", wire.status);
  if (!AllZero(wire.zero, sizeof(wire.zero))) return Malformed("reserved bytes, kind", wire.kind);
  if (!shape.deadline && !AllZero(wire.deadline_ms, 4)) return Malformed("deadline, kind", wire.kind);
  if (!shape.size && !(AllZero(wire.data_size, 8) && AllZero(wire.metadata_size, 8)))
    return Malformed("size, kind", wire.kind);
  if (!AllZero(wire.detail + shape.detail, sizeof(wire.detail) - shape.detail))
    return Malformed("detail, kind", wire.kind);
  const uint64_t transfer = base::LoadLittle<uint64_t>(wire.transfer);
  if (shape.transfer != (transfer != 0)) return Malformed("transfer", transfer);
  return absl::OkStatus();
}

absl::Status CheckTransfer(const Header& header) {
  if ((header.flags & ~(kProtocolGiven | kMoreSlots)) != 0) return Malformed("flags", header.flags);
  if (header.protocol == Protocol::kAuto) return Malformed("no protocol, transfer", header.transfer);
  if (header.arrived > 0 && header.arrived >= header.size.total()) return Malformed("all arrived, of", header.arrived);
  return absl::OkStatus();
}

absl::Status CheckData(const Header& header) {
  if (header.protocol != Protocol::kRead) return Malformed("protocol", static_cast<uint64_t>(header.protocol));
  const RemoteRange& remote = header.remote;
  if (header.size.total() == 0 && (remote.address != 0 || remote.rkey != 0 || remote.further.count != 0)) {
    return Malformed("a key for nothing, transfer", header.transfer);
  }
  return absl::OkStatus();
}

absl::Status CheckChunk(const Header& header, size_t body_size) {
  if (header.protocol != Protocol::kEager) return Malformed("protocol", static_cast<uint64_t>(header.protocol));
  const uint64_t total = header.size.total();
  if (header.offset > total || body_size > total - header.offset)
    return Malformed("bytes beyond the object, at", header.offset);
  if (body_size == 0 && total != 0) return Malformed("an empty chunk at", header.offset);
  return absl::OkStatus();
}

absl::Status CheckKind(const Header& header, size_t body_size) {
  switch (header.kind) {
    case MessageKind::kTransfer:
      return CheckTransfer(header);
    case MessageKind::kData:
      return CheckData(header);
    case MessageKind::kChunk:
      return CheckChunk(header, body_size);
    case MessageKind::kDone:
      if (header.protocol != Protocol::kRead && header.protocol != Protocol::kWrite) {
        return Malformed("protocol", static_cast<uint64_t>(header.protocol));
      }
      break;
    case MessageKind::kFail:
      if (header.status == absl::StatusCode::kOk) return Malformed("a failure of status", 0);
      if (body_size > kMaxFailText) return Malformed("body size", body_size);
      break;
    case MessageKind::kCancel:
    case MessageKind::kCredit:
    case MessageKind::kCall:
    case MessageKind::kReply:
    case MessageKind::kProgress:
    case MessageKind::kRails:
    case MessageKind::kRelease:
      break;
    case MessageKind::kRailDown:
      if (header.rail >= kMaxRails) return Malformed("rail", header.rail);
      break;
  }
  return absl::OkStatus();
}

void LoadDetail(const WireHeader& wire, Header* header) {
  if (header->kind == MessageKind::kTransfer) {
    std::array<uint8_t, base::ObjectId::kSize> id;
    std::copy_n(wire.detail, id.size(), id.begin());
    header->object = base::ObjectId(id);
  } else if (header->kind == MessageKind::kData) {
    header->remote = LoadRange(wire.detail);
  } else if (header->kind == MessageKind::kChunk || header->kind == MessageKind::kProgress) {
    header->offset = base::LoadLittle<uint64_t>(wire.detail);
    if (header->kind == MessageKind::kProgress) header->arrived = base::LoadLittle<uint64_t>(wire.detail + 8);
  } else if (header->kind == MessageKind::kFail) {
    header->arrived = base::LoadLittle<uint64_t>(wire.detail);
  } else if (header->kind == MessageKind::kRailDown) {
    header->rail = base::LoadLittle<uint32_t>(wire.detail);
  }
}

absl::Status LoadFurther(absl::Span<const uint8_t> bytes, RailKeys* further) {
  if (bytes.size() % kRailKeySize != 0 || bytes.size() / kRailKeySize > further->keys.size()) {
    return Malformed("bytes of keys:", bytes.size());
  }
  for (uint32_t next = 0; !bytes.empty(); bytes.remove_prefix(kRailKeySize)) {
    const RailKey key{base::LoadLittle<uint32_t>(bytes.data()), base::LoadLittle<uint32_t>(bytes.data() + 4)};
    if (key.rail < next || key.rail >= kMaxRails) return Malformed("a key of rail", key.rail);
    next = key.rail + 1;
    further->keys[further->count++] = key;
  }
  return absl::OkStatus();
}

absl::Status LoadFields(absl::Span<const uint8_t> body, Header* header) {
  if (header->kind == MessageKind::kTransfer) {
    if (body.size() < kVersionSize) return Malformed("body size", body.size());
    header->generation = base::Generation{base::LoadLittle<uint64_t>(body.data())};
    header->arrived = base::LoadLittle<uint64_t>(body.data() + 8);
    body.remove_prefix(kVersionSize);
    if (!CarriesRange(*header) && !body.empty()) return Malformed("a range for nothing, bytes:", body.size());
  }
  if (!CarriesRange(*header)) return LoadFurther(body, &header->remote.further);
  if (body.size() < kRemoteRangeSize) return Malformed("body size", body.size());
  header->remote = LoadRange(body.data());
  if (!AllZero(body.data() + 12, kRemoteRangeSize - 12)) return Malformed("range, transfer", header->transfer);
  return LoadFurther(body.subspan(kRemoteRangeSize), &header->remote.further);
}

bool Wraps(const Header& header) {
  const uint64_t size = header.size.total() - (header.kind == MessageKind::kTransfer ? header.arrived : 0);
  return size > 0 && header.remote.address > UINT64_MAX - (size - 1);
}

}  // namespace

const char* ToString(MessageKind kind) {
  switch (kind) {
    case MessageKind::kTransfer:
      return "TRANSFER";
    case MessageKind::kData:
      return "DATA";
    case MessageKind::kChunk:
      return "CHUNK";
    case MessageKind::kDone:
      return "DONE";
    case MessageKind::kCancel:
      return "CANCEL";
    case MessageKind::kFail:
      return "FAIL";
    case MessageKind::kCredit:
      return "CREDIT";
    case MessageKind::kCall:
      return "CALL";
    case MessageKind::kReply:
      return "REPLY";
    case MessageKind::kProgress:
      return "PROGRESS";
    case MessageKind::kRails:
      return "RAILS";
    case MessageKind::kRailDown:
      return "RAIL_DOWN";
    case MessageKind::kRelease:
      return "RELEASE";
  }
  return "?";
}

void EncodeHeader(const Header& header, size_t body_size, uint8_t* out) {
  WireHeader wire = {};
  wire.kind = static_cast<uint8_t>(header.kind);
  wire.protocol = static_cast<uint8_t>(header.protocol);
  wire.flags = header.flags;
  wire.status = static_cast<uint8_t>(header.status);
  base::StoreLittle<uint16_t>(wire.credits, header.credits);
  base::StoreLittle<uint32_t>(wire.body_size, static_cast<uint32_t>(body_size));
  base::StoreLittle<uint32_t>(wire.deadline_ms, header.deadline_ms);
  base::StoreLittle<uint64_t>(wire.transfer, header.transfer);
  base::StoreLittle<uint64_t>(wire.data_size, header.size.data);
  base::StoreLittle<uint64_t>(wire.metadata_size, header.size.metadata);
  if (header.kind == MessageKind::kTransfer) std::memcpy(wire.detail, header.object.data(), base::ObjectId::kSize);
  if (header.kind == MessageKind::kData) StoreRange(header.remote, wire.detail);
  if (header.kind == MessageKind::kChunk || header.kind == MessageKind::kProgress) {
    base::StoreLittle<uint64_t>(wire.detail, header.offset);
  }
  if (header.kind == MessageKind::kProgress) base::StoreLittle<uint64_t>(wire.detail + 8, header.arrived);
  if (header.kind == MessageKind::kFail) base::StoreLittle<uint64_t>(wire.detail, header.arrived);
  if (header.kind == MessageKind::kRailDown) base::StoreLittle<uint32_t>(wire.detail, header.rail);
  std::memcpy(out, &wire, kHeaderSize);
}

size_t MessageSize(const Header& header, size_t body_size) {
  return kHeaderSize + (BodyIsFields(header) ? FieldsSize(header) : body_size);
}

size_t EncodeMessage(const Header& header, absl::Span<const uint8_t> body, absl::Span<uint8_t> out) {
  const size_t size = MessageSize(header, body.size());
  CHECK_LE(size, out.size());
  EncodeHeader(header, size - kHeaderSize, out.data());
  if (BodyIsFields(header)) {
    StoreFields(header, out.data() + kHeaderSize);
  } else if (!body.empty()) {
    std::memcpy(out.data() + kHeaderSize, body.data(), body.size());
  }
  return size;
}

absl::StatusOr<Message> DecodeMessage(absl::Span<const uint8_t> bytes) {
  if (bytes.size() < kHeaderSize) return Malformed("too few bytes:", bytes.size());
  WireHeader wire;
  std::memcpy(&wire, bytes.data(), kHeaderSize);
  const Shape* shape = ShapeOf(wire.kind);
  if (shape == nullptr) return Malformed("kind", wire.kind);
  if (absl::Status s = CheckUnused(wire, *shape); !s.ok()) return s;
  if (wire.protocol > static_cast<uint8_t>(Protocol::kWrite)) return Malformed("protocol", wire.protocol);
  if (wire.status > kLastStatus) return Malformed("status", wire.status);

  Message message;
  message.body = bytes.subspan(kHeaderSize);
  const uint32_t body_size = base::LoadLittle<uint32_t>(wire.body_size);
  if (body_size != message.body.size()) return Malformed("body size", body_size);
  Header& header = message.header;
  header.kind = static_cast<MessageKind>(wire.kind);
  header.protocol = static_cast<Protocol>(wire.protocol);
  header.flags = wire.flags;
  header.status = static_cast<absl::StatusCode>(wire.status);
  header.credits = base::LoadLittle<uint16_t>(wire.credits);
  header.deadline_ms = base::LoadLittle<uint32_t>(wire.deadline_ms);
  header.transfer = base::LoadLittle<uint64_t>(wire.transfer);
  header.size.data = base::LoadLittle<uint64_t>(wire.data_size);
  header.size.metadata = base::LoadLittle<uint64_t>(wire.metadata_size);
  if (header.size.data > kMaxObjectSize || header.size.metadata > kMaxObjectSize)
    return Malformed("size", header.size.data);
  LoadDetail(wire, &header);
  if (BodyIsFields(header)) {
    if (absl::Status s = LoadFields(std::exchange(message.body, {}), &header); !s.ok()) return s;
  }
  if (!shape->body && !message.body.empty()) return Malformed("body size", body_size);
  if (absl::Status s = CheckKind(header, body_size); !s.ok()) return s;
  if (Wraps(header)) return Malformed("a range that wraps around, at", header.remote.address);
  return message;
}

}  // namespace tokamak::transport
