#include "lib/directory/redis/connection.h"

#include <arpa/inet.h>
#include <hiredis/async.h>
#include <hiredis/hiredis.h>
#include <sys/epoll.h>

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "glog/logging.h"

namespace tokamak::directory::redis {
namespace {

constexpr absl::string_view kUnixPrefix = "unix:";

struct Place {
  std::string path;  // of a Unix socket; else empty
  std::string ip;
  int port = 0;
};

// Names are not looked up: that would block the loop.
absl::StatusOr<Place> ParseAddress(const std::string& address) {
  Place place;
  if (absl::StartsWith(address, kUnixPrefix)) {
    place.path = address.substr(kUnixPrefix.size());
    if (!place.path.empty()) return place;
  }
  const size_t colon = address.rfind(':');
  if (colon != std::string::npos) {
    place.ip = address.substr(0, colon);
    if (place.ip.size() > 2 && place.ip.front() == '[' && place.ip.back() == ']') {
      place.ip = place.ip.substr(1, place.ip.size() - 2);
    }
    in6_addr ignored;
    const bool is_ip =
        inet_pton(AF_INET, place.ip.c_str(), &ignored) == 1 || inet_pton(AF_INET6, place.ip.c_str(), &ignored) == 1;
    const bool is_port =
        absl::SimpleAtoi(address.substr(colon + 1), &place.port) && place.port > 0 && place.port < 65536;
    if (is_ip && is_port) return place;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("\"", address,
                   "\" is no address of a Redis server: write 127.0.0.1:6379 (an IP address, "
                   "no name) or unix:/path/to/socket"));
}

Reply Copy(const redisReply& raw) {
  Reply reply;
  switch (raw.type) {
    case REDIS_REPLY_STRING:
    case REDIS_REPLY_STATUS:
      reply.kind = Reply::Kind::kText;
      reply.text.assign(raw.str, raw.len);
      break;
    case REDIS_REPLY_ERROR:
      reply.kind = Reply::Kind::kError;
      reply.text.assign(raw.str, raw.len);
      break;
    case REDIS_REPLY_INTEGER:
      reply.kind = Reply::Kind::kInteger;
      reply.integer = raw.integer;
      break;
    case REDIS_REPLY_ARRAY:
      reply.kind = Reply::Kind::kArray;
      reply.elements.reserve(raw.elements);
      for (size_t i = 0; i < raw.elements; ++i) reply.elements.push_back(Copy(*raw.element[i]));
      break;
    default:
      break;
  }
  return reply;
}

struct Arguments {
  explicit Arguments(const std::vector<std::string>& texts) {
    for (const std::string& text : texts) {
      bytes.push_back(text.data());
      sizes.push_back(text.size());
    }
  }
  std::vector<const char*> bytes;
  std::vector<size_t> sizes;
};

}  // namespace

// A call whose reply somebody waits for.
struct Connection::Question final : base::Handle {
  ~Question() override {
    if (connection != nullptr) connection->pending_[token].question = nullptr;
  }

  Connection* connection = nullptr;  // null: it is being answered
  uint64_t token = 0;
  Callback done;
  base::Timer deadline;
  base::Pending answer;
};

// hiredis's callbacks. `data` is null once we have turned away from a context: then nothing of ours
// is touched.
struct Connection::Hooks {
  static Connection* Of(const redisAsyncContext* context) { return static_cast<Connection*>(context->data); }
  static Connection* OfData(void* data) { return static_cast<Connection*>(data); }

  static void AddRead(void* data) { OfData(data)->WatchFor(EPOLLIN, true); }
  static void DelRead(void* data) { OfData(data)->WatchFor(EPOLLIN, false); }
  static void AddWrite(void* data) { OfData(data)->WatchFor(EPOLLOUT, true); }
  static void DelWrite(void* data) { OfData(data)->WatchFor(EPOLLOUT, false); }
  static void CleanUp(void* data) { OfData(data)->watch_.Reset(); }

  static void OnConnect(const redisAsyncContext* context, int status) {
    Connection* self = Of(context);
    if (self == nullptr) return;
    if (status == REDIS_OK) return self->Connected();
    self->watch_.Reset();
    self->Lost(context->errstr);
  }
  static void OnDisconnect(const redisAsyncContext* context, int) {
    if (Connection* self = Of(context)) self->Lost(context->err != 0 ? context->errstr : "the connection was closed");
  }
  static void OnReply(redisAsyncContext* context, void* reply, void* token) {
    Connection* self = Of(context);
    if (self == nullptr || reply == nullptr) return;  // Lost answers those that had no reply
    self->Replied(reinterpret_cast<uintptr_t>(token), Copy(*static_cast<redisReply*>(reply)));
  }
  static void OnHeard(redisAsyncContext* context, void* reply, void*) {
    Connection* self = Of(context);
    if (self == nullptr || reply == nullptr) return;
    self->retry_delay_ = base::Duration();
    self->Hear(Copy(*static_cast<redisReply*>(reply)));
  }
};

absl::StatusOr<std::unique_ptr<Connection>> Connection::Open(os::EpollLoop& loop, const ConnectionOptions& options,
                                                             std::function<void()> began) {
  const absl::StatusOr<Place> place = ParseAddress(options.address);
  if (!place.ok()) return place.status();
  return std::unique_ptr<Connection>(new Connection(loop, options, std::move(began)));
}

Connection::Connection(os::EpollLoop& loop, const ConnectionOptions& options, std::function<void()> began)
    : loop_(loop), options_(options), began_(std::move(began)), answers_(loop) {}

Connection::~Connection() {
  Detach();
  for (auto& [token, sent] : pending_) {
    if (sent.question == nullptr) continue;
    sent.question->connection = nullptr;
    sent.question->deadline.Cancel();
  }
}

absl::Status Connection::Trouble(const std::string& what) const {
  return absl::UnavailableError(absl::StrCat("Redis at ", options_.address, ": ", what));
}

void Connection::Connect() {
  const absl::StatusOr<Place> place = ParseAddress(options_.address);
  redisAsyncContext* context = place->path.empty() ? redisAsyncConnect(place->ip.c_str(), place->port)
                                                   : redisAsyncConnectUnix(place->path.c_str());
  CHECK(context != nullptr) << "out of memory";
  ++attempts_;
  if (context->err != 0) {
    const std::string why = context->errstr;
    redisAsyncFree(context);
    return Lost(why);
  }
  Attach(context);
  timer_ = loop_.RunAfter(options_.connect_deadline, [this] { Break("no connection in time"); });
  if (!options_.password.empty()) Authenticate();
  began_();
}

void Connection::Attach(redisAsyncContext* context) {
  context_ = context;
  context->data = this;
  context->ev.data = this;
  context->ev.addRead = &Hooks::AddRead;
  context->ev.delRead = &Hooks::DelRead;
  context->ev.addWrite = &Hooks::AddWrite;
  context->ev.delWrite = &Hooks::DelWrite;
  context->ev.cleanup = &Hooks::CleanUp;
  watched_ = 0;
  watch_ = loop_.Watch(context->c.fd, 0, [this](uint32_t events) { HandleEvents(events); });
  redisAsyncSetConnectCallback(context, &Hooks::OnConnect);
  redisAsyncSetDisconnectCallback(context, &Hooks::OnDisconnect);
}

// Turns away from the context, which may live on for a moment inside hiredis.
void Connection::Detach() {
  redisAsyncContext* context = std::exchange(context_, nullptr);
  watch_.Reset();
  if (context == nullptr) return;
  context->data = nullptr;
  context->ev = {};
  context->onConnect = nullptr;
  context->onDisconnect = nullptr;
  redisAsyncFree(context);
}

void Connection::Connected() {
  timer_.Cancel();
  if (!absl::StartsWith(options_.address, kUnixPrefix)) redisEnableKeepAlive(&context_->c);
}

void Connection::Authenticate() {
  authentication_ =
      Call({"AUTH", options_.password}, options_.connect_deadline, [this](const absl::StatusOr<Reply>& reply) {
        if (!reply.ok()) LOG(WARNING) << "the password was not accepted: " << reply.status().message();
      });
}

void Connection::Break(const std::string& why) {
  Detach();
  Lost(why);
}

// hiredis frees the context by itself, where Detach did not. No callback runs in here.
void Connection::Lost(const std::string& why) {
  context_ = nullptr;
  lost_because_ = why;
  for (const auto& [token, sent] : pending_) {
    if (sent.question != nullptr) Answer(*sent.question, Trouble(why));
  }
  pending_.clear();
  last_chance_.Cancel();
  retry_delay_ = std::clamp(retry_delay_ * 2, options_.first_retry, options_.max_retry);
  timer_ = loop_.RunAfter(retry_delay_, [this] { Connect(); });
}

void Connection::WatchFor(uint32_t events, bool wanted) {
  const uint32_t before = watched_;
  watched_ = wanted ? watched_ | events : watched_ & ~events;
  if (watched_ != before && watch_.active()) watch_.SetEvents(watched_);
}

// Each step may end the connection, and with it the context.
void Connection::HandleEvents(uint32_t events) {
  const redisAsyncContext* context = context_;
  const bool trouble = (events & (EPOLLERR | EPOLLHUP)) != 0;
  if ((events & EPOLLIN) != 0 || (trouble && (watched_ & EPOLLOUT) == 0)) redisAsyncHandleRead(context_);
  if (context_ != context || context_ == nullptr) return;
  if ((events & EPOLLOUT) != 0 || (trouble && (watched_ & EPOLLOUT) != 0)) redisAsyncHandleWrite(context_);
}

base::Pending Connection::Call(const std::vector<std::string>& arguments, base::Duration deadline, Callback done) {
  auto question = std::make_unique<Question>();
  question->done = std::move(done);
  if (pending_.size() >= kMaxPending) {
    Answer(*question, absl::ResourceExhaustedError("too many calls wait for the Redis server: try again later"));
    return question;
  }
  const uint64_t token = ++last_token_;
  const Arguments raw(arguments);
  if (context_ == nullptr ||
      redisAsyncCommandArgv(context_, &Hooks::OnReply, reinterpret_cast<void*>(static_cast<uintptr_t>(token)),
                            static_cast<int>(arguments.size()), const_cast<const char**>(raw.bytes.data()),
                            raw.sizes.data()) != REDIS_OK) {
    Answer(*question, Trouble(absl::StrCat(lost_because_, "; start it, or correct the address")));
    return question;
  }
  question->connection = this;
  question->token = token;
  question->deadline = loop_.RunAfter(deadline, [this, question = question.get()] { Expired(*question); });
  pending_[token] = {question.get(), loop_.Now()};
  return question;
}

// For good: what comes for it later is ignored.
void Connection::Answer(Question& question, absl::StatusOr<Reply> reply) {
  question.connection = nullptr;
  question.deadline.Cancel();
  question.answer =
      answers_.Add([done = std::move(question.done), reply = std::move(reply)]() mutable { done(std::move(reply)); });
}

bool Connection::Subscribe(const std::vector<std::string>& arguments) {
  if (context_ == nullptr) return false;
  const Arguments raw(arguments);
  return redisAsyncCommandArgv(context_, &Hooks::OnHeard, nullptr, static_cast<int>(arguments.size()),
                               const_cast<const char**>(raw.bytes.data()), raw.sizes.data()) == REDIS_OK;
}

void Connection::Hear(Reply reply) {
  just_heard_.push_back(std::move(reply));
  if (just_heard_.size() > 1) return;
  hearing_ = answers_.Add([this] {
    for (const Reply& heard : std::exchange(just_heard_, {})) heard_(heard);
  });
}

void Connection::Replied(uint64_t token, const Reply& reply) {
  last_received_ = loop_.Now();
  retry_delay_ = base::Duration();
  const auto answered = pending_.extract(token);
  Question* const question = answered.empty() ? nullptr : answered.mapped().question;
  if (question == nullptr) return;
  if (reply.kind == Reply::Kind::kError) return Answer(*question, Trouble(reply.text));
  Answer(*question, reply);
}

void Connection::Expired(Question& question) {
  pending_[question.token].question = nullptr;
  Answer(question,
         absl::DeadlineExceededError(absl::StrCat(
             "Redis at ", options_.address, " did not answer in time; see whether it is overloaded or unreachable")));
  if (IsSilent() && !last_chance_.armed()) {
    last_chance_ = loop_.RunAfter(kLastChance, [this] {
      if (IsSilent()) Break("it does not answer");
    });
  }
}

bool Connection::IsSilent() const {
  if (pending_.empty()) return false;
  return loop_.Now() - std::max(last_received_, pending_.begin()->second.at) >= kMaxSilence;
}

}  // namespace tokamak::directory::redis
