#include "lib/client/buffer.h"

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

MutableBuffer& MutableBuffer::operator=(MutableBuffer&& other) noexcept {
  if (this == &other) return *this;
  Drop();
  connection_ = std::exchange(other.connection_, nullptr);
  id_ = std::exchange(other.id_, {});
  data_ = std::exchange(other.data_, {});
  metadata_ = std::exchange(other.metadata_, {});
  confirmed_ = other.confirmed_;
  return *this;
}

absl::Status MutableBuffer::Seal() {
  const std::shared_ptr<Connection> connection = Forget();
  if (connection == nullptr) return absl::FailedPreconditionError("this buffer was sealed or aborted before");
  SealRequest seal;
  seal.id = id_;
  seal.confirmed = confirmed_;
  return connection->Finish(seal);
}

absl::Status MutableBuffer::Abort() {
  const std::shared_ptr<Connection> connection = Forget();
  if (connection == nullptr) return absl::FailedPreconditionError("this buffer was sealed or aborted before");
  AbortRequest abort;
  abort.id = id_;
  return connection->Finish(abort);
}

void MutableBuffer::Drop() {
  const std::shared_ptr<Connection> connection = Forget();
  if (connection == nullptr) return;
  AbortRequest abort;
  abort.id = id_;
  connection->Tell(abort);
}

std::shared_ptr<Connection> MutableBuffer::Forget() {
  data_ = metadata_ = {};
  return std::exchange(connection_, nullptr);
}

}  // namespace tokamak::client
