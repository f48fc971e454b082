#include "lib/daemon/http_server.h"

#include <civetweb.h>

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"

namespace tokamak::daemon {

namespace {

// Nothing but what this server has; nobody else's page may show it, and a browser asks again.
constexpr char kHeaders[] =
    "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'\r\n"
    "X-Content-Type-Options: nosniff\r\n"
    "Cross-Origin-Resource-Policy: same-origin\r\n"
    "Referrer-Policy: no-referrer\r\n"
    "Cache-Control: no-store\r\n"
    "Connection: close\r\n";

const char* ReasonOf(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    default:
      return "Service Unavailable";
  }
}

// Of the library: the log is not a place for what strangers send.
int LogMessage(const mg_connection*, const char* message) {
  VLOG(1) << "http: " << message;
  return 1;
}

}  // namespace

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(const base::HostPort& address, Handler handler) {
  auto server = std::unique_ptr<HttpServer>(new HttpServer(address, std::move(handler)));
  const std::string listen = address.ToString(), threads = absl::StrCat(kThreads),
                    queue = absl::StrCat(kMaxWaitingConnections), bytes = absl::StrCat(kMaxRequestBytes),
                    deadline = absl::StrCat(kRequestDeadline.count());
  const char* options[] = {"listening_ports",
                           listen.c_str(),
                           "num_threads",
                           threads.c_str(),
                           "connection_queue",
                           queue.c_str(),
                           "listen_backlog",
                           queue.c_str(),
                           "max_request_size",
                           bytes.c_str(),
                           "request_timeout_ms",
                           deadline.c_str(),
                           "enable_keep_alive",
                           "no",
                           nullptr};
  mg_callbacks callbacks{};
  callbacks.begin_request = &HttpServer::OnRequest;
  callbacks.log_message = &LogMessage;
  char text[256] = "";
  mg_error_data error{};
  error.text = text;
  error.text_buffer_size = sizeof text;
  mg_init_data init{};
  init.callbacks = &callbacks;
  init.user_data = server.get();
  init.configuration_options = options;
  server->context_ = mg_start2(&init, &error);
  if (server->context_ == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("--http: cannot listen at ", listen, " (", text,
                                                   "): give an address of this host, and a port that is free"));
  }
  mg_server_port port{};
  if (mg_get_server_ports(server->context_, 1, &port) == 1) server->address_.port = static_cast<uint16_t>(port.port);
  return server;
}

HttpServer::~HttpServer() {
  if (context_ != nullptr) mg_stop(context_);
}

std::string HttpServer::url() const { return absl::StrCat("http://", address_.ToString(), "/"); }

int HttpServer::OnRequest(mg_connection* connection) {
  static_cast<const HttpServer*>(mg_get_request_info(connection)->user_data)->Answer(connection);
  return 1;
}

void HttpServer::Answer(mg_connection* connection) const {
  const mg_request_info& request = *mg_get_request_info(connection);
  const bool head = std::strcmp(request.request_method, "HEAD") == 0;
  HttpAnswer answer{405, "text/plain; charset=utf-8", "only GET\n"};
  if (head || std::strcmp(request.request_method, "GET") == 0) {
    answer = handler_(request.local_uri == nullptr ? "" : request.local_uri);
  }
  const std::string front =
      absl::StrCat("HTTP/1.1 ", answer.status, " ", ReasonOf(answer.status), "\r\n", "Content-Type: ", answer.type,
                   "\r\nContent-Length: ", answer.body.size(), "\r\n", kHeaders, "\r\n");
  mg_write(connection, front.data(), front.size());
  if (!head) mg_write(connection, answer.body.data(), answer.body.size());
}

}  // namespace tokamak::daemon
