#include "lib/verbs/soft/cm/connection_manager.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/check.h"

namespace tokamak::verbs::soft {
namespace {

using Phase = ConnectionPhase;

static_assert(kMadLength == kMadSize);

// Cookies and peers' answers are good for their period and the next.
constexpr base::Duration kCookiePeriod = base::Seconds(8);

uint64_t CookiePeriod(base::Time now) {
  return static_cast<uint64_t>((now - base::Time()).picoseconds() / kCookiePeriod.picoseconds());
}

Address WithPort(const Address& address, uint16_t port) {
  Address with = address;
  with.port = port;
  return with;
}

AnyData ToAnyData(absl::Span<const uint8_t> bytes) {
  AnyData data{};
  std::copy(bytes.begin(), bytes.end(), data.begin());
  return data;
}

// A GUID distinguishes hosts: two devices with one seed must not share it.
uint64_t MakeGuid(Management& nic) REQUIRES_NIC_MUTEX {
  uint64_t guid = nic.numbers().Next();
  for (const uint8_t byte : nic.address().ip) guid = (guid ^ byte) * 0x100000001b3;
  return guid;
}

}  // namespace

SoftConnectionManager::SoftConnectionManager(Management& nic)
    : nic_(nic), ca_guid_(MakeGuid(nic)), listeners_(nic, PortSpace::kTcp), services_(nic) {}

SoftConnectionManager::~SoftConnectionManager() = default;

absl::StatusOr<std::unique_ptr<Listener>> SoftConnectionManager::Listen(base::EventLoop& loop, const Address& address,
                                                                        RequestHandler handler) {
  NicLock lock(nic_.mutex());
  if ((address.ip != nic_.address().ip && !address.is_unspecified()) ||
      DeviceAt(address, nic_.address()).udp_port != 0) {
    return absl::InvalidArgumentError(absl::StrCat("cannot listen at ", address.ToString(),
                                                   ": this device's address is ", nic_.address().ToString()));
  }
  const absl::StatusOr<uint16_t> port = listeners_.Choose(address.port);
  if (!port.ok()) return port.status();
  auto listener =
      std::make_unique<SoftListener>(nic_.Share(), *this, loop, WithPort(nic_.address(), *port), std::move(handler));
  listeners_.Add(*port, *listener);
  return listener;
}

absl::StatusOr<std::unique_ptr<Connection>> SoftConnectionManager::Connect(QueuePair& queue_pair,
                                                                           const Address& address,
                                                                           const ConnectOptions& options,
                                                                           ConnectionHandler handler) {
  NicLock lock(nic_.mutex());
  const uint32_t number = queue_pair.number();
  if (absl::Status status = CheckOptions(options); !status.ok()) return status;
  if (absl::Status status = CheckQueuePair(number); !status.ok()) return status;
  if (absl::Status status = CheckPeer(address, nic_.address()); !status.ok()) return status;
  ConnectionRecord& record = AddAsker(address);
  auto handle = MakeHandle(record, number, address, std::move(handler));
  Apply(record, record.state.Connect(MakeOffer(number, options)));
  return handle;
}

ConnectionRecord& SoftConnectionManager::AddAsker(const Address& address) {
  ConnectionState::Identity identity;
  identity.local = WithPort(nic_.address(), AnyPort(nic_.numbers()));
  identity.peer = address;
  identity.ca_guid = ca_guid_;
  identity.local_id = NewLocalId();
  identity.transaction = nic_.numbers().Next();
  return AddRecord(ConnectionState(identity), DeviceAt(address, nic_.address()));
}

// ---- Connections in messages alone.

absl::StatusOr<uint16_t> SoftConnectionManager::ListenOutside(ConnectionListener& listener, uint16_t port) {
  const absl::StatusOr<uint16_t> taken = listeners_.Choose(port);
  if (taken.ok()) listeners_.Add(*taken, listener);
  return taken;
}

absl::Status SoftConnectionManager::ConnectOutside(ConnectionOwner& owner, const Address& address,
                                                   const ConnectionOffer& offer) {
  if (absl::Status status = CheckPeer(address, nic_.address()); !status.ok()) return status;
  ConnectionRecord& record = AddAsker(address);
  owner.key = record.key;
  record.owner = &owner;
  record.outside = offer.queue_pair;
  Apply(record, record.state.Connect(offer));
  return absl::OkStatus();
}

absl::Status SoftConnectionManager::AcceptOutside(uint64_t request, ConnectionOwner& owner,
                                                  const ConnectionOffer& offer) {
  ConnectionRecord* const record = table_.Get(request);
  if (record == nullptr || record->state.phase() != Phase::kReqReceived) {
    return absl::CancelledError("the peer does not wait for this connection any more");
  }
  owner.key = record->key;
  record->owner = &owner;
  record->outside = offer.queue_pair;
  Apply(*record, record->state.Accept(offer));
  return absl::OkStatus();
}

absl::Status SoftConnectionManager::ConfirmOutside(ConnectionOwner& owner) {
  ConnectionRecord* const record = table_.Get(owner.key);
  if (record == nullptr || record->state.phase() != Phase::kRepReceived) {
    return absl::FailedPreconditionError("no answer waits to be confirmed");
  }
  Apply(*record, record->state.Confirm());
  return absl::OkStatus();
}

void SoftConnectionManager::RejectOutside(uint64_t request, const RejMad& rej) {
  ConnectionRecord* const record = table_.Get(request);
  if (record == nullptr || record->state.phase() != Phase::kReqReceived) return;
  RejMad answer = rej;
  answer.remote_id = record->state.req().local_id;
  Apply(*record, record->state.Reject(answer));
}

uint32_t SoftConnectionManager::NewPsn() { return static_cast<uint32_t>(nic_.numbers().Next()) & kPsnMask; }

absl::StatusOr<std::unique_ptr<Connection>> SoftConnectionManager::Accept(uint64_t key, QueuePair& queue_pair,
                                                                          const ConnectOptions& options,
                                                                          ConnectionHandler handler) {
  NicLock lock(nic_.mutex());
  ConnectionRecord* const record = table_.Get(key);
  if (record == nullptr || record->state.phase() != Phase::kReqReceived) {
    return absl::CancelledError("the peer does not wait for this connection any more");
  }
  const uint32_t number = queue_pair.number();
  if (absl::Status status = CheckOptions(options); !status.ok()) return status;
  if (absl::Status status = CheckQueuePair(number); !status.ok()) return status;
  const ConnectionOffer offer = MakeOffer(number, options);
  const Address peer = record->state.identity().peer;
  if (const uint32_t mtu = record->state.path_mtu(); mtu > offer.max_path_mtu) {
    Apply(*record, record->state.Reject(MakeMtuRej(record->state.req(), offer.max_path_mtu)));
    return absl::FailedPreconditionError(absl::StrCat(peer.ToString(), " asked for path MTU ", mtu, ", more than ",
                                                      offer.max_path_mtu, ": it was told to ask again for less"));
  }
  auto handle = MakeHandle(*record, number, peer, std::move(handler));
  Apply(*record, record->state.Accept(offer));
  return handle;
}

void SoftConnectionManager::Reject(uint64_t key, const UserData& private_data) {
  ConnectionRecord* const record = table_.Get(key);
  if (record == nullptr || record->state.phase() != Phase::kReqReceived) return;
  RejMad rej = MakeRej(record->state.req(), RejectReason::kConsumer);
  std::copy(private_data.begin(), private_data.end(), rej.private_data.begin());
  Apply(*record, record->state.Reject(rej));
}

void SoftConnectionManager::Forget(ConnectionOwner& owner) {
  ConnectionRecord* const record = table_.Get(owner.key);
  if (record == nullptr) return;
  record->owner = nullptr;
  Apply(*record, record->state.Drop());
}

void SoftConnectionManager::Forget(ConnectionListener& listener) {
  listeners_.Erase(listener.listens_at().port);
  const std::set<uint64_t> unanswered = listener.unanswered;
  const std::set<uint64_t> unknown(listener.waiting.begin(), listener.waiting.end());
  for (const uint64_t key : unanswered) {
    ConnectionRecord& record = *CHECK_NOTNULL(table_.Get(key));
    record.listener = nullptr;
    if (unknown.count(key) == 0) continue;  // the application still answers it
    Apply(record, record.state.Reject(MakeRej(record.state.req(), RejectReason::kInvalidServiceId)));
  }
}

std::optional<PendingRequest> SoftConnectionManager::TakeRequest(ConnectionListener& listener) {
  if (listener.waiting.empty()) return std::nullopt;
  const ConnectionRecord& record = *CHECK_NOTNULL(table_.Get(listener.waiting.front()));
  listener.waiting.pop_front();
  PendingRequest request;
  request.key = record.key;
  request.peer = record.state.identity().peer;
  request.req = record.state.req();
  SplitPrivateData(record.state.req().private_data, &request.private_data).IgnoreError();  // checked before
  return request;
}

// ---- From the network and the NIC.

DatagramResult SoftConnectionManager::OnMad(const Packet& packet) {
  MadBytes bytes;
  size_t length = 0;
  if (packet.payload_length() != bytes.size()) return DatagramResult::kNoMessage;
  for (uint32_t i = 0; i < packet.slices; ++i) {
    const PayloadSlice& slice = packet.payload[i];
    std::copy_n(slice.data, slice.length, bytes.begin() + length);
    length += slice.length;
  }
  const absl::StatusOr<Mad> mad = DecodeMad(bytes);
  if (!mad.ok()) return DatagramResult::kNoMessage;  // strangers' noise, which a kernel ignores, too
  const Address peer = DeviceAt(FromFabricAddress(packet.peer), nic_.address());
  if (std::holds_alternative<ReqMad>(mad->body)) return OnReq(peer, *mad);
  if (const auto* req = std::get_if<SidrReqMad>(&mad->body)) return services_.OnRequest(peer, mad->transaction, *req);
  if (const auto* rep = std::get_if<SidrRepMad>(&mad->body)) {
    services_.OnAnswer(peer, mad->transaction, *rep);
    return DatagramResult::kTaken;
  }
  if (ConnectionRecord* const record = table_.Find(peer, *mad)) {
    Apply(*record, record->state.OnMad(*mad));
  } else if (std::holds_alternative<DrepMad>(mad->body)) {
    if (IsCookie(peer, mad->transaction)) present_.Add(peer, CookiePeriod(nic_.alarms().now()));
  } else if (const std::optional<Mad> answer = AnswerForUnknown(*mad)) {
    Send(peer, *answer);
  }
  return DatagramResult::kTaken;
}

DatagramResult SoftConnectionManager::OnReq(const Address& peer, const Mad& mad) {
  const ReqMad& req = std::get<ReqMad>(mad.body);
  const auto reject = [&](const RejMad& rej) REQUIRES_NIC_MUTEX {
    Send(peer, {mad.transaction, rej});
    return DatagramResult::kTaken;
  };
  if (ConnectionRecord* const known = table_.FindByReq(peer, req.local_id)) {
    const bool repeated = known->state.identity().transaction == mad.transaction &&
                          known->state.req().starting_psn == req.starting_psn &&
                          known->state.req().queue_pair == req.queue_pair;
    if (repeated) {
      Apply(*known, known->state.OnMad(mad));
      return DatagramResult::kTaken;
    }
    if (known->state.phase() != Phase::kTimeWait) {
      Doubt(*known, mad);
      return DatagramResult::kTaken;
    }
    Erase(*known);
  }
  if (const std::optional<RejMad> refusal = Refuse(req, nic_.address(), peer, nic_.limits().active_mtu)) {
    return reject(*refusal);
  }
  if (ConnectionRecord* const stale = table_.FindByPeerQueuePair(peer, req.queue_pair)) {
    Doubt(*stale, mad);
    return DatagramResult::kTaken;
  }
  ConnectionListener* const listener = listeners_.Find(ServicePort(PortSpace::kTcp, req.service_id).value());
  if (listener == nullptr) return reject(MakeRej(req, RejectReason::kInvalidServiceId));
  const std::optional<Standing> standing = Place(peer, mad.transaction);
  if (!standing) {
    // No REJ: there may be room when the peer repeats its REQ.
    const uint64_t cookie = CookieFor(peer, CookiePeriod(nic_.alarms().now()));
    if (!IsCookie(peer, mad.transaction)) Send(peer, MakeCookie(req, cookie));
    return DatagramResult::kRefused;
  }

  UserData user;
  ConnectionState::Identity identity;
  identity.local = listener->listens_at();
  identity.peer = WithPort(peer, SplitPrivateData(req.private_data, &user).value().source.port);
  identity.ca_guid = ca_guid_;
  identity.local_id = NewLocalId();
  identity.transaction = mad.transaction;
  ConnectionRecord& record = AddRecord(ConnectionState(identity, req), peer);
  record.standing = *standing;
  record.listener = listener;
  record.listener->unanswered.insert(record.key);
  record.listener->waiting.push_back(record.key);
  record.listener->Wake();
  Apply(record, record.state.Begin());
  return DatagramResult::kTaken;
}

std::optional<Standing> SoftConnectionManager::Place(const Address& peer, uint64_t transaction) {
  if (table_.MayOpen(peer, Standing::kUnknown)) return Standing::kUnknown;
  if (IsCookie(peer, transaction) && table_.MayOpen(peer, Standing::kHasCookie)) return Standing::kHasCookie;
  if (!present_.Has(peer, CookiePeriod(nic_.alarms().now()))) return std::nullopt;
  if (table_.MayOpen(peer, Standing::kPresent)) return Standing::kPresent;
  return std::nullopt;
}

void SoftConnectionManager::Doubt(ConnectionRecord& record, const Mad& mad) {
  const Address peer = record.peer;
  Apply(record, record.state.OnDoubt(nic_.numbers().Next()));
  Send(peer, {mad.transaction, MakeRej(std::get<ReqMad>(mad.body), RejectReason::kStaleConnection)});
}

// Returns a cookie, which needs no state: only a receiver of messages to `peer` can send it back.
uint64_t SoftConnectionManager::CookieFor(const Address& peer, uint64_t period) {
  std::array<uint8_t, 16 + 2 + 8> text;
  std::copy(peer.ip.begin(), peer.ip.end(), text.begin());
  text[16] = static_cast<uint8_t>(peer.udp_port >> 8);
  text[17] = static_cast<uint8_t>(peer.udp_port);
  for (size_t i = 0; i < sizeof(period); ++i) text[18 + i] = static_cast<uint8_t>(period >> (8 * i));
  return nic_.numbers().Seal(text);
}

bool SoftConnectionManager::IsCookie(const Address& peer, uint64_t transaction) {
  const uint64_t period = CookiePeriod(nic_.alarms().now());
  return transaction == CookieFor(peer, period) || (period > 0 && transaction == CookieFor(peer, period - 1));
}

void SoftConnectionManager::OnFirstData(uint32_t number) {
  if (ConnectionRecord* const record = table_.FindByQueuePair(number)) Apply(*record, record->state.OnFirstData());
}

void SoftConnectionManager::OnError(uint32_t number) {
  if (ConnectionRecord* const record = table_.FindByQueuePair(number)) {
    Apply(*record, record->state.OnQueuePairError(absl::AbortedError(
                       "the queue pair went to Error: its first failed completion, if any, says why")));
  }
}

void SoftConnectionManager::OnDropped(uint32_t number) {
  if (ConnectionRecord* const record = table_.FindByQueuePair(number)) {
    Apply(*record, record->state.OnQueuePairError(
                       absl::FailedPreconditionError("the queue pair was dropped before its connection")));
  }
}

// ---- Carrying out.

void SoftConnectionManager::Apply(ConnectionRecord& record, const ConnectionActions& actions) {
  if (actions.stop_timers) {
    record.repeat.Cancel();
    record.limit.Cancel();
    nic_.Trace(base::TraceKind::kConnection, static_cast<uint32_t>(record.state.phase()), 0);
  }
  if (absl::Status status = Walk(record, actions.walk); !status.ok()) {
    return Apply(record, record.state.OnQueuePairError(std::move(status)));
  }
  if (actions.send) Send(record.peer, *actions.send);
  if (actions.repeat_after) record.repeat.Set(*actions.repeat_after);
  if (actions.limit_after) record.limit.Set(*actions.limit_after);
  if (actions.news && record.owner != nullptr) record.owner->Tell(*actions.news, record.state);
  if (actions.ask_again)
    return Apply(record, record.state.AskAgain(NewLocalId(), actions.transaction.value_or(nic_.numbers().Next())));

  if (record.state.phase() == Phase::kClosed) return Erase(record);
  if (IsEnding(record.state.phase())) Unwatch(record);
  if (record.state.phase() != Phase::kReqReceived) LeaveListener(record);
  table_.Update(record);
  if (ConnectionRecord* const surplus = table_.Surplus()) Erase(*surplus);
}

absl::Status SoftConnectionManager::Walk(ConnectionRecord& record, ConnectionActions::Walk walk) {
  using Walk = ConnectionActions::Walk;
  if (walk == Walk::kStay || !record.watched) return absl::OkStatus();
  QueuePairAttributes attributes = record.state.attributes();
  attributes.peer = record.peer;
  const auto modify = [&](QueuePairState state)
                          REQUIRES_NIC_MUTEX { return nic_.Modify(record.queue_pair, state, attributes); };
  if (walk == Walk::kError) {
    // It may be in Error already, or going.
    modify(QueuePairState::kError).IgnoreError();
    return absl::OkStatus();
  }
  if (nic_.State(record.queue_pair) == QueuePairState::kInit) {
    if (absl::Status status = modify(QueuePairState::kReadyToReceive); !status.ok()) return status;
  }
  return walk == Walk::kReadyToSend ? modify(QueuePairState::kReadyToSend) : absl::OkStatus();
}

void SoftConnectionManager::Send(const Address& peer, const Mad& mad) { nic_.SendMad(peer, EncodeMad(mad)); }

ConnectionRecord& SoftConnectionManager::AddRecord(ConnectionState state, const Address& peer) {
  const uint64_t key = next_key_++;
  return table_.Add(std::make_unique<ConnectionRecord>(
      key, std::move(state), peer, nic_.alarms(),
      [this, key]() REQUIRES_NIC_MUTEX {
        ConnectionRecord& record = *CHECK_NOTNULL(table_.Get(key));
        Apply(record, record.state.OnRepeat(Heard(record)));
      },
      [this, key]() REQUIRES_NIC_MUTEX {
        ConnectionRecord& record = *CHECK_NOTNULL(table_.Get(key));
        Apply(record, record.state.OnLimit());
      }));
}

bool SoftConnectionManager::Heard(const ConnectionRecord& record) const {
  const uint32_t number = record.watched ? record.queue_pair : record.outside;
  return number != 0 && nic_.Exists(number) && nic_.Heard(number);
}

std::unique_ptr<SoftConnection> SoftConnectionManager::MakeHandle(ConnectionRecord& record, uint32_t queue_pair,
                                                                  const Address& peer, ConnectionHandler handler) {
  auto handle =
      std::make_unique<SoftConnection>(nic_.Share(), *this, nic_.OwnerLoop(queue_pair), peer, std::move(handler));
  handle->key = record.key;
  record.owner = handle.get();
  record.queue_pair = queue_pair;
  record.watched = true;
  table_.Update(record);
  nic_.Watch(queue_pair, true);
  if (held_[queue_pair]++ == 0) nic_.HoldNumber(queue_pair);
  return handle;
}

void SoftConnectionManager::Unwatch(ConnectionRecord& record) {
  if (!record.watched) return;
  record.watched = false;
  nic_.Watch(record.queue_pair, false);
}

void SoftConnectionManager::LeaveListener(ConnectionRecord& record) {
  if (record.listener == nullptr) return;
  std::deque<uint64_t>& waiting = record.listener->waiting;
  waiting.erase(std::remove(waiting.begin(), waiting.end(), record.key), waiting.end());
  record.listener->unanswered.erase(record.key);
  record.listener = nullptr;
}

void SoftConnectionManager::Erase(ConnectionRecord& record) {
  Unwatch(record);
  LeaveListener(record);
  if (record.queue_pair != 0 && --held_[record.queue_pair] == 0) {
    held_.erase(record.queue_pair);
    nic_.ReleaseNumber(record.queue_pair);
  }
  table_.Erase(record);
}

absl::Status SoftConnectionManager::CheckOptions(const ConnectOptions& options) const {
  const uint32_t mtu = options.max_path_mtu;
  if (options.private_data.size() > kUserPrivateData) {
    return absl::InvalidArgumentError(
        absl::StrCat(options.private_data.size(), " bytes of private data, more than ", kUserPrivateData));
  }
  if (mtu < kMinMtu || mtu > kMaxMtu || (mtu & (mtu - 1)) != 0) {
    return absl::InvalidArgumentError(absl::StrCat("max_path_mtu ", mtu, " is none of 256, 512, 1024, 2048, 4096"));
  }
  if (options.reliability.retry_count > kMaxRetryCount || options.reliability.rnr_retry_count > kMaxRetryCount) {
    return absl::InvalidArgumentError(absl::StrCat("retry counts end at ", kMaxRetryCount));
  }
  if (options.deadline <= base::Duration()) return absl::InvalidArgumentError("the deadline has passed already");
  return absl::OkStatus();
}

absl::Status SoftConnectionManager::CheckQueuePair(uint32_t number) {
  if (!nic_.Exists(number)) return absl::InvalidArgumentError("the queue pair is none of this device");
  if (nic_.State(number) == QueuePairState::kInit && table_.FindByQueuePair(number) == nullptr) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("queue pair ", number, " is in use or in state ",
                                                    ToString(nic_.State(number)), ": a connection starts in Init"));
}

ConnectionOffer SoftConnectionManager::MakeOffer(uint32_t queue_pair, const ConnectOptions& options) {
  const auto max_reads = static_cast<uint8_t>(std::min<uint32_t>(nic_.limits().max_reads, 255));
  ConnectionOffer offer;
  offer.queue_pair = queue_pair;
  offer.receive_psn = NewPsn();
  offer.max_path_mtu = std::min(options.max_path_mtu, nic_.limits().active_mtu);
  offer.reliability = options.reliability;
  offer.reliability.reads_outstanding = std::min(offer.reliability.reads_outstanding, max_reads);
  offer.reliability.reads_served = std::min(offer.reliability.reads_served, max_reads);
  offer.deadline = options.deadline;
  offer.private_data = ToAnyData(options.private_data);
  return offer;
}

uint32_t SoftConnectionManager::NewLocalId() {
  for (;;) {
    const uint32_t id = nic_.share().Place(static_cast<uint32_t>(nic_.numbers().Next()), kCommunicationIdBits);
    if (id != 0 && !table_.HasLocalId(id)) return id;
  }
}

}  // namespace tokamak::verbs::soft
