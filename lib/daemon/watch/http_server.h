// HttpServer answers GET requests at one address, one for each connection (docs/operations.md lists
// the paths).
//
// Untrusted clients: kRequestDeadline for a request, and for reading its answer. An arriving
// request takes a place but no thread. If all places, or an address's, are taken, the oldest
// connection without an answer gives way: silent ones block nobody.
//
// Thread rule: made and dropped by one thread. Connections live on the server's loop; the handler
// runs on kThreads others, several at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lib/base/event_loop.h"
#include "lib/base/text/host_port.h"
#include "lib/base/time.h"
#include "lib/daemon/watch/http_hosts.h"
#include "lib/daemon/watch/http_workers.h"
#include "lib/os/epoll_loop.h"
#include "lib/os/file_descriptor.h"
#include "lib/os/loop_thread.h"

namespace tokamak::daemon {

struct HttpAnswer {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string body;
};

class HttpServer final {
 public:
  static constexpr int kThreads = 4;
  static constexpr size_t kMaxConnections = 128;
  static constexpr size_t kMaxConnectionsOfAddress = 32;
  static_assert(kMaxConnectionsOfAddress < kMaxConnections, "others still get in");
  static constexpr size_t kMaxRequestBytes = 16384;  // request line and headers
  static constexpr base::Duration kRequestDeadline = base::Seconds(2);

  // `path`: decoded, begins with '/'.
  using Handler = std::function<HttpAnswer(absl::string_view path)>;

  // `address`: an IP; port 0: any. Refuses hosts other than `hosts`. The error is one line.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(const base::HostPort& address,
                                                           std::shared_ptr<const HttpHosts> hosts, Handler handler);
  // Waits for requests being answered.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // With the actual port.
  const base::HostPort& address() const { return address_; }
  std::string url() const;

 private:
  struct Connection {
    os::FileDescriptor socket;
    std::string from;  // peer's address, as the kernel's
    std::string come;
    bool is_asking = false;   // the workers have it
    std::string answer;       // unsent
    bool is_leaving = false;  // all sent; input is ignored
    base::Timer deadline;
    os::FdWatch watch;
  };

  HttpServer(const base::HostPort& address, os::FileDescriptor listener, std::shared_ptr<const HttpHosts> hosts,
             Handler handler);
  void Accept();
  bool MakeRoom(const std::string& from);
  void OnEvents(uint64_t number, uint32_t events);
  void Read(uint64_t number, Connection& connection);
  void Answer(uint64_t number, std::string answer);
  void Write(uint64_t number, Connection& connection);

  const base::HostPort address_;
  const std::shared_ptr<const HttpHosts> hosts_;
  os::LoopThread thread_;
  const os::FileDescriptor listener_;
  // The loop's:
  uint64_t last_number_ = 0;
  std::map<uint64_t, Connection> connections_;  // oldest first
  std::unique_ptr<HttpWorkers> workers_;
  os::FdWatch listener_watch_;
  base::Timer retry_;
};

}  // namespace tokamak::daemon
