// Buffers are objects in place: a Buffer reads a sealed one in the shared memory of its node, a
// MutableBuffer fills a new one.
//
// Lifetime: a buffer keeps its memory and its connection alive, so it may outlive the Client it
// came from. While it lives, its object is pinned: its bytes neither move nor change, also when it
// is deleted. When the daemon dies, what is mapped stays readable. When the daemon lives but the
// connection is lost, the pins are lost with it: check Client::status() before trusting what was
// read.
// Alignment: data begins at 64 bytes; metadata follows it without a gap.
// Thread rule: const methods from any thread; otherwise one at a time. Dropping is safe on any
// thread. Fork rule: client.h's.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "tokamak/object_id.h"
#include "tokamak/span.h"
#include "tokamak/status.h"

namespace tokamak {

// The library's own.
namespace client {
class BufferMaker;
class DaemonConnection;
}  // namespace client

// A sealed object, pinned until this is dropped. Move-only.
class Buffer final {
 public:
  // Empty: no object, no bytes.
  Buffer() = default;
  Buffer(Buffer&& other) noexcept { *this = std::move(other); }
  Buffer& operator=(Buffer&& other) noexcept;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { Release(); }

  // Gives the object back now instead of when this is dropped. The bytes must not be read any more.
  void Release();
  // The same for many, in one message for as many as one takes.
  static void ReleaseAll(Span<Buffer> buffers);

  const ObjectId& id() const { return id_; }
  Span<const uint8_t> data() const { return data_; }
  Span<const uint8_t> metadata() const { return metadata_; }
  bool empty() const { return connection_ == nullptr; }

 private:
  friend class client::BufferMaker;
  Buffer(std::shared_ptr<client::DaemonConnection> connection, const ObjectId& id, Span<const uint8_t> data,
         Span<const uint8_t> metadata)
      : connection_(std::move(connection)), id_(id), data_(data), metadata_(metadata) {}

  std::shared_ptr<client::DaemonConnection> connection_;
  ObjectId id_;
  Span<const uint8_t> data_;
  Span<const uint8_t> metadata_;
};

// A new object, writable and invisible until Seal: in shared memory, or a small one that is not
// claimed (PutOptions::claim) in memory of this program. Dropping it unsealed aborts the object.
// Move-only.
class MutableBuffer final {
 public:
  MutableBuffer() noexcept;
  MutableBuffer(MutableBuffer&& other) noexcept;
  MutableBuffer& operator=(MutableBuffer&& other) noexcept;
  MutableBuffer(const MutableBuffer&) = delete;
  MutableBuffer& operator=(const MutableBuffer&) = delete;
  ~MutableBuffer();

  // Memory to fill, any time before Seal. Fresh memory holds whatever lay there before.
  Span<uint8_t> data() { return data_; }
  Span<uint8_t> metadata() { return metadata_; }
  const ObjectId& id() const { return id_; }

  // Makes the object visible, for good; this becomes empty, and its memory must not be written any
  // more, whatever comes back:
  //   kDeadlineExceeded, "takes no requests": the seal was not sent. The daemon is asked to abort
  //     the object instead, before anything that this client asks later.
  //   kDeadlineExceeded, "did not answer": the seal was sent. The daemon seals the object when it
  //     comes to it.
  //   kUnavailable, "not answered": sealed, if the daemon read the seal before the connection
  //     ended; else aborted.
  //   kUnavailable, "create the object anew": the connection was lost before, and with it what was
  //     filled; also where the client reconnects.
  //   An error of the daemon, such as kAlreadyExists or kUnavailable of a confirmed put: the object
  //     is dropped.
  // One that is not claimed is put by this, on the connection that the client has by then: it says
  // what Put says, may wait for room as long, and has left nothing if it was not sent.
  Status Seal();

  // Drops the object; this becomes empty. After an error it is dropped all the same, once the
  // daemon comes to it.
  Status Abort();

  bool empty() const { return connection_ == nullptr; }

 private:
  friend class client::BufferMaker;
  struct Unclaimed;

  void Drop();
  std::shared_ptr<client::DaemonConnection> Forget();

  std::shared_ptr<client::DaemonConnection> connection_;
  ObjectId id_;
  Span<uint8_t> data_;
  Span<uint8_t> metadata_;
  bool confirmed_ = false;
  std::unique_ptr<Unclaimed> unclaimed_;  // null: it is in shared memory
};

}  // namespace tokamak
