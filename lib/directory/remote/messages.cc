#include "lib/directory/remote/messages.h"

#include <algorithm>
#include <string>
#include <utility>

#include "lib/base/text/object_name.h"
#include "lib/base/text/printable.h"

namespace tokamak::directory {

namespace {

constexpr uint8_t kPulls = 1;  // of a watch
constexpr uint8_t kOnce = 2;

}  // namespace

base::Writer BeginRequest(RequestKind kind) {
  base::Writer writer;
  writer.Integer(static_cast<uint8_t>(kind));
  return writer;
}

void WriteNode(base::Writer& writer, const NodeInfo& node) {
  writer.Text(node.id);
  writer.Integer(node.incarnation);
  writer.Integer(node.capacity);
  writer.Text(node.device);
  writer.Integer(static_cast<uint32_t>(node.engines.size()));
  for (const std::string& engine : node.engines) writer.Text(engine);
}

NodeInfo ReadNode(base::Reader& reader) {
  NodeInfo node;
  node.id = reader.Text(kMaxNodeName);
  node.incarnation = reader.Integer<uint64_t>();
  node.capacity = reader.Integer<uint64_t>();
  node.device = reader.Text(kMaxDeviceText);
  const uint32_t engines = reader.Count(kMaxEngines, sizeof(uint32_t));
  for (uint32_t i = 0; i < engines; ++i) node.engines.push_back(reader.Text(kMaxAddressText));
  return node;
}

void WriteRosterEntry(base::Writer& writer, const RosterEntry& entry) {
  WriteNode(writer, entry.node);
  writer.Integer(static_cast<uint8_t>(entry.liveness));
  writer.Integer(entry.unheard_for.picoseconds());
}

bool ReadRosterEntry(base::Reader& reader, RosterEntry* entry) {
  entry->node = ReadNode(reader);
  const auto liveness = reader.Integer<uint8_t>();
  entry->liveness = static_cast<Liveness>(liveness);
  entry->unheard_for = base::Duration::Picoseconds(reader.Integer<int64_t>());
  return reader.ok() && CheckNode(entry->node).ok() && liveness <= static_cast<uint8_t>(Liveness::kSilent) &&
         entry->unheard_for >= base::Duration();
}

void WriteVersion(base::Writer& writer, const base::ObjectVersion& version) {
  writer.Id(version.id);
  writer.Integer(static_cast<uint64_t>(version.generation));
}

base::ObjectVersion ReadVersion(base::Reader& reader) {
  base::ObjectVersion version;
  version.id = reader.Id();
  version.generation = base::Generation{reader.Integer<uint64_t>()};
  return version;
}

void WriteUpdate(base::Writer& writer, const Update& update) {
  writer.Integer(static_cast<uint8_t>(update.kind));
  WriteVersion(writer, update.version);
  if (update.kind == Update::Kind::kWithdraw) return;
  writer.Integer(update.data_size);
  writer.Integer(update.metadata_size);
  writer.Integer(static_cast<uint8_t>(update.standing));
  writer.Text(update.name.text());
}

bool ReadUpdate(base::Reader& reader, Update* update) {
  update->kind = static_cast<Update::Kind>(reader.Integer<uint8_t>());
  update->version = ReadVersion(reader);
  if (update->kind == Update::Kind::kWithdraw) return reader.ok();
  update->data_size = reader.Integer<uint64_t>();
  update->metadata_size = reader.Integer<uint64_t>();
  update->standing = static_cast<Standing>(reader.Integer<uint8_t>());
  absl::StatusOr<base::ObjectName> name =
      base::ObjectName::For(update->version.id, reader.Text(base::ObjectName::kMaxSize));
  if (!name.ok()) return false;
  update->name = *std::move(name);
  return reader.ok() && update->kind == Update::Kind::kAnnounce && update->standing <= Standing::kUnanswered;
}

void WriteObject(base::Writer& writer, const LocatedObject& object) {
  writer.Integer(static_cast<uint64_t>(object.generation));
  writer.Integer(object.data_size);
  writer.Integer(object.metadata_size);
  writer.Text(object.name.text());
  WriteNames(writer, object.holders);
}

LocatedObject ReadObject(base::Reader& reader, const base::ObjectId* id) {
  LocatedObject object;
  object.generation = base::Generation{reader.Integer<uint64_t>()};
  object.data_size = reader.Integer<uint64_t>();
  object.metadata_size = reader.Integer<uint64_t>();
  const std::string name = reader.Text(base::ObjectName::kMaxSize);
  if (id != nullptr) object.name = base::ObjectName::For(*id, name).value_or(base::ObjectName());
  object.holders = ReadNames(reader);
  return object;
}

void WriteLocated(base::Writer& writer, const absl::StatusOr<LocatedObject>& object) {
  WriteStatus(writer, object.status(), kMaxLocatedText);
  if (!object.ok()) return;
  WriteObject(writer, *object);
  writer.Bytes(object->contents);
}

absl::StatusOr<LocatedObject> ReadLocated(base::Reader& reader, const base::ObjectId* id) {
  if (absl::Status status = ReadStatus(reader); !status.ok()) return status;
  LocatedObject object = ReadObject(reader, id);
  object.contents = reader.Bytes(kMaxBrought);
  const bool whole = object.contents.empty() || object.contents.size() == object.data_size + object.metadata_size;
  if (!reader.ok() || !IsFound(object) || !whole) return MalformedReply();
  return object;
}

void WriteNames(base::Writer& writer, absl::Span<const NodeId> names) {
  writer.Integer(static_cast<uint32_t>(names.size()));
  for (const NodeId& name : names) writer.Text(name);
}

std::vector<NodeId> ReadNames(base::Reader& reader) {
  std::vector<NodeId> names(reader.Count(kMaxHoldersNamed, sizeof(uint32_t)));
  for (NodeId& name : names) name = reader.Text(kMaxNodeName);
  return names;
}

void WriteSession(base::Writer& writer, const SessionName& session) {
  writer.Integer(session.asker);
  writer.Integer(session.number);
}

SessionName ReadSession(base::Reader& reader) {
  SessionName session;
  session.asker = reader.Integer<uint64_t>();
  session.number = reader.Integer<uint64_t>();
  return session;
}

void WriteWatch(base::Writer& writer, const WatchRequest& watch) {
  writer.Integer(watch.number);
  writer.Id(watch.id);
  writer.Integer(static_cast<uint8_t>((watch.pulls ? kPulls : 0) | (watch.once ? kOnce : 0)));
}

bool ReadWatch(base::Reader& reader, WatchRequest* watch) {
  watch->number = reader.Integer<uint64_t>();
  watch->id = reader.Id();
  const auto flags = reader.Integer<uint8_t>();
  watch->pulls = (flags & kPulls) != 0;
  watch->once = (flags & kOnce) != 0;
  return reader.ok() && flags <= (kPulls | kOnce);
}

void WriteStatus(base::Writer& writer, const absl::Status& status, size_t most_text) {
  writer.Integer(static_cast<uint8_t>(status.code()));
  writer.Text(status.message().substr(0, std::min(most_text, kMaxStatusText)));
}

absl::Status ReadStatus(base::Reader& reader) {
  const auto code = reader.Integer<uint8_t>();
  const std::string text = reader.Text(kMaxStatusText);  // from a stranger, for our log
  if (!reader.ok() || code > static_cast<uint8_t>(absl::StatusCode::kUnauthenticated)) return MalformedReply();
  return absl::Status(static_cast<absl::StatusCode>(code), base::Printable(text));
}

absl::Status MalformedReply() {
  return absl::UnavailableError("the node that serves the directory sent a malformed reply");
}

}  // namespace tokamak::directory
