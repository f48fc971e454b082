#include "lib/daemon/memory/heap_trimmer.h"

// tcmalloc's, if linked (gperftools/malloc_extension_c.h).
extern "C" {
int MallocExtension_GetNumericProperty(const char* property, size_t* value) __attribute__((weak));
void MallocExtension_ReleaseToSystem(size_t bytes) __attribute__((weak));
}

namespace tokamak::daemon {

HeapTrimmer::HeapTrimmer(base::EventLoop& loop) : loop_(loop) { Look(); }

size_t HeapTrimmer::Free() {
  size_t bytes = 0;
  const bool known = MallocExtension_GetNumericProperty != nullptr &&
                     MallocExtension_GetNumericProperty("tcmalloc.pageheap_free_bytes", &bytes) != 0;
  return known ? bytes : 0;
}

void HeapTrimmer::Look() {
  const bool much = Free() > kKept && MallocExtension_ReleaseToSystem != nullptr;
  if (much) MallocExtension_ReleaseToSystem(kStep);
  next_ = loop_.RunAfter(much ? kBetweenSteps : kBetweenLooks, [this] { Look(); });
}

}  // namespace tokamak::daemon
