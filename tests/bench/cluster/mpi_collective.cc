#include "tests/bench/cluster/mpi_collective.h"

#include <utility>

#include "lib/base/check.h"

namespace tokamak::bench {

// Known to the collective until it is dropped or answered.
class MpiCollective::Operation final : public base::Handle {
 public:
  Operation(MpiCollective& collective, base::Task done) : collective_(&collective), done_(std::move(done)) {}
  ~Operation() override {
    if (collective_ != nullptr) collective_->operation_ = nullptr;
  }

  // May drop this.
  void Answer() {
    collective_ = nullptr;
    const base::Task done = std::move(done_);
    done();
  }
  void Orphan() { collective_ = nullptr; }

 private:
  MpiCollective* collective_;
  base::Task done_;
};

MpiCollective::MpiCollective(base::EventLoop& loop, MPI_Comm communicator) : loop_(loop), communicator_(communicator) {
  int rank = 0, ranks = 0;
  MPI_Comm_rank(communicator_, &rank);
  MPI_Comm_size(communicator_, &ranks);
  rank_ = static_cast<uint32_t>(rank);
  ranks_ = static_cast<uint32_t>(ranks);
}

MpiCollective::~MpiCollective() {
  if (operation_ != nullptr) operation_->Orphan();
  if (request_ != MPI_REQUEST_NULL) MPI_Abort(communicator_, 1);
}

base::Pending MpiCollective::Gather(absl::Span<const uint8_t> mine, GatherCallback done) {
  CHECK(request_ == MPI_REQUEST_NULL) << "one collective at a time";
  mine_.assign(mine.begin(), mine.end());
  all_.resize(mine.size() * ranks_);
  const int size = static_cast<int>(mine_.size());
  MPI_Iallgather(mine_.data(), size, MPI_BYTE, all_.data(), size, MPI_BYTE, communicator_, &request_);
  return Begin([this, done = std::move(done)] {
    const std::vector<uint8_t> all = std::move(all_);  // the callback may begin the next
    done(all);
  });
}

base::Pending MpiCollective::Barrier(base::Task done) {
  CHECK(request_ == MPI_REQUEST_NULL) << "one collective at a time";
  MPI_Ibarrier(communicator_, &request_);
  return Begin(std::move(done));
}

base::Pending MpiCollective::Begin(base::Task done) {
  began_ = loop_.Now();
  auto operation = std::make_unique<Operation>(*this, std::move(done));
  operation_ = operation.get();
  test_ = loop_.Post([this] { Test(); });
  return operation;
}

void MpiCollective::Test() {
  int over = 0;
  MPI_Test(&request_, &over, MPI_STATUS_IGNORE);
  if (over == 0) {
    test_ = loop_.RunAfter(loop_.Now() - began_ < kShort ? kQuickTest : kSlowTest, [this] { Test(); });
    return;
  }
  if (Operation* const operation = std::exchange(operation_, nullptr)) operation->Answer();
}

}  // namespace tokamak::bench
