#include "lib/cli/tune/serve.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/base/units.h"
#include "lib/cli/common/as_absl.h"
#include "lib/cli/tune/ask.h"
#include "lib/cli/tune/client_holder.h"
#include "lib/cli/tune/link.h"

namespace tokamak::cli::tune {
namespace {

// Includes the other side's pulls between two asks.
constexpr base::Duration kAskDeadline = base::Seconds(60);

absl::StatusOr<std::string> GetText(Client& client, const ObjectId& id, base::Duration timeout) {
  const auto got = AsAbsl(client.Get(id, AsTimeout(timeout)));
  if (!got.ok()) return got.status();
  return std::string(got->data());
}

absl::Status Delete(Client& client, const std::vector<TestObject>& objects) {
  absl::Status first;
  for (const TestObject& object : objects) {
    const absl::Status deleted = AsAbsl(client.Delete(object.id));
    if (!absl::IsNotFound(deleted)) first.Update(deleted);
  }
  return first;
}

// An empty ask ends it.
absl::Status ServeAsks(Client& client, uint64_t session, Undo& undo) {
  ClientHolder holder(client);
  for (uint64_t number = 1;; ++number) {
    const auto text = GetText(client, AskId(session, number), kAskDeadline);
    if (!text.ok()) {
      return absl::DeadlineExceededError(
          absl::StrCat("the other tok tune has not asked for anything for ", base::FormatDuration(kAskDeadline)));
    }
    const auto objects = DecodeAsk(*text, client.capacity() / kMemoryPart);
    if (!objects.ok()) return objects.status();
    // The other side deleted the previous ask's.
    if (absl::Status status = undo.Complete(); !status.ok()) return status;
    if (objects->empty()) {
      client.Delete(AskId(session, number)).IgnoreError();  // never used again
      return absl::OkStatus();
    }
    absl::Status made;
    const absl::Status done = undo.Do(
        [&] {
          made = holder.Make(*objects);
          return absl::OkStatus();
        },
        [&client, made_objects = *objects] { return Delete(client, made_objects); });
    if (!done.ok()) return done;
    if (!made.ok()) return made;
  }
}

}  // namespace

absl::Status Serve(Client& client, base::Duration patience, Undo& undo) {
  const auto call = GetText(client, CallId(client.node()), patience);
  if (!call.ok()) {
    return absl::Status(call.status().code(),
                        absl::StrCat("no tok tune --peer ", client.node(), " has called: ", call.status().message()));
  }
  const auto session = DecodeSession(*call);
  if (!session.ok()) return session.status();
  const absl::Status served = ServeAsks(client, *session, undo);
  if (!served.ok()) undo.TakeBack().IgnoreError();
  return served;
}

}  // namespace tokamak::cli::tune
