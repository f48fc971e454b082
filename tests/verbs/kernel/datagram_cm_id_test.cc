#include "lib/verbs/kernel/cm/datagram_cm_id.h"

#include <arpa/inet.h>
#include <infiniband/verbs.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "lib/base/trace.h"
#include "lib/verbs/datagrams.h"
#include "lib/verbs/kernel/cm/cm_context.h"
#include "lib/verbs/soft/cm/service_resolution.h"
#include "lib/verbs/soft/device.h"
#include "sim/network/loopback_fabric.h"
#include "sim/time/sim_loop.h"

namespace tokamak::verbs::kernel {
namespace {

constexpr char kServer[] = "10.77.0.1";
constexpr char kClient[] = "10.77.0.2";
constexpr uint16_t kPort = 7174;

sockaddr_in6 Name(const char* ip, uint16_t port) {
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_port = htons(port);
  inet_pton(AF_INET, ip, &name.sin_addr);
  sockaddr_in6 room{};
  std::memcpy(&room, &name, sizeof(name));
  return room;
}

std::string GidText(const uint8_t (&gid)[16]) {
  char text[INET6_ADDRSTRLEN];
  return inet_ntop(AF_INET6, gid, text, sizeof(text));
}

// A program's event channel with one device below, and the commands that its librdmacm writes.
class Program final {
 public:
  Program(sim::Scheduler& scheduler, soft::Fabric& fabric, const char* address) : loop_(scheduler) {
    soft::DeviceOptions options;
    options.address = Address::Parse(address).value();
    options.seed = static_cast<uint64_t>(options.address.ip[15]);
    nic_ = soft::OpenSoftDevice(loop_, fabric, trace_, options).value();
    device_ = std::make_unique<UserDevice>(MakeIdentity(0, options.address, "lo"), *nic_, loop_, failing_);
    devices_ = {device_.get()};
    channel = std::make_unique<CmContext>(devices_, [this](int) { return channel.get(); });
  }

  template <typename Request>
  int Do(uint32_t command, const Request& request) {
    std::vector<uint8_t> bytes(sizeof(rdma_ucm_cmd_hdr) + sizeof(request));
    const rdma_ucm_cmd_hdr header{command, sizeof(request), 0};
    std::memcpy(bytes.data(), &header, sizeof(header));
    std::memcpy(bytes.data() + sizeof(header), &request, sizeof(request));
    return channel->Execute(bytes.data(), bytes.size());
  }

  uint32_t Create(uint64_t uid, uint16_t port_space = RDMA_PS_UDP) {
    rdma_ucm_create_id_resp made{};
    rdma_ucm_create_id request{};
    request.uid = uid;
    request.response = reinterpret_cast<uint64_t>(&made);
    request.ps = port_space;
    EXPECT_EQ(Do(RDMA_USER_CM_CMD_CREATE_ID, request), 0);
    return made.id;
  }
  int Destroy(uint32_t id, uint32_t* reported = nullptr) {
    rdma_ucm_destroy_id_resp left{};
    rdma_ucm_destroy_id request{};
    request.response = reinterpret_cast<uint64_t>(&left);
    request.id = id;
    const int error = Do(RDMA_USER_CM_CMD_DESTROY_ID, request);
    if (reported != nullptr) *reported = left.events_reported;
    return error;
  }
  int Bind(uint32_t id, const sockaddr_in6& name) {
    rdma_ucm_bind_ip request{};
    request.id = id;
    request.addr = name;
    return Do(RDMA_USER_CM_CMD_BIND_IP, request);
  }
  int Listen(uint32_t id) { return Do(RDMA_USER_CM_CMD_LISTEN, rdma_ucm_listen{id, 0}); }
  // Up to the route, with its events.
  void Resolve(uint32_t id, const sockaddr_in6& name) {
    rdma_ucm_resolve_ip request{};
    request.id = id;
    request.dst_addr = name;
    ASSERT_EQ(Do(RDMA_USER_CM_CMD_RESOLVE_IP, request), 0);
    ASSERT_EQ(KindOf(Next()), CmEvent::kAddressResolved);
    ASSERT_EQ(Do(RDMA_USER_CM_CMD_RESOLVE_ROUTE, rdma_ucm_resolve_route{id, 0}), 0);
    ASSERT_EQ(KindOf(Next()), CmEvent::kRouteResolved);
  }
  rdma_ucm_query_route_resp Route(uint32_t id) {
    rdma_ucm_query_route_resp route{};
    rdma_ucm_query request{};
    request.response = reinterpret_cast<uint64_t>(&route);
    request.id = id;
    EXPECT_EQ(Do(RDMA_USER_CM_CMD_QUERY_ROUTE, request), 0);
    return route;
  }
  static rdma_ucm_conn_param Parameters(uint32_t number, const std::string& text) {
    rdma_ucm_conn_param parameters{};
    parameters.qp_num = number;
    parameters.valid = 1;
    parameters.private_data_len = static_cast<uint8_t>(text.size());
    std::memcpy(parameters.private_data, text.data(), text.size());
    return parameters;
  }
  int Connect(uint32_t id, const std::string& text = "") {
    rdma_ucm_connect request{};
    request.id = id;
    request.conn_param = Parameters(0x11, text);
    return Do(RDMA_USER_CM_CMD_CONNECT, request);
  }
  int Accept(uint32_t id, uint32_t number, const std::string& text = "") {
    rdma_ucm_accept request{};
    request.id = id;
    request.uid = 99;
    request.conn_param = Parameters(number, text);
    return Do(RDMA_USER_CM_CMD_ACCEPT, request);
  }
  int Reject(uint32_t id, const std::string& text) {
    rdma_ucm_reject request{};
    request.id = id;
    request.private_data_len = static_cast<uint8_t>(text.size());
    std::memcpy(request.private_data, text.data(), text.size());
    return Do(RDMA_USER_CM_CMD_REJECT, request);
  }
  int Join(uint32_t id, const sockaddr_in6& group, uint64_t uid, uint32_t* membership) {
    rdma_ucm_create_id_resp made{};
    rdma_ucm_join_ip_mcast request{};
    request.response = reinterpret_cast<uint64_t>(&made);
    request.uid = uid;
    request.addr = group;
    request.id = id;
    const int error = Do(RDMA_USER_CM_CMD_JOIN_IP_MCAST, request);
    *membership = made.id;
    return error;
  }
  int Leave(uint32_t membership, uint32_t* reported) {
    rdma_ucm_destroy_id_resp left{};
    rdma_ucm_destroy_id request{};
    request.response = reinterpret_cast<uint64_t>(&left);
    request.id = membership;
    const int error = Do(RDMA_USER_CM_CMD_LEAVE_MCAST, request);
    *reported = left.events_reported;
    return error;
  }

  // The next event, or nothing.
  std::optional<rdma_ucm_event_resp> Next() {
    rdma_ucm_event_resp event{};
    const int error = Do(RDMA_USER_CM_CMD_GET_EVENT, rdma_ucm_get_event{reinterpret_cast<uint64_t>(&event)});
    return error == 0 ? std::make_optional(event) : std::nullopt;
  }
  static std::optional<CmEvent> KindOf(const std::optional<rdma_ucm_event_resp>& event) {
    return event ? std::make_optional(static_cast<CmEvent>(event->event)) : std::nullopt;
  }

  std::unique_ptr<CmContext> channel;

 private:
  sim::SimLoop loop_;
  base::TraceHash trace_;
  std::unique_ptr<soft::SoftDevice> nic_;
  FailingRequest failing_{RequestFault()};
  std::unique_ptr<UserDevice> device_;
  std::vector<UserDevice*> devices_;
};

class DatagramCmIdTest : public ::testing::Test {
 protected:
  ~DatagramCmIdTest() override {
    server_.channel.reset();
    client_.channel.reset();
  }

  void Run(base::Duration duration = base::Milliseconds(1)) { scheduler_.RunFor(duration); }

  // An id of the server that listens, one of the client that asks it, and the request as the server
  // hears of it.
  rdma_ucm_event_resp Ask(const std::string& text = "") {
    listening_ = server_.Create(1);
    EXPECT_EQ(server_.Bind(listening_, Name(kServer, kPort)), 0);
    EXPECT_EQ(server_.Listen(listening_), 0);
    asking_ = client_.Create(2);
    client_.Resolve(asking_, Name(kServer, kPort));
    EXPECT_EQ(client_.Connect(asking_, text), 0);
    Run();
    const auto request = server_.Next();
    EXPECT_EQ(Program::KindOf(request), CmEvent::kConnectRequest);
    return request.value_or(rdma_ucm_event_resp());
  }

  sim::Scheduler scheduler_;
  sim::LoopbackFabric fabric_;
  Program server_{scheduler_, fabric_, kServer};
  Program client_{scheduler_, fabric_, kClient};
  uint32_t listening_ = 0;
  uint32_t asking_ = 0;
};

TEST_F(DatagramCmIdTest, AnAskerLearnsHowToSend) {
  const rdma_ucm_event_resp request = Ask("hello");
  EXPECT_EQ(request.uid, 1u);
  EXPECT_NE(request.id, listening_);
  EXPECT_EQ(request.param.ud.private_data_len, 180);
  EXPECT_STREQ(reinterpret_cast<const char*>(request.param.ud.private_data), "hello");

  ASSERT_EQ(server_.Accept(request.id, 0x1234, "come in"), 0);
  Run();
  EXPECT_FALSE(server_.Next()) << "who serves is told nothing more";
  const auto answer = client_.Next();
  ASSERT_EQ(Program::KindOf(answer), CmEvent::kEstablished);
  EXPECT_EQ(answer->uid, 2u);
  EXPECT_EQ(answer->status, 0u);
  const rdma_ucm_ud_param& datagrams = answer->param.ud;
  EXPECT_EQ(datagrams.qp_num, 0x1234u);
  EXPECT_EQ(datagrams.qkey, kServiceQkey);
  EXPECT_EQ(GidText(datagrams.ah_attr.grh.dgid), "::ffff:10.77.0.1");
  EXPECT_EQ(datagrams.ah_attr.is_global, 1);
  EXPECT_EQ(datagrams.ah_attr.port_num, 1);
  EXPECT_EQ(datagrams.private_data_len, 136);
  EXPECT_STREQ(reinterpret_cast<const char*>(datagrams.private_data), "come in");
  EXPECT_EQ(server_.Accept(request.id, 0x1234), EINVAL);
}

TEST_F(DatagramCmIdTest, ARefusalIsReportedAsUnreachable) {
  const rdma_ucm_event_resp request = Ask();
  ASSERT_EQ(server_.Reject(request.id, "no"), 0);
  Run();
  const auto answer = client_.Next();
  ASSERT_EQ(Program::KindOf(answer), CmEvent::kUnreachable);
  EXPECT_EQ(answer->status, static_cast<uint32_t>(soft::SidrStatus::kRejected));
  EXPECT_STREQ(reinterpret_cast<const char*>(answer->param.ud.private_data), "no");
}

TEST_F(DatagramCmIdTest, ARequestThatIsDestroyedIsRejected) {
  const rdma_ucm_event_resp request = Ask();
  ASSERT_EQ(server_.Destroy(request.id), 0);
  Run();
  const auto answer = client_.Next();
  ASSERT_EQ(Program::KindOf(answer), CmEvent::kUnreachable);
  EXPECT_EQ(answer->status, static_cast<uint32_t>(soft::SidrStatus::kRejected));
}

// As Linux does: libfabric binds 127.0.0.1, and sends its peers the address that it gets in turn.
TEST_F(DatagramCmIdTest, ALoopbackAddressIsTheDevicesOwn) {
  const uint32_t bound = server_.Create(1, RDMA_PS_TCP);
  ASSERT_EQ(server_.Bind(bound, Name("127.0.0.1", kPort)), 0);
  const sockaddr_in6 own = Name(kServer, kPort);
  const rdma_ucm_query_route_resp from = server_.Route(bound);
  EXPECT_EQ(std::memcmp(&from.src_addr, &own, sizeof(sockaddr_in)), 0);
  const uint32_t asking = server_.Create(2);
  server_.Resolve(asking, Name("127.0.0.1", kPort));
  const rdma_ucm_query_route_resp to = server_.Route(asking);
  EXPECT_EQ(std::memcmp(&to.dst_addr, &own, sizeof(sockaddr_in)), 0);
}

TEST_F(DatagramCmIdTest, APortOfConnectionsServesNoDatagrams) {
  const uint32_t connections = server_.Create(1, RDMA_PS_TCP);
  ASSERT_EQ(server_.Bind(connections, Name(kServer, kPort)), 0);
  ASSERT_EQ(server_.Listen(connections), 0);
  const uint32_t id = client_.Create(2);
  client_.Resolve(id, Name(kServer, kPort));
  ASSERT_EQ(client_.Connect(id), 0);
  Run();
  const auto answer = client_.Next();
  ASSERT_EQ(Program::KindOf(answer), CmEvent::kUnreachable);
  EXPECT_EQ(answer->status, static_cast<uint32_t>(soft::SidrStatus::kUnsupportedService));

  const uint32_t datagrams = server_.Create(3);
  ASSERT_EQ(server_.Bind(datagrams, Name(kServer, kPort)), 0);
  EXPECT_EQ(server_.Listen(datagrams), 0);
  const uint32_t second = server_.Create(4);
  ASSERT_EQ(server_.Bind(second, Name(kServer, kPort)), 0);
  EXPECT_EQ(server_.Listen(second), EADDRINUSE);
}

TEST_F(DatagramCmIdTest, ASilentPeerIsReportedToTheAskerInTheEnd) {
  const uint32_t id = client_.Create(2);
  client_.Resolve(id, Name("10.77.0.9", kPort));
  ASSERT_EQ(client_.Connect(id), 0);
  Run(base::Seconds(13));
  EXPECT_FALSE(client_.Next());
  Run(base::Seconds(2));
  const auto answer = client_.Next();
  ASSERT_EQ(Program::KindOf(answer), CmEvent::kUnreachable);
  EXPECT_EQ(static_cast<int32_t>(answer->status), -ETIMEDOUT);
}

TEST_F(DatagramCmIdTest, AnAskerMayGoBeforeItsAnswerComes) {
  const rdma_ucm_event_resp request = Ask();
  ASSERT_EQ(client_.Destroy(asking_), 0);
  ASSERT_EQ(server_.Accept(request.id, 0x1234), 0);
  Run(base::Seconds(60));
  EXPECT_FALSE(client_.Next());
}

TEST_F(DatagramCmIdTest, MorePrivateDataThanFitsIsRefused) {
  const uint32_t id = client_.Create(2);
  client_.Resolve(id, Name(kServer, kPort));
  EXPECT_EQ(client_.Connect(id, std::string(181, 'x')), EINVAL);
  EXPECT_EQ(client_.Connect(id, std::string(180, 'x')), 0);
}

TEST_F(DatagramCmIdTest, QueuePairsGetTheQkeyOfTheConnectionManager) {
  const uint32_t id = server_.Create(1);
  ib_uverbs_qp_attr attributes{};
  rdma_ucm_init_qp_attr request{};
  request.response = reinterpret_cast<uint64_t>(&attributes);
  request.id = id;
  request.qp_state = IBV_QPS_INIT;
  EXPECT_EQ(server_.Do(RDMA_USER_CM_CMD_INIT_QP_ATTR, request), EINVAL) << "of which device?";
  ASSERT_EQ(server_.Bind(id, Name(kServer, 0)), 0);
  ASSERT_EQ(server_.Do(RDMA_USER_CM_CMD_INIT_QP_ATTR, request), 0);
  EXPECT_EQ(attributes.qp_attr_mask,
            static_cast<uint32_t>(IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY));
  EXPECT_EQ(attributes.qkey, kServiceQkey);
  EXPECT_EQ(attributes.port_num, 1);
}

TEST_F(DatagramCmIdTest, JoiningAGroupReturnsHowToSendToIt) {
  const uint32_t id = client_.Create(2);
  uint32_t membership = 0;
  EXPECT_EQ(client_.Join(id, Name("239.1.2.3", 0), 7, &membership), EINVAL) << "by which device?";
  ASSERT_EQ(client_.Bind(id, Name(kClient, 0)), 0);
  EXPECT_EQ(client_.Join(id, Name("0.0.0.0", 0), 7, &membership), EINVAL);
  ASSERT_EQ(client_.Join(id, Name("239.1.2.3", 0), 7, &membership), 0);
  const auto joined = client_.Next();
  ASSERT_EQ(Program::KindOf(joined), CmEvent::kMulticastJoin);
  EXPECT_EQ(joined->uid, 7u);
  EXPECT_EQ(joined->id, membership);
  EXPECT_EQ(joined->param.ud.qp_num, kMulticastQueuePair);
  EXPECT_EQ(joined->param.ud.qkey, kServiceQkey);
  EXPECT_EQ(GidText(joined->param.ud.ah_attr.grh.dgid), "::ffff:239.1.2.3");

  uint32_t reported = 0;
  EXPECT_EQ(client_.Leave(membership, &reported), 0);
  EXPECT_EQ(reported, 1u);
  EXPECT_EQ(client_.Leave(membership, &reported), ENOENT);
  EXPECT_EQ(client_.Destroy(id, &reported), 0);
  EXPECT_EQ(reported, 1u);
}

TEST_F(DatagramCmIdTest, AMembershipGoesWithItsIdAndItsUnreadEvents) {
  const uint32_t id = client_.Create(2);
  ASSERT_EQ(client_.Bind(id, Name(kClient, 0)), 0);
  uint32_t first = 0;
  uint32_t second = 0;
  uint32_t reported = 0;
  ASSERT_EQ(client_.Join(id, Name("239.1.2.3", 0), 7, &first), 0);
  ASSERT_EQ(client_.Join(id, Name("239.1.2.4", 0), 8, &second), 0);
  EXPECT_EQ(client_.Leave(first, &reported), 0);
  EXPECT_EQ(reported, 0u);
  EXPECT_EQ(client_.Destroy(id), 0);
  EXPECT_FALSE(client_.Next());
  EXPECT_EQ(client_.Leave(second, &reported), ENOENT);
}

TEST_F(DatagramCmIdTest, AConnectedIdJoinsNoGroup) {
  const uint32_t id = client_.Create(2, RDMA_PS_TCP);
  ASSERT_EQ(client_.Bind(id, Name(kClient, 0)), 0);
  uint32_t membership = 0;
  EXPECT_EQ(client_.Join(id, Name("239.1.2.3", 0), 7, &membership), EINVAL);
}

}  // namespace
}  // namespace tokamak::verbs::kernel
