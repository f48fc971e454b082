#include "lib/directory/remote/messages.h"

#include <string>

namespace tokamak::directory {

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

void WriteObject(base::Writer& writer, const ObjectInfo& object) {
  writer.Integer(object.data_size);
  writer.Integer(object.metadata_size);
  writer.Integer(static_cast<uint32_t>(object.holders.size()));
  for (const NodeId& holder : object.holders) writer.Text(holder);
}

ObjectInfo ReadObject(base::Reader& reader) {
  ObjectInfo object;
  object.data_size = reader.Integer<uint64_t>();
  object.metadata_size = reader.Integer<uint64_t>();
  const uint32_t holders = reader.Count(kMaxHolders, sizeof(uint32_t));
  for (uint32_t i = 0; i < holders; ++i) object.holders.push_back(reader.Text(kMaxNodeName));
  return object;
}

void WriteStatus(base::Writer& writer, const absl::Status& status) {
  writer.Integer(static_cast<uint8_t>(status.code()));
  writer.Text(status.message().substr(0, kMaxStatusText));
}

absl::Status ReadStatus(base::Reader& reader) {
  const auto code = reader.Integer<uint8_t>();
  const std::string text = reader.Text(kMaxStatusText);
  if (!reader.ok() || code > static_cast<uint8_t>(absl::StatusCode::kUnauthenticated)) return NonsenseReply();
  return absl::Status(static_cast<absl::StatusCode>(code), text);
}

absl::Status NonsenseReply() {
  return absl::UnavailableError("the node that serves the directory sent a reply that makes no sense");
}

}  // namespace tokamak::directory
