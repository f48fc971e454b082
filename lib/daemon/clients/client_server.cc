#include "lib/daemon/clients/client_server.h"

#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "lib/base/check.h"
#include "lib/base/log.h"
#include "lib/base/units.h"
#include "lib/client/protocol/frame.h"

namespace tokamak::daemon {

namespace {

// Above this a client gets no events: its answers still find room.
constexpr size_t kCongestedBytes = os::kMaxQueued / 4;

// Thins the log of repeated garbage to powers of ten.
bool IsWorthSaying(uint64_t count) {
  while (count % 10 == 0) count /= 10;
  return count == 1;
}

// Returns "pid 1234 python3".
std::string ProgramOf(pid_t pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/comm"));
  std::string name;
  std::getline(file, name);
  return absl::StrCat("pid ", pid, name.empty() ? "" : " ", name);
}

}  // namespace

absl::StatusOr<std::unique_ptr<ClientServer>> ClientServer::Listen(os::EpollLoop& loop, const std::string& path,
                                                                   const ClientServerOptions& options) {
  auto server = std::unique_ptr<ClientServer>(new ClientServer(loop, options));
  auto listener = os::UnixListener::Listen(
      loop, path, [server = server.get()](os::FileDescriptor socket) { server->Accept(std::move(socket)); },
      options.access);
  if (!listener.ok()) return listener.status();
  server->listener_ = *std::move(listener);
  return server;
}

ClientServer::~ClientServer() = default;

void ClientServer::Serve(const SessionContext& context, int arena, os::FileDescriptor read_only) {
  context_ = &context;
  departed_ = std::make_unique<Departed>(loop_, context.node.store());
  arena_ = arena;
  read_only_ = std::move(read_only);
}

void ClientServer::StopListening() { listener_.reset(); }

void ClientServer::Accept(os::FileDescriptor socket) {
  CHECK(context_ != nullptr) << "the loop ran before Serve";
  const os::PeerCredentials peer = os::PeerOf(socket.get());
  const std::string* const known = departed_->LabelOf(peer.pid);
  absl::StatusOr<ClientPrograms::Place> place = programs_.Enter(peer, known != nullptr ? *known : ProgramOf(peer.pid));
  if (!place.ok()) {
    ++counters_.refused;
    LOG_IF(WARNING, IsWorthSaying(counters_.refused))
        << "refused a connection of " << ProgramOf(peer.pid) << ": " << place.status().message() << "; "
        << counters_.refused << " refused so far";
    return Refuse(std::move(socket), place.status());
  }
  ++counters_.accepted;
  const uint64_t number = ++last_number_;
  Client& client = clients_[number];
  client.place = *std::move(place);
  client.connection = std::make_unique<os::UnixConnection>(
      loop_, std::move(socket), [this, number](os::Frame frame) { Handle(number, std::move(frame)); },
      [this, number](const absl::Status& why) { Drop(number, why); }, &client.place.share().memory);
  client.session = std::make_unique<Session>(
      *context_, client.place.label(),
      [this, number](const std::vector<uint8_t>& frame, Descriptors descriptors) { Send(number, frame, descriptors); },
      [this, number] { return Congested(number); }, &client.place.share());
  client.hello_deadline = loop_.RunAfter(options_.hello_deadline, [this, number] { DropSilent(number); });
}

void ClientServer::Refuse(os::FileDescriptor socket, const absl::Status& why) {
  if (refused_.size() >= kMaxRefused) refused_.erase(refused_.begin());
  const uint64_t number = ++last_number_;
  refused_[number].why = why;
  refused_[number].connection = std::make_unique<os::UnixConnection>(
      loop_, std::move(socket),
      [this, number](const os::Frame& frame) {
        const auto refused = refused_.find(number);
        const auto header = client::DecodeHeader(frame.body);
        if (refused == refused_.end()) return;
        if (!header.ok()) return EndRefused(number);
        // The client hangs up on reading this.
        refused->second.connection->Send(client::EncodeError(*header, refused->second.why), {});
      },
      [this, number](const absl::Status&) { EndRefused(number); }, &refused_memory_);
}

void ClientServer::EndRefused(uint64_t number) {
  const auto refused = refused_.find(number);
  if (refused == refused_.end()) return;
  refused_leaving_.push_back(std::move(refused->second));
  refused_.erase(refused);
  if (!bury_.armed()) bury_ = loop_.Post([this] { Bury(); });
}

void ClientServer::Handle(uint64_t number, os::Frame frame) {
  const auto client = clients_.find(number);
  if (client == clients_.end()) return;
  Session& session = *client->second.session;
  const absl::Status status = session.Handle(frame.body);
  if (!status.ok()) return Drop(number, status);
  if (session.greeted()) client->second.hello_deadline.Cancel();
}

void ClientServer::Send(uint64_t number, const std::vector<uint8_t>& frame, Descriptors descriptors) {
  const auto client = clients_.find(number);
  if (client == clients_.end()) return;
  std::vector<int> passed;
  if (descriptors != Descriptors::kNone) passed.push_back(read_only_.get());
  if (descriptors == Descriptors::kReadAndCreate) passed.push_back(arena_);
  client->second.connection->Send(frame, passed);
}

bool ClientServer::Congested(uint64_t number) const {
  const auto client = clients_.find(number);
  if (client == clients_.end()) return false;
  return client->second.connection->queued_bytes() > kCongestedBytes || client->second.place.share().memory.tight();
}

void ClientServer::Drop(uint64_t number, const absl::Status& why) {
  const auto client = clients_.find(number);
  if (client == clients_.end()) return;
  LOG(DEBUG) << "client " << number << " (pid " << client->second.connection->peer_pid() << ") is gone: " << why;
  CountEnd(client->second, why);
  client->second.hello_deadline.Cancel();
  leaving_.push_back(std::move(client->second));
  clients_.erase(client);
  if (!bury_.armed()) bury_ = loop_.Post([this] { Bury(); });
}

void ClientServer::DropSilent(uint64_t number) {
  const auto client = clients_.find(number);
  if (client == clients_.end()) return;
  ++counters_.silent;
  LOG_IF(WARNING, IsWorthSaying(counters_.silent))
      << "ended the connection of " << client->second.place.label() << ", which said no hello for "
      << base::FormatDuration(options_.hello_deadline) << "; " << counters_.silent << " such so far";
  Drop(number, absl::UnavailableError("it said no hello"));
}

void ClientServer::CountEnd(const Client& client, const absl::Status& why) {
  if (absl::IsUnavailable(why)) return;  // it left
  const bool stalled = absl::IsResourceExhausted(why);
  uint64_t& count = stalled ? counters_.stalled : counters_.protocol_errors;
  ++count;
  LOG_IF(WARNING, IsWorthSaying(count)) << "ended the connection of " << client.place.label() << ", which "
                                        << (stalled ? "has too much under way: " : "broke the protocol: ")
                                        << why.message() << "; " << count << " such so far";
}

void ClientServer::Bury() {
  for (const Client& client : leaving_) {
    departed_->Add(client.session->Leave(), client.connection->peer_pid(), client.place.label());
  }
  leaving_.clear();
  refused_leaving_.clear();
}

}  // namespace tokamak::daemon
