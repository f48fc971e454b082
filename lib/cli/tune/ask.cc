#include "lib/cli/tune/ask.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace tokamak::cli::tune {

ObjectId CallId(const std::string& node) { return ObjectId::FromName(absl::StrCat("tok tune call ", node)); }

ObjectId AskId(uint64_t session, uint64_t number) {
  return ObjectId::FromName(absl::StrCat("tok tune ask ", session, " ", number));
}

std::string EncodeSession(uint64_t session) { return absl::StrCat(session); }

absl::StatusOr<uint64_t> DecodeSession(absl::string_view text) {
  uint64_t session = 0;
  if (text.size() > 20 || !absl::SimpleAtoi(text, &session)) {
    return absl::InvalidArgumentError("the call to tune is none that tok tune makes");
  }
  return session;
}

std::string EncodeAsk(absl::Span<const TestObject> objects) {
  std::string text;
  for (const TestObject& object : objects) absl::StrAppend(&text, object.id.ToHex(), " ", object.size, "\n");
  return text;
}

absl::StatusOr<std::vector<TestObject>> DecodeAsk(absl::string_view text, uint64_t most_bytes) {
  const absl::Status wrong = absl::InvalidArgumentError("what is asked for is nothing that tok tune asks for");
  std::vector<TestObject> objects;
  uint64_t bytes = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(line, absl::MaxSplits(' ', 1));
    const auto id = ObjectId::FromHex({parts.first.data(), parts.first.size()});
    TestObject object;
    if (!id.has_value() || !absl::SimpleAtoi(parts.second, &object.size) || objects.size() == kMaxAsked) return wrong;
    if (object.size > most_bytes - bytes) {
      return absl::InvalidArgumentError(
          absl::StrCat("more than ", most_bytes, " bytes are asked for at once: a smaller --largest suits this node"));
    }
    object.id = *id;
    bytes += object.size;
    objects.push_back(object);
  }
  return objects;
}

}  // namespace tokamak::cli::tune
