// NicQueuePair is a program's queue pair as the NIC sees it, connected or of datagrams. Requests
// come as they stand in the program's ring, attributes as the program set them.
//
// Errors are errno values, 0 is success. Thread rule: one lock's.
#pragma once

#include <rdma/ib_user_verbs.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "lib/verbs/kernel/object.h"
#include "lib/verbs/kernel/object_table.h"
#include "lib/verbs/kernel/program/rxe_abi.h"
#include "lib/verbs/kernel/queue_pair_rules.h"
#include "lib/verbs/kernel/user_device.h"

namespace tokamak::verbs::kernel {

struct NicQueuePairOptions {
  CompletionQueue* send_queue = nullptr;
  CompletionQueue* receive_queue = nullptr;
  SharedReceiveQueue* shared_receives = nullptr;
  uint32_t max_send_requests = 0;
  uint32_t max_receive_requests = 0;
};

class NicQueuePair {
 public:
  // Requests posted in one call.
  static constexpr size_t kBatch = 8;

  virtual ~NicQueuePair() = default;

  virtual Service service() const = 0;
  virtual uint32_t number() const = 0;
  virtual QueuePairState state() const = 0;

  // `set`: all that the program has set so far.
  virtual absl::Status Modify(QueuePairState to, const ib_uverbs_modify_qp& set) = 0;

  enum class Added : uint8_t {
    kYes,
    kLater,    // once the batch is posted
    kRefused,  // no device takes it
  };

  // Adds a request, which completes with `id`, to the batch, which must have room. `sges` and their
  // memory must stay until PostBatch.
  virtual Added Add(uint64_t id, const rxe_send_wr& request, SendFlags flags, absl::Span<const Sge> sges) = 0;
  virtual size_t batched() const = 0;

  // Posts the batch, which is empty afterwards.
  virtual PostResult PostBatch() = 0;
  virtual PostResult PostReceive(absl::Span<const ReceiveRequest> requests) = 0;

  // Joins a multicast group.
  virtual int Attach(const Address& group) = 0;
  virtual int Detach(const Address& group) = 0;
};

// `objects` has the windows, regions and address handles that requests name; it outlives the queue
// pair.
int MakeConnectedQueuePair(UserDevice& device, DomainObject& domain, const ObjectTable& objects,
                           const NicQueuePairOptions& options, std::unique_ptr<NicQueuePair>* made);
int MakeDatagramQueuePair(UserDevice& device, DomainObject& domain, const ObjectTable& objects,
                          const NicQueuePairOptions& options, std::unique_ptr<NicQueuePair>* made);

}  // namespace tokamak::verbs::kernel
