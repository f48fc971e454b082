// SocketTransfer moves objects between stores over TCP: what a store without RDMA does, for
// comparison. Two variants with the same messages:
//
//   original   as Plasma's object manager: after a request and a header, 4 KiB with each turn of
//              the event loop, one object after another on one stream for each peer, with the
//              kernel's own buffers and delays
//   tuned      writes straight from the object's memory and reads straight into it, as much as the
//              socket takes in one turn, with TCP_NODELAY and large socket buffers
//
// It is logic: which sockets, the kernel's or simulated ones, is the business of ByteStreams.
//
//   who pulls                         who holds
//      Request: id ----------------->    pins the object
//      <----------------- Header: id, generation, sizes; then data and metadata
//
// Both begin and end in the stores' memory: the object is pinned where it is held, and created,
// filled and sealed as a copy where it is pulled, so that it enters the directory as any copy does.
// Integers are little-endian.
//
// Bounds: kMaxStreams peers may ask, kMaxRequests of each may wait; more are not read from the
// stream until there is room. A peer that breaks the format loses its stream, with all that waits
// on it.
// Thread rule: the loop's thread. The listening address is for trusted networks: whoever reaches it
// may read any object.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "absl/status/statusor.h"
#include "lib/base/event_loop.h"
#include "lib/base/handle.h"
#include "lib/base/lifetime.h"
#include "lib/base/object_id.h"
#include "lib/base/time.h"
#include "lib/store/store.h"
#include "lib/verbs/types.h"
#include "tests/bench/streams/byte_stream.h"

namespace tokamak::bench {

enum class SocketVariant { kOriginal, kTuned };

class SocketTransfer final {
 public:
  // The place of the object, pinned once for the one who asked. kNotFound: the peer does not hold
  // it. kUnavailable: the stream ended, or there was none to be had. kInvalidArgument: the peer
  // broke the format. kDeadlineExceeded. kAborted: another pull on the same stream was dropped.
  // Else why the copy could not be created.
  using Callback = std::function<void(const absl::StatusOr<store::Location>&)>;

  static constexpr size_t kMaxStreams = 1024;
  static constexpr size_t kMaxRequests = 1024;
  static constexpr size_t kOriginalChunk = 4096;
  static constexpr size_t kTunedTurn = 1 << 20;
  static constexpr uint32_t kTunedBuffer = 4 << 20;  // where the kernel lets us choose; otherwise it does

  // On the wire, in this order: magic, id; and magic, status, id, generation, size of data, size of
  // metadata.
  static constexpr uint32_t kRequestMagic = 0x74736b31;
  static constexpr uint32_t kHeaderMagic = 0x74736b32;
  static constexpr size_t kRequestSize = 4 + base::ObjectId::kSize;
  static constexpr size_t kHeaderSize = 4 + 4 + base::ObjectId::kSize + 8 + 8 + 8;

  // Listens where `streams` are. Both references must outlive it; `loop` is that of `streams`.
  static absl::StatusOr<std::unique_ptr<SocketTransfer>> Listen(base::EventLoop& loop, store::Store& store,
                                                                std::unique_ptr<ByteStreams> streams,
                                                                SocketVariant variant);
  ~SocketTransfer();
  SocketTransfer(const SocketTransfer&) = delete;
  SocketTransfer& operator=(const SocketTransfer&) = delete;

  // The address for peers.
  const verbs::Address& address() const { return listener_->address(); }

  // Brings an object that the peer at `from` holds and this store does not. Dropping the handle
  // before the callback ends the stream to that peer, since the rest of the object cannot be
  // called back; afterwards it does nothing.
  [[nodiscard]] base::Pending Pull(const verbs::Address& from, const base::ObjectId& id, store::Owner who,
                                   base::Duration timeout, Callback done);

 private:
  class Asker;   // a peer's stream, on which it asks us
  class Stream;  // ours to a peer
  class Wanted;  // one pull

  SocketTransfer(base::EventLoop& loop, store::Store& store, std::unique_ptr<ByteStreams> streams,
                 SocketVariant variant);
  StreamOptions Tuning() const;
  void Accept(std::unique_ptr<ByteStream> stream);
  void ForgetEnded();

  base::EventLoop& loop_;
  store::Store& store_;
  const std::unique_ptr<ByteStreams> kind_;
  const SocketVariant variant_;
  const store::Owner self_;
  uint64_t next_asker_ = 0;
  std::map<uint64_t, std::unique_ptr<Asker>> askers_;
  std::map<verbs::Address, std::unique_ptr<Stream>> streams_;
  base::Timer forget_;
  std::unique_ptr<StreamListener> listener_;
  const base::Lifetime lifetime_;
};

}  // namespace tokamak::bench
