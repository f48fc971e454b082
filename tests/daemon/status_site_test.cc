// The parts of --http: questions to a loop, an HTTP server with bounds, and the pages.
#include "lib/daemon/watch/status_site.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "lib/daemon/flags/options.h"
#include "lib/daemon/watch/loop_desk.h"
#include "lib/daemon/watch/metrics.h"
#include "lib/os/epoll_loop.h"
#include "lib/os/file_descriptor.h"
#include "lib/os/loop_thread.h"
#include "nlohmann/json.hpp"

namespace tokamak::daemon {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr std::chrono::milliseconds kSitePatience(60000);

// ---- LoopDesk

class LoopDeskTest : public testing::Test {
 protected:
  LoopDeskTest() {
    thread_.CallOn([&] { desk_ = std::make_unique<LoopDesk>(thread_.loop()); });
  }
  ~LoopDeskTest() override {
    thread_.CallOn([&] { desk_.reset(); });
  }

  os::LoopThread thread_{os::ThreadOptions{"desk", {}}};
  std::unique_ptr<LoopDesk> desk_;
};

TEST_F(LoopDeskTest, AnswersAtOnceAndLater) {
  EXPECT_EQ(desk_->Ask<int>(
                [](const std::function<void(int)>& answer) -> base::Pending {
                  answer(7);
                  return nullptr;
                },
                kSitePatience),
            7);
  struct Later final : base::Handle {
    base::Timer timer;
  };
  EXPECT_EQ(desk_->Ask<std::string>(
                [&](std::function<void(std::string)> answer) -> base::Pending {
                  auto later = std::make_unique<Later>();
                  later->timer = thread_.loop().RunAfter(base::Milliseconds(1), [answer] { answer("later"); });
                  return later;
                },
                kSitePatience),
            "later");
}

TEST_F(LoopDeskTest, AQuestionThatWaitsTooLongGoesUnanswered) {
  const auto never = [](const std::function<void(int)>&) -> base::Pending { return nullptr; };
  EXPECT_EQ(desk_->Ask<int>(never, std::chrono::milliseconds(1)), std::nullopt);
}

TEST_F(LoopDeskTest, WaitingQuestionsAreBounded) {
  const auto never = [](const std::function<void(int)>&) -> base::Pending { return nullptr; };
  for (size_t i = 0; i < LoopDesk::kMaxQuestions; ++i) {
    EXPECT_EQ(desk_->Ask<int>(never, std::chrono::milliseconds(0)), std::nullopt);
  }
  EXPECT_EQ(desk_->Ask<int>(never, kSitePatience), std::nullopt) << "at once";
}

TEST_F(LoopDeskTest, ClosingEndsTheWait) {
  std::atomic<bool> asked{false};
  std::thread asker([&] {
    const auto never = [&](const std::function<void(int)>&) -> base::Pending {
      asked = true;
      return nullptr;
    };
    EXPECT_EQ(desk_->Ask<int>(never, kSitePatience), std::nullopt);
  });
  while (!asked) std::this_thread::yield();
  thread_.CallOn([&] { desk_->Close(); });
  asker.join();
  EXPECT_EQ(desk_->Ask<int>([](const std::function<void(int)>&) -> base::Pending { return nullptr; }, kSitePatience),
            std::nullopt);
}

// ---- HttpServer

class HttpServerTest : public testing::Test {
 protected:
  HttpServerTest() {
    auto hosts = std::make_shared<HttpHosts>();
    hosts->Add("x");
    auto server = HttpServer::Start({"127.0.0.1", 0}, hosts, [](absl::string_view path) {
      return HttpAnswer{200, "text/plain", absl::StrCat("at ", path)};
    });
    CHECK(server.ok()) << server.status();
    server_ = *std::move(server);
    const std::vector<std::string> parts = absl::StrSplit(server_->url(), absl::ByAnyChar(":/"));
    port_ = static_cast<uint16_t>(std::stoi(parts[4]));
  }

  os::FileDescriptor Connect(const char* from = "127.0.0.1") const {
    os::FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in own{};
    own.sin_family = AF_INET;
    own.sin_addr.s_addr = inet_addr(from);
    CHECK_EQ(bind(socket.get(), reinterpret_cast<const sockaddr*>(&own), sizeof own), 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port_);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK_EQ(connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    return socket;
  }
  static void Send(const os::FileDescriptor& socket, const std::string& text) {
    (void)!send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL);  // it may have ended meanwhile
  }
  // Until the server ends the connection.
  static std::string Rest(const os::FileDescriptor& socket) {
    std::string all;
    char some[4096];
    for (ssize_t size; (size = recv(socket.get(), some, sizeof some, 0)) > 0;) all.append(some, size);
    return all;
  }
  std::string Ask(const std::string& request) const {
    const os::FileDescriptor socket = Connect();
    Send(socket, request);
    return Rest(socket);
  }

  std::unique_ptr<HttpServer> server_;
  uint16_t port_ = 0;
};

TEST_F(HttpServerTest, AnswersGetAndHeadAndNothingElse) {
  const std::string got = Ask("GET /a%20b?c=d HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(got, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(got, HasSubstr("\r\nContent-Security-Policy: default-src 'none'; "));
  EXPECT_THAT(got, testing::EndsWith("\r\n\r\nat /a b"));
  const std::string head = Ask("HEAD / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(head, HasSubstr("\r\nContent-Length: 4\r\n"));
  EXPECT_THAT(head, testing::EndsWith("\r\n\r\n"));
  for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS"}) {
    const std::string answer = Ask(absl::StrCat(method, " / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"));
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 405 ")) << method;
  }
}

TEST_F(HttpServerTest, ARequestThatIsTooLongIsRefused) {
  const std::string long_header(2 * HttpServer::kMaxRequestBytes, 'x');
  const std::string answer = Ask(absl::StrCat("GET / HTTP/1.1\r\nHost: x\r\nX: ", long_header, "\r\n\r\n"));
  EXPECT_THAT(answer, testing::Not(HasSubstr("at /")));
  EXPECT_THAT(Ask("nothing that is HTTP\r\n\r\n"), testing::Not(HasSubstr("at /")));
  EXPECT_THAT(Ask("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), HasSubstr("at /")) << "and others are served";
}

TEST_F(HttpServerTest, AClientWithHalfARequestIsDroppedAtTheDeadline) {
  std::vector<os::FileDescriptor> slow;
  for (int i = 0; i < 2 * HttpServer::kThreads; ++i) {
    slow.push_back(Connect());
    Send(slow.back(), "GET / HTTP/1.1\r\nHost:");
  }
  EXPECT_THAT(Ask("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), HasSubstr("at /"));
  EXPECT_THAT(Rest(slow.front()), testing::Not(HasSubstr("at /")));
}

TEST_F(HttpServerTest, AnAskerIsAnsweredHoweverManyClientsAreSilent) {
  std::vector<os::FileDescriptor> silent;
  for (size_t i = 0; i < 3 * HttpServer::kMaxConnections; ++i) silent.push_back(Connect());
  const auto before = std::chrono::steady_clock::now();
  EXPECT_THAT(Ask("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), HasSubstr("at /"));
  EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds(30)) << "not after the others' deadlines";
  EXPECT_EQ(Rest(silent.front()), "") << "the oldest gave way";
}

TEST_F(HttpServerTest, OneAddressDoesNotTakeThePlacesOfOthers) {
  std::vector<os::FileDescriptor> greedy;
  const os::FileDescriptor other = Connect("127.0.0.2");
  for (size_t i = 0; i < 2 * HttpServer::kMaxConnections; ++i) greedy.push_back(Connect());
  EXPECT_EQ(Rest(greedy.front()), "");
  Send(other, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(Rest(other), HasSubstr("at /")) << "it was there before them, and still is";
}

TEST_F(HttpServerTest, AMalformedRequestIsReported) {
  for (const char* request : {"GET /a%00b HTTP/1.1\r\n\r\n", "GET /%zz HTTP/1.1\r\n\r\n", "GET a HTTP/1.1\r\n\r\n",
                              "GET /a\r\n\r\n", "\r\n\r\n", "GET /a b\x01 HTTP/1.1\r\n\r\n"}) {
    EXPECT_THAT(Ask(request), StartsWith("HTTP/1.1 400 ")) << request;
  }
  EXPECT_THAT(Ask("GET /a HTTP/1.0\n\n"), testing::EndsWith("at /a"));
}

// As after DNS rebinding: a browser asks this machine by the name of somebody's web site.
TEST_F(HttpServerTest, ARequestByAForeignHostNameIsRefused) {
  for (const char* host : {"evil.example", "evil.example:9464", "x.evil.example", "127.0.0.1.evil.example", "[x]"}) {
    const std::string answer = Ask(absl::StrCat("GET /a HTTP/1.1\r\nHost: ", host, "\r\n\r\n"));
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 421 Misdirected Request\r\n")) << host;
    EXPECT_THAT(answer, HasSubstr(absl::StrCat("\r\n\r\n", host, " is not known"))) << host;
    EXPECT_THAT(answer, HasSubstr("--http-host")) << host;
    EXPECT_EQ(answer.find("at /a"), std::string::npos) << host;
  }
  for (const char* host : {"x", "X:80", "localhost:9464", "127.0.0.1", "10.1.2.3:1", "[::1]:9464"}) {
    EXPECT_THAT(Ask(absl::StrCat("GET /a HTTP/1.1\r\nhost:  ", host, " \r\n\r\n")), testing::EndsWith("at /a")) << host;
  }
}

TEST_F(HttpServerTest, AnAmbiguousHostIsRefused) {
  for (const char* headers : {"Host: x\r\nHost: evil.example", "Host: x\r\nhost: x", "Host : x", " Host: x",
                              "Host:", "Host: x y", "Host: x\x01", "Host"}) {
    EXPECT_THAT(Ask(absl::StrCat("GET /a HTTP/1.1\r\n", headers, "\r\n\r\n")), StartsWith("HTTP/1.1 400 ")) << headers;
  }
}

TEST(HttpHostsTest, AddressesLocalhostAndGivenNamesAreKnown) {
  HttpHosts hosts;
  hosts.Add("Node1.cluster.example");
  hosts.Add("");
  for (const char* known : {"node1.cluster.example", "NODE1.cluster.example.:9464", "localhost", "LocalHost.",
                            "1.2.3.4", "1.2.3.4:80", "[::ffff:1.2.3.4]:80", "node1.cluster.example:"}) {
    EXPECT_TRUE(hosts.Allows(known)) << known;
  }
  for (const char* unknown : {"", ":", ":80", "node1", "cluster.example", "node1.cluster.example:x", "::1", "[::1",
                              "[::1]x", "[::1]:x", "[]", "localhost.evil.example", "1.2.3.4.example"}) {
    EXPECT_FALSE(hosts.Allows(unknown)) << unknown;
  }
}

TEST(HttpHostsTest, ANameIsGivenWithoutSchemeAndPort) {
  for (const char* good : {"grafana.example", "tokd-1", "a_b", "10.0.0.1"}) EXPECT_TRUE(HttpHosts::Check(good).ok());
  for (const char* wrong : {"", "http://a", "a:80", "a b", "[::1]", "*.example"}) {
    EXPECT_FALSE(HttpHosts::Check(wrong).ok()) << wrong;
  }
}

TEST_F(HttpServerTest, ListensAtAnAddressOfIpv6AsWell) {
  auto server = HttpServer::Start({"::1", 0}, std::make_shared<HttpHosts>(), [](absl::string_view) {
    return HttpAnswer{200, "text/plain", "over IPv6"};
  });
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_THAT((*server)->url(), StartsWith("http://[::1]:"));
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_addr = in6addr_loopback;
  address.sin6_port = htons(static_cast<uint16_t>(std::stoi((*server)->url().substr(13))));
  const os::FileDescriptor socket(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  Send(socket, "GET / HTTP/1.1\r\n\r\n");
  EXPECT_THAT(Rest(socket), testing::EndsWith("over IPv6"));
}

TEST_F(HttpServerTest, ATakenPortIsReported) {
  const auto second = HttpServer::Start({"127.0.0.1", port_}, std::make_shared<HttpHosts>(),
                                        [](absl::string_view) { return HttpAnswer(); });
  ASSERT_FALSE(second.ok());
  EXPECT_THAT(std::string(second.status().message()),
              StartsWith(absl::StrCat("--http: cannot listen at 127.0.0.1:", port_)));
}

TEST(HttpAddressTest, AnAddressIsAPortAloneOrWithAHost) {
  EXPECT_EQ(ParseHttpAddress("9464")->ToString(), "127.0.0.1:9464");
  EXPECT_EQ(*ParseHttpAddress("0"), (base::HostPort{"127.0.0.1", 0}));
  EXPECT_EQ(ParseHttpAddress("10.0.0.1:80")->ToString(), "10.0.0.1:80");
  EXPECT_EQ(ParseHttpAddress("[::1]:9464")->ToString(), "[::1]:9464");
  for (const char* wrong : {"", "x", "localhost:80", "10.0.0.1", ":80", "99999", "1.2.3.4:99999"}) {
    EXPECT_FALSE(ParseHttpAddress(wrong).ok()) << wrong;
  }
}

// ---- What is shown of a node

class StatusSiteTest : public LoopDeskTest {
 protected:
  StatusSiteTest()
      : site_(*desk_, {[this] { return snapshot_; },
                       [this](const node::ClusterView::Callback& done) -> base::Pending {
                         done(view_);
                         return nullptr;
                       },
                       [this](const HotObjects::Done& done) -> base::Pending {
                         ++looks_;
                         done(hot_);
                         return nullptr;
                       }}) {
    snapshot_.node = "node1";
    snapshot_.joined = true;
  }

  NodeSnapshot snapshot_;
  node::ClusterView::View view_;
  HotObjects::Report hot_;
  int looks_ = 0;
  StatusSite site_;
};

TEST_F(StatusSiteTest, ReadinessNamesWhatIsMissing) {
  EXPECT_EQ(site_.Get("/healthz").body, "ok\n");
  EXPECT_EQ(site_.Get("/readyz").status, 200);
  snapshot_.directory_away = true;
  EXPECT_EQ(site_.Get("/readyz").status, 503);
  EXPECT_EQ(site_.Get("/readyz").body, "the directory is out of reach\n");
  snapshot_.fenced = true;
  EXPECT_THAT(site_.Get("/readyz").body, StartsWith("fenced: "));
  snapshot_.draining = true;
  EXPECT_THAT(site_.Get("/readyz").body, StartsWith("draining: "));
  EXPECT_EQ(site_.Get("/healthz").status, 200) << "it is alive";
  snapshot_ = NodeSnapshot();
  EXPECT_EQ(site_.Get("/readyz").body, "the directory has not answered yet\n");
}

TEST_F(StatusSiteTest, AMissingLoopIsUnhealthy) {
  thread_.CallOn([&] { desk_->Close(); });
  for (const char* path : {"/healthz", "/readyz", "/metrics", "/api/node", "/api/nodes", "/api/objects"}) {
    EXPECT_EQ(site_.Get(path).status, 503) << path;
  }
  EXPECT_EQ(site_.Get("/").status, 200) << "a file";
  EXPECT_EQ(site_.Get("/..").status, 404);
  EXPECT_EQ(site_.Get("").status, 404);
}

TEST_F(StatusSiteTest, LatencyIsAHistogramByProtocolAndSize) {
  snapshot_.latency.Add(node::Via::kEager, 4096, base::Microseconds(250));
  snapshot_.latency.Add(node::Via::kEager, 4097, base::Seconds(60));
  const std::string text = site_.Get("/metrics").body;
  const std::string name = "\ntokamak_get_duration_seconds";
  EXPECT_THAT(text, HasSubstr(name + "_bucket{protocol=\"eager\",size=\"4KiB\",le=\"0.0001\"} 0\n"));
  EXPECT_THAT(text, HasSubstr(name + "_count{protocol=\"eager\",size=\"4KiB\"} 1\n"));
  EXPECT_THAT(text, HasSubstr(name + "_bucket{protocol=\"eager\",size=\"64KiB\",le=\"10\"} 0\n"));
  EXPECT_THAT(text, HasSubstr(name + "_bucket{protocol=\"eager\",size=\"64KiB\",le=\"+Inf\"} 1\n"));
  EXPECT_THAT(text, HasSubstr(name + "_sum{protocol=\"eager\",size=\"64KiB\"} 60\n"));
}

TEST_F(StatusSiteTest, TheNodeHasTheNumbersOfTheTable) {
  snapshot_.store.used_bytes = 7;
  snapshot_.store.evicted_pulled.objects = 1;
  snapshot_.store.evicted_created_here.objects = 2;
  snapshot_.clients = 3;
  snapshot_.pulls.pulled = 4;
  snapshot_.engines.resize(2);
  for (transport::EndpointCounters& engine : snapshot_.engines) {
    engine.bytes_pulled[static_cast<size_t>(transport::Protocol::kWrite)] += 50;
  }
  const nlohmann::json node = nlohmann::json::parse(site_.Get("/api/node").body);
  EXPECT_EQ(node["store"]["used_bytes"], 7);
  EXPECT_EQ(node["store"]["evicted_total"], 3);
  for (const char* name : {"capacity_bytes", "kept_bytes", "quarantined_bytes", "sealed_objects", "pinned_objects"}) {
    EXPECT_EQ(node["store"][name], 0) << name;
  }
  EXPECT_EQ(node["clients"], 3);
  EXPECT_EQ(node["pulls_running"], 0);
  EXPECT_EQ(node["pins_of_peers"], 0);
  EXPECT_EQ(node["pulled_objects_total"], 4);
  EXPECT_EQ(node["came_bytes"], (nlohmann::json{{"eager", 0}, {"read", 0}, {"write", 100}}));
}

TEST_F(StatusSiteTest, ObjectsHaveTheirNames) {
  hot_.objects.resize(2);
  hot_.objects[0].id = base::ObjectId::FromName("weights/7");
  hot_.objects[0].name = *base::ObjectName::For(hot_.objects[0].id, "weights/7");
  const nlohmann::json objects = nlohmann::json::parse(site_.Get("/api/objects").body)["objects"];
  EXPECT_EQ(objects[0]["name"], "weights/7");
  EXPECT_EQ(objects[0]["id"], base::ObjectId::FromName("weights/7").ToHex());
  EXPECT_EQ(objects[1]["name"], "");
}

TEST_F(StatusSiteTest, ReportsOfOthersStayValidJson) {
  store::OwnerUsage usage;
  usage.label = "pid 1 </script>\xff\"";
  snapshot_.programs = {usage};
  node::ClusterView::Entry peer;
  peer.node.id = "peer";
  peer.node.device = "\x80<img src=x>";
  view_.nodes = {peer};
  EXPECT_EQ(nlohmann::json::parse(site_.Get("/api/node").body)["programs"].size(), 1u);
  EXPECT_EQ(nlohmann::json::parse(site_.Get("/api/nodes").body)["nodes"][0]["node"], "peer");
}

TEST_F(StatusSiteTest, NodesAreShownWithStatesNumbersAndLinksToTheirPages) {
  const auto entry = [](const std::string& name, const std::string& engine, const std::string& page) {
    node::ClusterView::Entry one;
    one.node = {name, 1, {engine}, "soft", 4096};
    one.numbers = node::NodeNumbers{page, {{"store_used_bytes", 7}}};
    return one;
  };
  view_.located = true;
  view_.nodes = {entry("node1", "127.0.0.1:7000", "127.0.0.1:1"), entry("node2", "127.0.0.2:7000", "127.0.0.1:2"),
                 entry("node3", "127.0.0.3:7000", "")};
  view_.nodes.push_back({{"node4", 1, {"127.0.0.4:7000"}, "soft", 4096},
                         node::NodeState::kSuspected,
                         base::Milliseconds(6500),
                         std::nullopt});
  const nlohmann::json all = nlohmann::json::parse(site_.Get("/api/nodes").body);
  EXPECT_EQ(all["located"], true);
  EXPECT_EQ(all["nodes"][0]["is_this"], true);
  EXPECT_EQ(all["nodes"][0]["page"], "") << "that is this one";
  EXPECT_EQ(all["nodes"][1]["page"], "http://127.0.0.1:2/");
  EXPECT_EQ(all["nodes"][1]["numbers"]["store_used_bytes"], 7);
  EXPECT_EQ(all["nodes"][1]["state"], "alive");
  EXPECT_EQ(all["nodes"][2]["page"], "");
  EXPECT_EQ(all["nodes"][3]["state"], "suspected");
  EXPECT_EQ(all["nodes"][3]["unheard_seconds"], 6.5);
  EXPECT_TRUE(all["nodes"][3]["numbers"].empty());
}

TEST_F(StatusSiteTest, OneScanOfTheObjectsServesManyViewers) {
  hot_.objects.resize(2);
  hot_.seen = 5;
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(nlohmann::json::parse(site_.Get("/api/objects").body)["objects"].size(), 2u);
  }
  EXPECT_LT(looks_, 5);
}

}  // namespace
}  // namespace tokamak::daemon
