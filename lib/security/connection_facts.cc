#include "lib/security/connection_facts.h"

#include "lib/base/codec.h"

namespace tokamak::security {
namespace {

void AppendHalf(const ConnectionFacts::Half& half, base::Writer* writer) {
  writer->Bytes(half.address);
  writer->Integer(half.queue_pair);
  writer->Bytes(half.hello);
}

}  // namespace

std::vector<uint8_t> ConnectionFacts::Prologue() const {
  base::Writer writer;
  writer.Text("tokamak connection 1");
  writer.Integer(protocol_version);
  writer.Integer(static_cast<uint8_t>(suite));
  writer.Raw(secret.bytes());
  AppendHalf(initiator, &writer);
  AppendHalf(responder, &writer);
  return writer.Take();
}

}  // namespace tokamak::security
