#include "lib/cli/tune/client_holder.h"

#include "absl/strings/str_cat.h"
#include "lib/base/units.h"
#include "lib/cli/as_absl.h"

namespace tokamak::cli::tune {

absl::Status ClientHolder::Make(absl::Span<const TestObject> objects) {
  for (const TestObject& object : objects) {
    while (bytes_.size() < object.size) bytes_.push_back(static_cast<uint8_t>(bytes_.size() * 7));
    PutOptions options;
    options.confirmed = true;
    const absl::Status put =
        AsAbsl(client_.Put(object.id, absl::MakeConstSpan(bytes_).first(object.size), {}, options));
    if (put.ok()) continue;
    return absl::Status(put.code(), absl::StrCat("a test object of ", base::FormatSize(object.size), " on ",
                                                 client_.node(), ": ", put.message()));
  }
  return absl::OkStatus();
}

}  // namespace tokamak::cli::tune
