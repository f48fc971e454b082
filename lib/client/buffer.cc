#include "tokamak/buffer.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/client/buffer_maker.h"
#include "lib/client/convert.h"
#include "lib/client/daemon_connection.h"
#include "lib/client/line.h"

namespace tokamak {

// Aligned as in the arena. Hidden, since the shared library exports the members of MutableBuffer.
struct __attribute__((visibility("hidden"))) MutableBuffer::Unclaimed {
  struct alignas(64) CacheLine {
    uint8_t bytes[64] = {};
  };

  std::shared_ptr<client::Line> line;  // for its put
  std::vector<CacheLine> memory;       // data, then metadata
  base::Duration timeout;              // longest wait for room
  std::string name;                    // kept with the object
};

// ---- reading

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  if (this == &other) return *this;
  Release();
  connection_ = std::exchange(other.connection_, nullptr);
  id_ = std::exchange(other.id_, {});
  data_ = std::exchange(other.data_, {});
  metadata_ = std::exchange(other.metadata_, {});
  return *this;
}

void Buffer::Release() { ReleaseAll(Span<Buffer>(this, 1)); }

void Buffer::ReleaseAll(Span<Buffer> buffers) {
  std::shared_ptr<client::DaemonConnection> connection;  // of the gathered buffers
  client::ReleaseRequest release;
  const auto tell = [&] {
    if (connection != nullptr) connection->Tell(release);
    release.ids.clear();
  };
  for (Buffer& buffer : buffers) {
    if (buffer.empty()) continue;
    if (buffer.connection_ != connection || release.ids.size() == client::kMaxIds) tell();
    connection = std::exchange(buffer.connection_, nullptr);
    buffer.data_ = buffer.metadata_ = {};
    release.ids.push_back(buffer.id_);
  }
  tell();
}

// ---- filling

MutableBuffer::MutableBuffer() noexcept = default;

MutableBuffer::MutableBuffer(MutableBuffer&& other) noexcept { *this = std::move(other); }

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

MutableBuffer::~MutableBuffer() { Drop(); }

Status MutableBuffer::Seal() {
  client::InlineObject object{id_, data_, metadata_};
  const std::shared_ptr<client::DaemonConnection> connection = Forget();
  if (connection == nullptr) {
    return Status(StatusCode::kFailedPrecondition, "this buffer was sealed or aborted before");
  }
  if (const auto unclaimed = std::move(unclaimed_)) {
    client::CreateAndSealRequest put;
    object.name = unclaimed->name;
    put.objects = {object};
    put.timeout_microseconds = client::TimeoutMicroseconds(unclaimed->timeout);
    put.confirmed = confirmed_;
    const auto reply = unclaimed->line->Call(put, unclaimed->line->AnswerDeadline(unclaimed->timeout));
    if (!reply.ok()) return client::ToPublic(reply.status());
    if (reply->outcomes.size() == 1) return client::ToPublic(reply->outcomes.front().ToStatus());
    return client::ToPublic(client::DaemonConnection::WrongCount());
  }
  client::SealRequest seal;
  seal.id = id_;
  seal.confirmed = confirmed_;
  bool unsent = false;
  const absl::Status sealed = connection->Finish(seal, &unsent);
  if (!unsent || !absl::IsUnavailable(sealed)) return client::ToPublic(sealed);
  return Status(StatusCode::kUnavailable, absl::StrCat("what this buffer was filled with is dropped, create the object "
                                                       "anew: ",
                                                       sealed.message()));
}

Status MutableBuffer::Abort() {
  const std::shared_ptr<client::DaemonConnection> connection = Forget();
  if (connection == nullptr) {
    return Status(StatusCode::kFailedPrecondition, "this buffer was sealed or aborted before");
  }
  if (std::exchange(unclaimed_, nullptr) != nullptr) return Status();  // the daemon does not know it
  client::AbortRequest abort;
  abort.id = id_;
  return client::ToPublic(connection->Finish(abort));
}

void MutableBuffer::Drop() {
  const std::shared_ptr<client::DaemonConnection> connection = Forget();
  if (connection == nullptr || std::exchange(unclaimed_, nullptr) != nullptr) return;
  client::AbortRequest abort;
  abort.id = id_;
  connection->Tell(abort);
}

std::shared_ptr<client::DaemonConnection> MutableBuffer::Forget() {
  data_ = metadata_ = {};
  return std::exchange(connection_, nullptr);
}

// ---- making them

namespace client {

Result<Buffer> BufferMaker::Of(const std::shared_ptr<DaemonConnection>& connection, const base::ObjectId& id,
                               const GetEntry& entry) {
  if (entry.outcome.code != absl::StatusCode::kOk) return ToPublic(entry.outcome.ToStatus());
  const absl::StatusOr<absl::Span<const uint8_t>> memory = connection->ReadableMemory(entry.location);
  if (!memory.ok()) return ToPublic(memory.status());
  return Buffer(connection, id, memory->first(entry.location.data_size), memory->subspan(entry.location.data_size));
}

std::vector<uint8_t> BufferMaker::ReleaseOf(absl::Span<const base::ObjectId> asked, absl::Span<const uint8_t> late) {
  const absl::StatusOr<GetReply> reply = DecodeBody<GetReply>(late);
  ReleaseRequest release;
  for (size_t i = 0; reply.ok() && i < std::min(asked.size(), reply->entries.size()); ++i) {
    if (reply->entries[i].outcome.code == absl::StatusCode::kOk) release.ids.push_back(asked[i]);
  }
  return release.ids.empty() ? std::vector<uint8_t>() : Encode(0, release);
}

MutableBuffer BufferMaker::Claimed(std::shared_ptr<DaemonConnection> connection, const base::ObjectId& id,
                                   absl::Span<uint8_t> memory, uint64_t data_size, bool confirmed) {
  MutableBuffer buffer;
  buffer.connection_ = std::move(connection);
  buffer.id_ = id;
  buffer.data_ = memory.first(data_size);
  buffer.metadata_ = memory.subspan(data_size);
  buffer.confirmed_ = confirmed;
  return buffer;
}

MutableBuffer BufferMaker::Unclaimed(std::shared_ptr<Line> line, const base::ObjectId& id, uint64_t data_size,
                                     absl::Span<const uint8_t> metadata, base::Duration timeout, bool confirmed,
                                     std::string name) {
  using CacheLine = MutableBuffer::Unclaimed::CacheLine;
  const size_t size = data_size + metadata.size();
  auto unclaimed = std::make_unique<MutableBuffer::Unclaimed>();
  unclaimed->timeout = timeout;
  unclaimed->name = std::move(name);
  unclaimed->memory.resize((size + sizeof(CacheLine) - 1) / sizeof(CacheLine));
  const absl::Span<uint8_t> memory(reinterpret_cast<uint8_t*>(unclaimed->memory.data()), size);
  MutableBuffer buffer = Claimed(line->connection(), id, memory, data_size, confirmed);
  unclaimed->line = std::move(line);
  std::copy(metadata.begin(), metadata.end(), buffer.metadata_.begin());
  buffer.unclaimed_ = std::move(unclaimed);
  return buffer;
}

}  // namespace client
}  // namespace tokamak
