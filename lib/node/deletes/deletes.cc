#include "lib/node/deletes/deletes.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tokamak::node {

class Deletes::One final : public base::Handle, public Turns::Turn {
 public:
  One(Deletes& deletes, const base::ObjectId& id, ObjectDelete::Callback done)
      : deletes_(deletes), watch_(deletes.lifetime_.Watched()), id_(id), done_(std::move(done)) {}
  ~One() override {
    if (!watch_.over() && (waits() || runs())) deletes_.End(*this);
  }

  void Run() {
    overdue_.Cancel();
    running_ = deletes_.begin_(id_, [this](const absl::StatusOr<uint32_t>& copies) { Answer(copies); });
  }

  void Wait() {
    overdue_ = deletes_.loop_.RunAfter(kTurnDeadline, [this] {
      Answer(absl::UnavailableError(
          absl::StrCat("nothing was deleted: ", deletes_.running(),
                       " Deletes of this node's programs are under way, and it was not this one's turn within ",
                       kTurnDeadline.milliseconds() / 1000, " s: try again with fewer at once")));
    });
  }

 private:
  // May drop this.
  void Answer(const absl::StatusOr<uint32_t>& copies) {
    const ObjectDelete::Callback done = std::move(done_);
    deletes_.End(*this);
    done(copies);
  }

  Deletes& deletes_;
  const base::Lifetime::Watch watch_;
  const base::ObjectId id_;
  ObjectDelete::Callback done_;
  base::Timer overdue_;
  base::Pending running_;
};

base::Pending Deletes::Add(const base::ObjectId& id, store::Owner who, ObjectDelete::Callback done) {
  auto one = std::make_unique<One>(*this, id, std::move(done));
  if (turns_.Begin(who, *one)) {
    one->Run();
  } else {
    one->Wait();
  }
  return one;
}

void Deletes::End(One& one) {
  turns_.End(one);
  if (turns_.waiting() > 0) RunNextSoon();
}

// A task of its own: waiters may be dropped now.
void Deletes::RunNextSoon() {
  if (next_.armed()) return;
  next_ = loop_.Post([this] {
    while (Turns::Turn* const turn = turns_.Next()) static_cast<One*>(turn)->Run();
  });
}

}  // namespace tokamak::node
