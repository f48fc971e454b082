// FakeDaemon answers clients from a real store, alone, and misbehaves where a test asks it to.
//
// Thread rule: one thread, the test's, except AwaitGets; the daemon itself runs on a thread of its
// own.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/trace.h"
#include "lib/client/protocol/frame.h"
#include "lib/client/protocol/messages.h"
#include "lib/os/loop_thread.h"
#include "lib/os/shared_memory.h"
#include "lib/os/sockets/unix_socket.h"
#include "lib/store/store.h"
#include "tests/support/short_folder.h"

namespace tokamak::client {

class FakeDaemon final {
 public:
  static constexpr uint64_t kCapacity = 1024 * 1024;

  using Bytes = std::vector<uint8_t>;
  // The bytes to send instead of the usual answer; nullopt for silence.
  using Script = std::function<std::optional<Bytes>(const Header& header, const Bytes& frame)>;

  FakeDaemon();
  ~FakeDaemon();

  const std::string& path() const { return path_; }

  // From now on requests of this kind are answered by `script`, on the daemon's thread.
  void Answer(Kind kind, Script script);
  void AnswerAsUsual(Kind kind);

  // From now on each request of this kind is shown to `screen` first, on the daemon's thread: where
  // that returns false, the request is dropped and never answered.
  void Screen(Kind kind, std::function<bool()> screen);

  // From now on what clients release is written down here, and not released.
  void NoteReleases(std::vector<base::ObjectId>& released);

  // Sends a frame to every client.
  void SendToAll(const Bytes& frame);

  // Ends all connections; further ones are accepted.
  void Disconnect();

  // The same, and nobody listens until it comes back.
  void GoAway();
  void ComeBack();

  // Returns when `count` gets wait for objects that do not exist yet; false where that takes too
  // long. From any thread.
  [[nodiscard]] bool AwaitGets(uint64_t count);

  store::Statistics statistics();
  size_t connections();

 private:
  struct Peer {
    store::Owner owner{};
    std::unique_ptr<os::UnixConnection> connection;
    std::map<uint64_t, std::unique_ptr<store::Handle>> waits;  // by request id
    std::unique_ptr<store::Handle> subscription;
  };

  void Listen();
  void Accept(os::FileDescriptor socket);
  void End(uint64_t number);
  void Handle(uint64_t number, const Bytes& frame);
  std::optional<Bytes> Reply(uint64_t number, Peer& peer, const Header& header, const Bytes& frame);
  void StartGet(uint64_t number, Peer& peer, const Header& header, const GetRequest& get);
  void StartSubscription(uint64_t number, Peer& peer, const Header& header);

  const testing_support::ShortFolder folder_;
  std::string path_;
  os::SharedMemory memory_;
  os::FileDescriptor read_only_;
  os::MemoryMapping mapping_;
  os::LoopThread thread_;

  std::mutex gets_mutex_;
  std::condition_variable gets_changed_;
  uint64_t gets_waiting_ = 0;  // guarded by gets_mutex_; as of the last get

  // On the daemon's thread.
  base::NoTrace trace_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<os::UnixListener> listener_;
  uint64_t next_peer_ = 1;
  std::map<uint64_t, Peer> peers_;
  std::map<Kind, Script> scripts_;
  std::map<Kind, std::function<bool()>> screens_;
};

}  // namespace tokamak::client
