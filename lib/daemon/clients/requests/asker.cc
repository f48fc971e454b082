#include "lib/daemon/clients/requests/asker.h"

namespace tokamak::daemon {

void Asker::AnswerStatus(const client::Header& header, const absl::Status& status) const {
  if (header.request_id == 0) return;
  if (!status.ok()) return SendFrame(client::EncodeError(header, status), Descriptors::kNone);
  client::Header reply;
  reply.kind = header.kind | client::kReplyBit;
  reply.request_id = header.request_id;
  SendFrame(client::Frame(reply, {}), Descriptors::kNone);
}

}  // namespace tokamak::daemon
