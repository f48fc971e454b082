#include "lib/directory/redis/server/server_connection.h"

#include <hiredis/hiredis.h>
#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "lib/base/check.h"
#include "lib/directory/redis/server/remedies.h"

namespace tokamak::directory::redis {
namespace {

constexpr size_t kReadAtOnce = 64 << 10;
constexpr int kReadsPerTask = 4;
constexpr char kMaybeTls[] =
    " before it said anything; does it speak TLS there? With it: rediss://, sentinel+tls:// or cluster+tls://";

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

}  // namespace

struct ServerConnection::Question final : base::Handle {
  ~Question() override {
    if (connection != nullptr) connection->pending_[token].question = nullptr;
  }

  ServerConnection* connection = nullptr;  // null: being answered
  uint64_t token = 0;
  Callback done;
  base::Timer deadline;
  base::Pending answer;
};

ServerConnection::ServerConnection(os::EpollLoop& loop, Dialer& dialer, Finder& finder, base::Random random,
                                   const ConnectionOptions& options, std::function<void()> began)
    : loop_(loop),
      dialer_(dialer),
      finder_(finder),
      random_(random),
      options_(options),
      began_(std::move(began)),
      reader_(nullptr, &redisReaderFree),
      answers_(loop) {}

ServerConnection::~ServerConnection() {
  for (auto& [token, sent] : pending_) {
    if (sent.question == nullptr) continue;
    sent.question->connection = nullptr;
    sent.question->deadline.Cancel();
  }
}

absl::Status ServerConnection::Trouble(absl::string_view what) const {
  return absl::UnavailableError(
      absl::StrCat("Redis at ", place_.has_value() ? place_->ToString() : finder_.name(), ": ", what));
}

// ---- the way to a server

void ServerConnection::Connect() {
  ++attempts_;
  redirects_ = 0;
  state_ = State::kFinding;
  began_();
  Find();
}

void ServerConnection::Find() {
  state_ = State::kFinding;
  place_.reset();
  step_ = finder_.Find(options_.connect_deadline, [this](const absl::StatusOr<Place>& place) {
    if (!place.ok()) return Break(std::string(place.status().message()));
    Dial(*place);
  });
}

void ServerConnection::Dial(const Place& place) {
  state_ = State::kDialing;
  place_ = place;
  step_ = dialer_.Dial(place, options_.connect_deadline, [this](absl::StatusOr<std::unique_ptr<Stream>> stream) {
    if (!stream.ok()) return Break(std::string(stream.status().message()));
    Greet(*std::move(stream));
  });
}

// User and password go first: a server with a password answers nobody else.
void ServerConnection::Greet(std::unique_ptr<Stream> stream) {
  state_ = State::kGreeting;
  stream_ = std::move(stream);
  reader_.reset(redisReaderCreate());
  CHECK(reader_ != nullptr) << "out of memory";
  watched_ = EPOLLIN;
  watch_ = loop_.Watch(stream_->descriptor(), watched_, [this](uint32_t events) { HandleEvents(events); });
  timer_ = loop_.RunAfter(options_.connect_deadline, [this] { Break("it does not answer"); });
  const absl::StatusOr<std::string> password = options_.credentials.password.Read();
  if (!password.ok()) return Break(std::string(password.status().message()));
  std::vector<Command> commands;
  const std::string& user = options_.credentials.user;
  if (!user.empty()) {
    commands.push_back({"AUTH", user, *password});
  } else if (!password->empty()) {
    commands.push_back({"AUTH", *password});
  }
  if (options_.database != 0) commands.push_back({"SELECT", absl::StrCat(options_.database)});
  questions_first_ = commands.size();
  for (Command& question : finder_.Questions()) commands.push_back(std::move(question));
  greeting_.clear();
  greeting_outstanding_ = commands.size();
  for (const Command& command : commands) Append(command, kMaxUnsent + kOwnUnsent, &output_);
  if (greeting_outstanding_ == 0) return Greeted();
  Flush();
}

void ServerConnection::Greeted() {
  for (size_t i = 0; i < questions_first_; ++i) {
    if (greeting_[i].kind == Reply::Kind::kError) return Break(WithoutPassword(WithRemedy(greeting_[i].text)));
  }
  greeting_.erase(greeting_.begin(), greeting_.begin() + static_cast<ptrdiff_t>(questions_first_));
  const absl::Status verdict = finder_.Judge(*place_, greeting_);
  if (absl::IsAborted(verdict) && redirects_++ < kMaxRedirects) {
    HangUp();
    return Find();
  }
  if (!verdict.ok()) return Break(std::string(verdict.message()));
  state_ = State::kReady;
  timer_.Cancel();
  last_received_ = loop_.Now();
  for (auto& [token, sent] : pending_) sent.at = last_received_;
  output_ += std::exchange(held_, std::string());
  look_ = loop_.RunAfter(kLookEvery, [this] { Look(); });
  FlushSoon();
}

// A server without AUTH repeats its arguments in the error.
std::string ServerConnection::WithoutPassword(std::string text) const {
  const std::string password = options_.credentials.password.Read().value_or("");
  return password.empty() ? text : absl::StrReplaceAll(text, {{password, "***"}});
}

void ServerConnection::Look() {
  if (!finder_.IsStillRight(*place_)) return Break("it is not the master any more: the new one is looked for");
  look_ = loop_.RunAfter(kLookEvery, [this] { Look(); });
}

void ServerConnection::HangUp() {
  watch_.Reset();
  stream_.reset();
  reader_.reset();
  timer_.Cancel();
  flush_.Cancel();
  receive_more_.Cancel();
  look_.Cancel();
  last_chance_.Cancel();
  output_.clear();
  output_gone_ = 0;
}

// Runs no callback.
void ServerConnection::Break(const std::string& why) {
  const absl::Status trouble = Trouble(why);
  lost_because_ = why;
  if (place_.has_value()) finder_.Failed(*place_, why);
  state_ = State::kWaiting;
  step_.reset();
  HangUp();
  held_.clear();
  for (const auto& [token, sent] : pending_) {
    if (sent.question != nullptr) Answer(*sent.question, trouble);
  }
  pending_.clear();
  retry_delay_ = std::clamp(retry_delay_ * 2, options_.first_retry, options_.max_retry);
  // Spreads the attempts of many nodes.
  const auto drawn = static_cast<int64_t>(random_.Below(static_cast<uint64_t>(retry_delay_.picoseconds() / 2 + 1)));
  timer_ = loop_.RunAfter(retry_delay_ - base::Duration::Picoseconds(drawn), [this] { Connect(); });
}

// ---- bytes

bool ServerConnection::Append(const Command& command, size_t most_unsent, std::string* bytes) {
  if (output_.size() - output_gone_ + held_.size() > most_unsent) return false;
  std::vector<const char*> starts;
  std::vector<size_t> sizes;
  for (const std::string& argument : command) {
    starts.push_back(argument.data());
    sizes.push_back(argument.size());
  }
  char* line = nullptr;
  const int size = redisFormatCommandArgv(&line, static_cast<int>(command.size()), starts.data(), sizes.data());
  CHECK_GE(size, 0) << "out of memory";
  bytes->append(line, static_cast<size_t>(size));
  redisFreeCommand(line);
  return true;
}

void ServerConnection::FlushSoon() {
  if (!flush_.armed()) flush_ = loop_.Post([this] { Flush(); });
}

void ServerConnection::Flush() {
  while (output_gone_ < output_.size()) {
    const absl::StatusOr<size_t> sent = stream_->Write(output_.data() + output_gone_, output_.size() - output_gone_);
    if (!sent.ok()) {
      // The server's last reply before it hung up gives the reason.
      Receive();
      if (stream_ != nullptr) Break(std::string(sent.status().message()));
      return;
    }
    if (*sent == 0) break;
    output_gone_ += *sent;
  }
  if (output_gone_ == output_.size()) {
    output_.clear();
    output_gone_ = 0;
  }
  WatchForRoom();
}

void ServerConnection::WatchForRoom() {
  const uint32_t wanted = EPOLLIN | (!output_.empty() || stream_->awaits_room() ? EPOLLOUT : 0u);
  if (wanted != std::exchange(watched_, wanted)) watch_.SetEvents(wanted);
}

void ServerConnection::HandleEvents(uint32_t events) {
  if ((events & (EPOLLIN | EPOLLERR | EPOLLHUP)) != 0) Receive();
  if (stream_ != nullptr && (events & EPOLLOUT) != 0) Flush();
}

// Each reply may end the connection.
void ServerConnection::Receive() {
  std::array<char, kReadAtOnce> bytes;
  for (int i = 0; i < kReadsPerTask; ++i) {
    const absl::StatusOr<size_t> got = stream_->Read(bytes.data(), bytes.size());
    if (!got.ok()) {
      const bool said_nothing = state_ == State::kGreeting && greeting_.empty();
      return Break(absl::StrCat(got.status().message(), said_nothing ? kMaybeTls : ""));
    }
    if (*got == 0) return WatchForRoom();
    if (!Digest(bytes.data(), *got)) return;
  }
  receive_more_ = loop_.Post([this] { Receive(); });
}

// Returns true while there is a connection.
bool ServerConnection::Digest(const char* bytes, size_t size) {
  last_received_ = loop_.Now();
  bool good = redisReaderFeed(reader_.get(), bytes, size) == REDIS_OK;
  while (good) {
    void* raw = nullptr;
    good = redisReaderGetReply(reader_.get(), &raw) == REDIS_OK;
    if (!good || raw == nullptr) break;
    Reply reply = Copy(*static_cast<redisReply*>(raw));
    freeReplyObject(raw);
    Take(std::move(reply));
    if (stream_ == nullptr) return false;
  }
  if (!good) {
    Break(WithRemedy(reader_->errstr));
    return false;
  }
  if (reader_->len > kMaxReply) {
    Break("its reply is longer than any to us");
    return false;
  }
  return true;
}

void ServerConnection::Take(Reply reply) {
  const bool expected = state_ == State::kGreeting || heard_ != nullptr || !pending_.empty();
  if (!expected) {  // before it hangs up: too many clients, protected mode
    return Break(reply.kind == Reply::Kind::kError ? WithRemedy(reply.text) : "it said what nobody had asked");
  }
  if (state_ == State::kGreeting) {
    greeting_.push_back(std::move(reply));
    if (greeting_.size() == greeting_outstanding_) Greeted();
    return;
  }
  if (heard_ == nullptr) return Replied(std::move(reply));
  if (reply.kind == Reply::Kind::kError) return Break(WithRemedy(reply.text));
  retry_delay_ = base::Duration();
  Hear(std::move(reply));
}

// ---- calls

base::Pending ServerConnection::Call(const Command& command, base::Duration deadline, bool own, Callback done) {
  auto question = std::make_unique<Question>();
  question->done = std::move(done);
  if (state_ == State::kWaiting) {
    Answer(*question, trouble());
    return question;
  }
  const bool ready = state_ == State::kReady;
  const size_t most_pending = kMaxPending + (own ? kOwnPending : 0), most_unsent = kMaxUnsent + (own ? kOwnUnsent : 0);
  if (pending_.size() >= most_pending || !Append(command, most_unsent, ready ? &output_ : &held_)) {
    Answer(*question, absl::ResourceExhaustedError("too many calls wait for the Redis server: try again later"));
    return question;
  }
  if (ready) FlushSoon();
  const uint64_t token = ++last_token_;
  question->connection = this;
  question->token = token;
  question->deadline = loop_.RunAfter(deadline, [this, question = question.get()] { Expired(*question); });
  pending_[token] = {question.get(), loop_.Now()};
  return question;
}

// A later reply is ignored.
void ServerConnection::Answer(Question& question, absl::StatusOr<Reply> reply) {
  question.connection = nullptr;
  question.deadline.Cancel();
  question.answer =
      answers_.Add([done = std::move(question.done), reply = std::move(reply)]() mutable { done(std::move(reply)); });
}

bool ServerConnection::Subscribe(const Command& command) {
  if (state_ == State::kWaiting) return false;
  const bool ready = state_ == State::kReady;
  if (!Append(command, kMaxUnsent, ready ? &output_ : &held_)) return false;
  if (ready) FlushSoon();
  return true;
}

void ServerConnection::Hear(Reply reply) {
  just_heard_.push_back(std::move(reply));
  if (just_heard_.size() > 1) return;
  hearing_ = answers_.Add([this] {
    for (const Reply& heard : std::exchange(just_heard_, {})) heard_(heard);
  });
}

void ServerConnection::Replied(Reply reply) {
  const auto answered = pending_.extract(pending_.begin());
  Question* const question = answered.mapped().question;
  if (reply.kind != Reply::Kind::kError) {
    retry_delay_ = base::Duration();
    if (question != nullptr) Answer(*question, std::move(reply));
    return;
  }
  const std::string error = WithRemedy(reply.text);
  if (question != nullptr) Answer(*question, Trouble(error));
  if (IsWrongServer(reply.text)) Break(error);
}

void ServerConnection::Expired(Question& question) {
  pending_[question.token].question = nullptr;
  const bool connecting = state_ != State::kReady;
  const absl::Status trouble =
      Trouble(connecting ? absl::StrCat("no connection yet (", lost_because_, ")")
                         : "it did not answer in time; see whether it is overloaded or unreachable");
  Answer(question, absl::DeadlineExceededError(trouble.message()));
  if (IsSilent() && !last_chance_.armed()) {
    last_chance_ = loop_.RunAfter(kLastChance, [this] {
      if (IsSilent()) Break("it does not answer");
    });
  }
}

bool ServerConnection::IsSilent() const {
  if (state_ != State::kReady || pending_.empty()) return false;
  return loop_.Now() - std::max(last_received_, pending_.begin()->second.at) >= kMaxSilence;
}

}  // namespace tokamak::directory::redis
