#include "lib/client/buffer.h"

#include <algorithm>

#include "lib/client/connection.h"

namespace tokamak::client {

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  if (this == &other) return *this;
  Release();
  connection_ = std::exchange(other.connection_, nullptr);
  id_ = std::exchange(other.id_, {});
  data_ = std::exchange(other.data_, {});
  metadata_ = std::exchange(other.metadata_, {});
  return *this;
}

void Buffer::Release() { ReleaseAll(absl::MakeSpan(this, 1)); }

void Buffer::ReleaseAll(absl::Span<Buffer> buffers) {
  std::shared_ptr<Connection> connection;  // of what is gathered
  ReleaseRequest release;
  const auto tell = [&] {
    if (connection != nullptr) connection->Tell(release);
    release.ids.clear();
  };
  for (Buffer& buffer : buffers) {
    if (buffer.empty()) continue;
    if (buffer.connection_ != connection || release.ids.size() == kMaxIds) tell();
    connection = std::exchange(buffer.connection_, nullptr);
    buffer.data_ = buffer.metadata_ = {};
    release.ids.push_back(buffer.id_);
  }
  tell();
}

MutableBuffer::MutableBuffer(std::shared_ptr<Connection> connection, const base::ObjectId& id, uint64_t data_size,
                             absl::Span<const uint8_t> metadata, base::Duration timeout, bool confirmed)
    : connection_(std::move(connection)), id_(id), confirmed_(confirmed), unclaimed_(std::make_unique<Unclaimed>()) {
  const size_t size = data_size + metadata.size();
  unclaimed_->timeout = timeout;
  unclaimed_->memory.resize((size + sizeof(Line) - 1) / sizeof(Line));
  const absl::Span<uint8_t> memory(reinterpret_cast<uint8_t*>(unclaimed_->memory.data()), size);
  data_ = memory.first(data_size);
  metadata_ = memory.subspan(data_size);
  std::copy(metadata.begin(), metadata.end(), metadata_.begin());
}

MutableBuffer& MutableBuffer::operator=(MutableBuffer&& other) noexcept {
  if (this == &other) return *this;
  Drop();
  connection_ = std::exchange(other.connection_, nullptr);
  id_ = std::exchange(other.id_, {});
  data_ = std::exchange(other.data_, {});
  metadata_ = std::exchange(other.metadata_, {});
  confirmed_ = other.confirmed_;
  unclaimed_ = std::move(other.unclaimed_);
  return *this;
}

absl::Status MutableBuffer::Seal() {
  const InlineObject object{id_, data_, metadata_};
  const std::shared_ptr<Connection> connection = Forget();
  if (connection == nullptr) return absl::FailedPreconditionError("this buffer was sealed or aborted before");
  if (const auto unclaimed = std::move(unclaimed_)) {
    CreateAndSealRequest put;
    put.objects = {object};
    put.timeout_microseconds = TimeoutMicroseconds(unclaimed->timeout);
    put.confirmed = confirmed_;
    const auto reply = connection->Call(put, connection->AnswerDeadline(unclaimed->timeout));
    if (!reply.ok()) return reply.status();
    if (reply->outcomes.size() == 1) return reply->outcomes.front().ToStatus();
    return absl::InternalError("the daemon answered for another number of objects");
  }
  SealRequest seal;
  seal.id = id_;
  seal.confirmed = confirmed_;
  return connection->Finish(seal);
}

absl::Status MutableBuffer::Abort() {
  const std::shared_ptr<Connection> connection = Forget();
  if (connection == nullptr) return absl::FailedPreconditionError("this buffer was sealed or aborted before");
  if (std::exchange(unclaimed_, nullptr) != nullptr) return absl::OkStatus();  // the daemon knows nothing of it
  AbortRequest abort;
  abort.id = id_;
  return connection->Finish(abort);
}

void MutableBuffer::Drop() {
  const std::shared_ptr<Connection> connection = Forget();
  if (connection == nullptr || std::exchange(unclaimed_, nullptr) != nullptr) return;
  AbortRequest abort;
  abort.id = id_;
  connection->Tell(abort);
}

std::shared_ptr<Connection> MutableBuffer::Forget() {
  data_ = metadata_ = {};
  return std::exchange(connection_, nullptr);
}

}  // namespace tokamak::client
