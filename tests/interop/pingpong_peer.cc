#include "tests/interop/pingpong_peer.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "lib/base/random.h"
#include "tests/support/hex.h"

namespace tokamak::interop {
namespace {

constexpr size_t kIntroduction = 52;  // with the 0
constexpr char kDone[] = "done";
constexpr uint32_t kReceives = 16;  // posted; one would do
constexpr uint32_t k24Bits = 0xffffff;
// Not drawn at random: a test is the same each time, and a queue pair of another number is another
// connection.
constexpr uint32_t kFirstPsn = 0xfffff0;  // numbers wrap around soon

absl::Status Failure(const char* what) {
  return absl::UnavailableError(absl::StrCat(what, ": ", std::strerror(errno)));
}

sockaddr_in ToSocket(const verbs::Address& address) {
  sockaddr_in socket{};
  socket.sin_family = AF_INET;
  socket.sin_port = htons(address.port);
  std::memcpy(&socket.sin_addr, address.ip.data() + 12, 4);
  return socket;
}

absl::StatusOr<os::FileDescriptor> MakeTcp(base::Duration patience) {
  os::FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return Failure("socket");
  const timeval limit = {patience.microseconds() / 1'000'000, patience.microseconds() % 1'000'000};
  for (const int option : {SO_RCVTIMEO, SO_SNDTIMEO}) {
    if (setsockopt(socket.get(), SOL_SOCKET, option, &limit, sizeof limit) != 0) return Failure("setsockopt");
  }
  const int yes = 1;
  if (setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0) return Failure("setsockopt");
  return socket;
}

}  // namespace

std::string ToText(const Introduction& introduction) {
  const std::string gid(introduction.address.ip.begin(), introduction.address.ip.end());
  return absl::StrFormat("%04x:%06x:%06x:%s", 0, introduction.number, introduction.psn, absl::BytesToHexString(gid));
}

absl::StatusOr<Introduction> ParseIntroduction(absl::string_view text) {
  const std::vector<absl::string_view> fields = absl::StrSplit(text.substr(0, text.find('\0')), ':');
  Introduction introduction;
  uint32_t lid = 0;
  const auto well_formed = [&] {
    if (fields.size() != 4 || fields[3].size() != 32) return false;
    if (!std::all_of(fields[3].begin(), fields[3].end(), absl::ascii_isxdigit)) return false;
    return absl::SimpleHexAtoi(fields[0], &lid) && absl::SimpleHexAtoi(fields[1], &introduction.number) &&
           absl::SimpleHexAtoi(fields[2], &introduction.psn) && introduction.number <= k24Bits &&
           introduction.psn <= k24Bits;
  };
  if (!well_formed()) return absl::InvalidArgumentError("what the peer said over TCP is not of ibv_rc_pingpong");
  const std::vector<uint8_t> gid = support::BytesOfHex(fields[3]);
  std::copy(gid.begin(), gid.end(), introduction.address.ip.begin());
  return introduction;
}

absl::StatusOr<Door> Door::Open(const verbs::Address& address, base::Duration patience) {
  auto socket = MakeTcp(patience);
  if (!socket.ok()) return socket.status();
  sockaddr_in place = ToSocket(address);
  socklen_t size = sizeof place;
  if (bind(socket->get(), reinterpret_cast<sockaddr*>(&place), size) != 0) return Failure("bind");
  if (listen(socket->get(), 1) != 0) return Failure("listen");
  if (getsockname(socket->get(), reinterpret_cast<sockaddr*>(&place), &size) != 0) return Failure("getsockname");
  return Door(*std::move(socket), ntohs(place.sin_port));
}

absl::StatusOr<os::FileDescriptor> Door::Admit() {
  // It has the time-outs of the socket that it came through.
  os::FileDescriptor tcp(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!tcp.valid()) return Failure("nobody connected over TCP");
  return tcp;
}

absl::StatusOr<os::FileDescriptor> Knock(const verbs::Address& door, base::Duration patience) {
  auto socket = MakeTcp(patience);
  if (!socket.ok()) return socket.status();
  const sockaddr_in place = ToSocket(door);
  if (connect(socket->get(), reinterpret_cast<const sockaddr*>(&place), sizeof place) != 0) return Failure("connect");
  return socket;
}

absl::StatusOr<std::unique_ptr<PingpongPeer>> PingpongPeer::Prepare(Link& link, const verbs::Address& address,
                                                                    const PingpongOptions& options) {
  if (!link.limits().manual_modify) return absl::UnimplementedError("this device cannot be connected by hand");
  std::unique_ptr<PingpongPeer> peer(new PingpongPeer(link, options));
  auto sent = link.Register(absl::MakeSpan(peer->sent_));
  if (!sent.ok()) return sent.status();
  auto received = link.Register(absl::MakeSpan(peer->received_));
  if (!received.ok()) return received.status();
  peer->sent_region_ = *std::move(sent);
  peer->received_region_ = *std::move(received);
  peer->own_.number = link.number();
  peer->own_.psn = kFirstPsn;
  peer->own_.address = address;
  for (uint32_t i = 0; i < kReceives; ++i) {
    const verbs::Sge piece = {peer->received_.data(), options.size, peer->received_region_->lkey()};
    if (auto s = link.PostReceive(piece); !s.ok()) return s;
  }
  return peer;
}

absl::Status PingpongPeer::Serve(const os::FileDescriptor& tcp) {
  const auto peer = Hear(tcp);
  if (!peer.ok()) return peer.status();
  if (auto s = Walk(*peer); !s.ok()) return s;
  if (auto s = Say(tcp); !s.ok()) return s;
  char done[sizeof kDone];
  if (recv(tcp.get(), done, sizeof done, MSG_WAITALL) != sizeof done) return Failure("the client did not say done");
  for (uint32_t i = 0; i < options_.count; ++i) {
    if (auto s = AwaitNext(/*first=*/i == 0); !s.ok()) return s;
    if (auto s = SendNext(); !s.ok()) return s;
  }
  Settle();
  return absl::OkStatus();
}

absl::Status PingpongPeer::Ask(const os::FileDescriptor& tcp) {
  if (auto s = Say(tcp); !s.ok()) return s;
  const auto peer = Hear(tcp);
  if (!peer.ok()) return peer.status();
  if (send(tcp.get(), kDone, sizeof kDone, MSG_NOSIGNAL) != sizeof kDone) return Failure("send");
  if (auto s = Walk(*peer); !s.ok()) return s;
  for (uint32_t i = 0; i < options_.count; ++i) {
    if (auto s = SendNext(); !s.ok()) return s;
    if (auto s = AwaitNext(/*first=*/false); !s.ok()) return s;
  }
  Settle();
  return absl::OkStatus();
}

// The last message has arrived, or the peer, which leaves when it has it, is gone before its
// acknowledgement came.
void PingpongPeer::Settle() { link_.AwaitSends().IgnoreError(); }

absl::StatusOr<Introduction> PingpongPeer::Hear(const os::FileDescriptor& tcp) {
  char text[kIntroduction];
  if (recv(tcp.get(), text, sizeof text, MSG_WAITALL) != sizeof text)
    return Failure("the peer did not introduce itself");
  return ParseIntroduction({text, sizeof text});
}

absl::Status PingpongPeer::Say(const os::FileDescriptor& tcp) {
  std::string text = ToText(own_);
  text.resize(kIntroduction);
  const ssize_t said = send(tcp.get(), text.data(), text.size(), MSG_NOSIGNAL);
  return said == static_cast<ssize_t>(text.size()) ? absl::OkStatus() : Failure("send");
}

absl::Status PingpongPeer::Walk(const Introduction& peer) {
  verbs::QueuePairAttributes attributes;
  attributes.peer = peer.address;
  attributes.peer_number = peer.number;
  attributes.receive_psn = peer.psn;
  attributes.send_psn = own_.psn;
  attributes.path_mtu = options_.path_mtu;
  return link_.WalkByHand(attributes);
}

absl::Status PingpongPeer::SendNext() {
  if (auto s = link_.AwaitSends(); !s.ok()) return s;  // sent_ is ours again
  if (options_.echo) {
    sent_ = received_;
  } else {
    base::Random random(++seed_);
    std::generate(sent_.begin(), sent_.end(), [&] { return static_cast<uint8_t>(random.Next()); });
  }
  return link_.PostSend({}, {sent_.data(), options_.size, sent_region_->lkey()});
}

// The first that a server receives is the client's own.
absl::Status PingpongPeer::AwaitNext(bool first) {
  const auto completion = link_.AwaitReceive();
  if (!completion.ok()) return completion.status();
  if (completion->byte_count != options_.size) {
    return absl::DataLossError(absl::StrCat("a message of ", completion->byte_count, " bytes, not ", options_.size));
  }
  const auto differs = std::mismatch(sent_.begin(), sent_.end(), received_.begin());
  if (!first && !options_.echo && differs.first != sent_.end()) {
    return absl::DataLossError(absl::StrCat("message ", seed_, ": byte ", differs.first - sent_.begin(),
                                            " came back as ", int{*differs.second}, ", not ", int{*differs.first}));
  }
  return link_.PostReceive({received_.data(), options_.size, received_region_->lkey()});
}

}  // namespace tokamak::interop
