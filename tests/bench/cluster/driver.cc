#include "tests/bench/cluster/driver.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/bytes.h"
#include "lib/base/check.h"
#include "lib/base/units.h"

namespace tokamak::bench {

namespace {

static_assert(base::kMaxCopyPerTask % Content::kWord == 0);

// For room in the store: what the last repetition held is free once peers have given back its pins.
constexpr base::Duration kRoomDeadline = base::Seconds(30);

// For the directory to hear that copies are gone, and how often that is looked at.
constexpr base::Duration kDirectoryDeadline = base::Seconds(30);
constexpr base::Duration kLookInterval = base::Microseconds(200);

// A byte that no Content is full of.
constexpr uint8_t kSoil = 0xa5;

base::ObjectId SoilId() { return base::ObjectId::FromName("cluster bench, soil"); }

}  // namespace

Driver::Driver(base::EventLoop& loop, Collective& collective, node::Node& node, std::vector<Puller*> pullers, Plan plan,
               Progress progress)
    : loop_(loop),
      collective_(collective),
      node_(node),
      pullers_(std::move(pullers)),
      plan_(std::move(plan)),
      progress_(std::move(progress)),
      who_(node.store().NewOwner()) {
  static_assert(std::is_trivially_copyable<Word>::value);
  CHECK_EQ(pullers_.size(), plan_.contenders.size());
}

Driver::~Driver() {
  incoming_.clear();
  node_.store().DropOwner(who_);
}

void Driver::Run(Callback done) {
  done_ = std::move(done);
  step_ = loop_.Post([this] { NextCase(); });
}

void Driver::NextCase() {
  repetition_ = 0;
  counted_.clear();
  stop_ = Stop::kNotYet;
  case_began_ = loop_.Now();
  Prepare();
}

// ---- prepare

void Driver::Prepare() {
  next_ = 0;
  if (plan_.keep && repetition_ > 0) return SoilNext();
  outgoing_.clear();
  incoming_.clear();
  if (case_ == plan_.cases.size()) return SayReady();
  for (const Edge& edge : EdgesOf(now().pattern, collective_.ranks())) {
    const Content content(plan_.seed, static_cast<uint32_t>(case_), repetition_, edge);
    if (edge.from == collective_.rank()) outgoing_.push_back(content);
    if (edge.to == collective_.rank()) incoming_.emplace_back(edge.from, content);
  }
  awaited_ = 0;
  creating_ = true;
  CreateNext();
}

void Driver::CreateNext() {
  if (!trouble_.ok() || next_ == outgoing_.size()) {
    next_ = 0;
    creating_ = false;
    if (awaited_ == 0) ExpectNext();
    return;
  }
  Reserve(outgoing_[next_].id(), &Driver::FillSlice, &Driver::CreateNext);
}

void Driver::Reserve(const base::ObjectId& id, void (Driver::*fill)(), void (Driver::*next)()) {
  store::CreateRequest request;
  request.id = id;
  request.data_size = now().size;
  request.who = who_;
  call_ = node_.store().CreateLater(request, loop_.Now() + kRoomDeadline,
                                    [=](const absl::StatusOr<store::Location>& place) {
                                      if (!place.ok()) {
                                        Fail(place.status());
                                        return (this->*next)();
                                      }
                                      filling_ = node_.store().Memory(*place);
                                      slice_at_ = 0;
                                      (this->*fill)();
                                    });
}

void Driver::FillSlice() {
  const uint64_t size = std::min<uint64_t>(base::kMaxCopyPerTask, filling_.size() - slice_at_);
  outgoing_[next_].Fill(slice_at_, filling_.subspan(slice_at_, size));
  slice_at_ += size;
  step_ = loop_.Post([this] { slice_at_ < filling_.size() ? FillSlice() : Seal(); });
}

// The directory hears of it while the next is filled.
void Driver::Seal() {
  const base::ObjectId& id = outgoing_[next_].id();
  if (const absl::Status status = node_.store().Seal(id, who_); !status.ok()) {
    Fail(status);
  } else {
    ++awaited_;
    const std::optional<store::Location> place = node_.store().Find(id);
    calls_.push_back(node_.Confirm({id, place->generation}, [this](const absl::Status& confirmed) {
      if (!confirmed.ok()) Fail(confirmed);
      if (--awaited_ == 0 && !creating_) ExpectNext();
    }));
  }
  ++next_;
  CreateNext();
}

void Driver::ExpectNext() {
  if (!trouble_.ok() || next_ == incoming_.size()) return SayReady();
  hash_ = std::make_unique<store::StreamHash>();
  slice_at_ = 0;
  ExpectSlice();
}

void Driver::ExpectSlice() {
  Incoming& object = incoming_[next_];
  slice_.resize(std::min<uint64_t>(base::kMaxCopyPerTask, now().size - slice_at_));
  object.content.Fill(slice_at_, absl::MakeSpan(slice_));
  hash_->Add(slice_);
  slice_at_ += slice_.size();
  if (slice_at_ == now().size) {
    object.hash = hash_->hash();
    ++next_;
    step_ = loop_.Post([this] { ExpectNext(); });
  } else {
    step_ = loop_.Post([this] { ExpectSlice(); });
  }
}

void Driver::SoilNext() {
  if (!trouble_.ok() || next_ == incoming_.size()) return SayReady();
  Reserve(SoilId(), &Driver::SoilSlice, &Driver::SoilNext);
}

void Driver::SoilSlice() {
  const uint64_t size = std::min<uint64_t>(base::kMaxCopyPerTask, filling_.size() - slice_at_);
  std::memset(filling_.data() + slice_at_, kSoil, size);
  slice_at_ += size;
  if (slice_at_ < filling_.size()) {
    step_ = loop_.Post([this] { SoilSlice(); });
    return;
  }
  if (const absl::Status status = node_.store().Abort(SoilId(), who_); !status.ok()) Fail(status);
  ++next_;
  step_ = loop_.Post([this] { SoilNext(); });
}

// ---- get

void Driver::SayReady() {
  calls_.clear();
  Gather({}, [this](absl::Span<const Word>) {
    if (case_ == plan_.cases.size()) return Finish(std::move(results_));
    Start();
  });
}

void Driver::Start() {
  WaitFor("the start");
  call_ = collective_.Barrier([this] {
    deadline_.Cancel();
    GetAll();
  });
}

void Driver::GetAll() {
  started_ = loop_.Now();
  seconds_ = 0;
  shares_.clear();
  awaited_ = incoming_.size();
  if (awaited_ == 0) return SayOver();
  Puller& puller = *pullers_[now().contender];
  for (Incoming& object : incoming_) {
    object.handle = puller.Pull(object.from, object.content.id(), who_, plan_.timeout,
                                [this, &object](const absl::Status& status) { Got(object, status); });
  }
}

void Driver::Got(Incoming& object, const absl::Status& status) {
  if (status.ok()) {
    object.pinned = true;
  } else {
    Fail(status);
  }
  seconds_ = (loop_.Now() - started_).seconds();
  shares_.push_back(1 / std::max(seconds_, 1e-9));
  if (--awaited_ == 0) SayOver();
}

void Driver::SayOver() {
  Word word;
  word.seconds = seconds_;
  if (!shares_.empty()) {  // the last to come has the least
    const double all = std::accumulate(shares_.begin(), shares_.end(), 0.0);
    word.least_source = shares_.back() * static_cast<double>(shares_.size()) / all;
  }
  word.elapsed = (loop_.Now() - case_began_).seconds();
  Gather(word, [this](absl::Span<const Word> words) {
    Count(words);
    next_ = 0;
    CheckNext();
  });
}

// All ranks see the same words, and so come to the same conclusion.
void Driver::Count(absl::Span<const Word> words) {
  if (repetition_++ < plan_.warm_up) return;
  Repetition repetition;
  for (const Word& word : words) {
    repetition.seconds.push_back(word.seconds);
    repetition.least_source.push_back(word.least_source);
  }
  counted_.push_back(std::move(repetition));
  std::vector<double> slowest;
  for (const Repetition& one : counted_) slowest.push_back(one.slowest());
  stop_ = plan_.stop.Decide(std::move(slowest), words.front().elapsed);
}

// ---- check

void Driver::CheckNext() {
  if (next_ == incoming_.size()) return SayChecked();
  call_ = node_.store().HashLater(incoming_[next_].content.id(), who_,
                                  [this](const absl::StatusOr<uint64_t>& hash) { Compare(hash); });
}

void Driver::Compare(const absl::StatusOr<uint64_t>& hash) {
  Incoming& object = incoming_[next_++];
  if (!hash.ok()) {
    Fail(hash.status());
  } else if (*hash != object.hash) {
    Fail(absl::DataLossError(absl::StrCat("the bytes that came from rank ", object.from, " are wrong")));
  }
  object.pinned = false;
  if (const absl::Status status = node_.store().Release(object.content.id(), who_); !status.ok()) Fail(status);
  CheckNext();
}

// The objects of a rank may go now: a copy goes with its original, and cannot be looked at after.
void Driver::SayChecked() {
  Gather({}, [this](absl::Span<const Word>) { plan_.keep&& stop_ == Stop::kNotYet ? DropCopies() : DeleteAll(); });
}

// So that they come again.
void Driver::DropCopies() {
  for (const Incoming& object : incoming_) {
    if (const absl::Status status = node_.store().Delete(object.content.id()); !status.ok()) Fail(status);
  }
  AwaitDirectory(loop_.Now() + kDirectoryDeadline);
}

void Driver::AwaitDirectory(base::Time until) {
  step_ = loop_.RunAfter(kLookInterval, [this, until] {
    if (node_.membership().behind() == 0) return Next();
    if (loop_.Now() < until) return AwaitDirectory(until);
    Fail(absl::DeadlineExceededError("the directory did not hear that copies are gone"));
    Next();
  });
}

// Everywhere: copies on other nodes go with what this rank gave.
void Driver::DeleteAll() {
  calls_.clear();
  awaited_ = outgoing_.size();
  if (awaited_ == 0) return Next();
  for (const Content& content : outgoing_) {
    calls_.push_back(node_.Delete(content.id(), [this](const absl::StatusOr<uint32_t>& deleted) {
      if (!deleted.ok()) Fail(deleted.status());
      if (--awaited_ == 0) step_ = loop_.Post([this] { Next(); });
    }));
  }
}

void Driver::Next() {
  if (stop_ == Stop::kNotYet) return Prepare();
  results_.push_back(CaseResult::Of(now(), collective_.ranks(), counted_, stop_));
  if (progress_ != nullptr) progress_(results_.back());
  ++case_;
  NextCase();
}

// ---- with the others

void Driver::Gather(const Word& word, std::function<void(absl::Span<const Word>)> then) {
  Word mine = word;
  mine.code = static_cast<int32_t>(trouble_.code());
  const size_t length = std::min(trouble_.message().size(), sizeof mine.text - 1);
  std::copy_n(trouble_.message().begin(), length, mine.text);
  WaitFor("all ranks");
  call_ = collective_.Gather({reinterpret_cast<const uint8_t*>(&mine), sizeof mine},
                             [this, then = std::move(then)](absl::Span<const uint8_t> all) {
                               deadline_.Cancel();
                               std::vector<Word> words(all.size() / sizeof(Word));
                               std::memcpy(words.data(), all.data(), all.size());
                               for (size_t rank = 0; rank < words.size(); ++rank) {
                                 const Word& one = words[rank];
                                 if (one.code == 0) continue;
                                 return Finish(absl::Status(static_cast<absl::StatusCode>(one.code),
                                                            absl::StrCat("rank ", rank, ": ", one.text)));
                               }
                               const auto go_on = then;  // this callback may go with the next call
                               go_on(words);
                             });
}

void Driver::WaitFor(const char* what) {
  deadline_ = loop_.RunAfter(plan_.timeout + kPatience, [this, what] {
    lost_others_ = true;
    Finish(absl::DeadlineExceededError(
        absl::StrCat("rank ", collective_.rank(), " waited in vain for ", what, " (", Where(), ")")));
  });
}

void Driver::Fail(const absl::Status& status) {
  if (trouble_.ok()) trouble_ = absl::Status(status.code(), absl::StrCat(Where(), ": ", status.message()));
}

std::string Driver::Where() const {
  if (case_ == plan_.cases.size()) return "at the end";
  const Contender& contender = plan_.contenders[now().contender];
  return absl::StrCat(ToString(now().pattern), " ", base::FormatSize(now().size), " ", contender.protocol, " ",
                      contender.variant);
}

void Driver::Finish(absl::StatusOr<std::vector<CaseResult>> result) {
  const Callback done = std::move(done_);
  if (done == nullptr) return;
  step_ = loop_.Post([done, result = std::move(result)] { done(result); });
}

}  // namespace tokamak::bench
