// A connection of rdma_cm on which nothing is under way, and one end of it that ends its process:
//
//   idle_connection serve ADDRESS wait|_exit|exec
//   idle_connection connect ADDRESS
//
// The connecting side prints the event that it gets then, and ends with 0 if that is the right one.
#include <arpa/inet.h>
#include <rdma/rdma_cma.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

constexpr uint16_t kPort = 7777;

void Check(bool holds, const char* what) {
  if (holds) return;
  std::perror(what);
  std::exit(9);
}

class End final {
 public:
  explicit End(const char* address) : channel_(rdma_create_event_channel()) {
    Check(channel_ != nullptr && rdma_create_id(channel_, &id_, nullptr, RDMA_PS_TCP) == 0, "rdma_create_id");
    address_.sin_family = AF_INET;
    address_.sin_port = htons(kPort);
    address_.sin_addr.s_addr = inet_addr(address);
  }

  void Serve() {
    Check(rdma_bind_addr(id_, address()) == 0 && rdma_listen(id_, 1) == 0, "rdma_listen");
    rdma_cm_event* const request = Next(RDMA_CM_EVENT_CONNECT_REQUEST);
    rdma_cm_id* const asked = request->id;
    rdma_ack_cm_event(request);
    MakeQueuePair(asked);
    rdma_conn_param parameters = Parameters();
    Check(rdma_accept(asked, &parameters) == 0, "rdma_accept");
    rdma_ack_cm_event(Next(RDMA_CM_EVENT_ESTABLISHED));
  }

  void Connect() {
    constexpr int kMilliseconds = 10'000;
    Check(rdma_resolve_addr(id_, nullptr, address(), kMilliseconds) == 0, "rdma_resolve_addr");
    rdma_ack_cm_event(Next(RDMA_CM_EVENT_ADDR_RESOLVED));
    Check(rdma_resolve_route(id_, kMilliseconds) == 0, "rdma_resolve_route");
    rdma_ack_cm_event(Next(RDMA_CM_EVENT_ROUTE_RESOLVED));
    MakeQueuePair(id_);
    rdma_conn_param parameters = Parameters();
    Check(rdma_connect(id_, &parameters) == 0, "rdma_connect");
    rdma_ack_cm_event(Next(RDMA_CM_EVENT_ESTABLISHED));
  }

  rdma_cm_event* Next(rdma_cm_event_type wanted) {
    rdma_cm_event* event = nullptr;
    Check(rdma_get_cm_event(channel_, &event) == 0, "rdma_get_cm_event");
    std::printf("%s\n", rdma_event_str(event->event));
    std::fflush(stdout);
    if (event->event != wanted) std::exit(3);
    return event;
  }

 private:
  sockaddr* address() { return reinterpret_cast<sockaddr*>(&address_); }

  static void MakeQueuePair(rdma_cm_id* id) {
    ibv_qp_init_attr wanted{};
    wanted.qp_type = IBV_QPT_RC;
    wanted.cap = {4, 4, 1, 1, 0};
    Check(rdma_create_qp(id, nullptr, &wanted) == 0, "rdma_create_qp");
  }

  static rdma_conn_param Parameters() {
    rdma_conn_param parameters{};
    parameters.responder_resources = parameters.initiator_depth = 1;
    parameters.retry_count = parameters.rnr_retry_count = 7;
    return parameters;
  }

  rdma_event_channel* const channel_;
  rdma_cm_id* id_ = nullptr;
  sockaddr_in address_{};
};

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 2 ? argv[1] : "";
  if (what == "serve" && argc == 4) {
    End end(argv[2]);
    end.Serve();
    const std::string how = argv[3];
    if (how == "_exit") _exit(0);
    if (how == "exec") execlp("true", "true", nullptr);
    for (;;) pause();
  }
  if (what != "connect") return 2;
  End end(argv[2]);
  end.Connect();
  rdma_ack_cm_event(end.Next(RDMA_CM_EVENT_DISCONNECTED));
  _exit(0);
}
