#include "lib/store/hash.h"

#include "lib/base/check.h"

namespace tokamak::store {

StreamHash::StreamHash() : state_(CHECK_NOTNULL(XXH64_createState())) {
  CHECK_EQ(XXH64_reset(state_.get(), 0), XXH_OK);
}

void StreamHash::Add(absl::Span<const uint8_t> bytes) {
  if (bytes.empty()) return;  // the address may be null
  CHECK_EQ(XXH64_update(state_.get(), bytes.data(), bytes.size()), XXH_OK);
}

uint64_t StreamHash::hash() const { return XXH64_digest(state_.get()); }

}  // namespace tokamak::store
