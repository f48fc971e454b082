// HttpServer answers GET requests at one address: civetweb, with everything that it does beside
// that left out, and with bounds.
//
// It reads from whoever reaches the address, and believes nothing: a request has kRequestDeadline
// to arrive and as much to be taken away, at most kMaxRequestBytes, and one connection each; what
// is more than kThreads at once waits. Thread rule: made and dropped by one thread. The handler
// runs on threads of the server's own, several at once.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lib/base/host_port.h"

struct mg_connection;
struct mg_context;

namespace tokamak::daemon {

struct HttpAnswer {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string body;
};

class HttpServer final {
 public:
  static constexpr int kThreads = 4;
  static constexpr int kMaxWaitingConnections = 16;  // accepted; as many again wait in the kernel
  static constexpr int kMaxRequestBytes = 16384;     // of the request line and its headers
  static constexpr std::chrono::milliseconds kRequestDeadline{2000};

  // What is at a path, which is decoded and begins with '/'.
  using Handler = std::function<HttpAnswer(absl::string_view path)>;

  // `address`: an IP address; port 0: any. The error is one line.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(const base::HostPort& address, Handler handler);
  // Waits for requests that are being answered.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // With the port that was taken.
  std::string url() const;

 private:
  HttpServer(const base::HostPort& address, Handler handler) : address_(address), handler_(std::move(handler)) {}
  static int OnRequest(mg_connection* connection);
  void Answer(mg_connection* connection) const;

  base::HostPort address_;
  const Handler handler_;
  mg_context* context_ = nullptr;
};

}  // namespace tokamak::daemon
