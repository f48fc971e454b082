#include "examples/kv_cache/prompt.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "tokamak/status.h"

namespace tokamak::example {

using nlohmann::json;

std::string Prompt::ToJson() const {
  return json{{"layers", shape.layers}, {"tokens", shape.tokens}, {"width", shape.width}, {"work", shape.work},
              {"seed", seed},           {"by_layers", by_layers}, {"last", last}}
      .dump();
}

Result<Prompt> Prompt::Parse(absl::string_view text, absl::string_view what) {
  const auto wrong = [&](absl::string_view why) {
    return Status(StatusCode::kInvalidArgument, absl::StrCat(what, " is no prompt: ", why));
  };
  if (text.size() > kMaxBytes) return wrong("it is too long");
  const json parsed = json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (!parsed.is_object()) return wrong("it is no JSON object");
  Prompt prompt;
  const struct {
    const char* name;
    uint32_t& into;
  } numbers[] = {{"layers", prompt.shape.layers},
                 {"tokens", prompt.shape.tokens},
                 {"width", prompt.shape.width},
                 {"work", prompt.shape.work}};
  for (const auto& number : numbers) {
    if (!parsed.contains(number.name) || !parsed[number.name].is_number_unsigned() ||
        parsed[number.name].get<uint64_t>() > std::numeric_limits<uint32_t>::max()) {
      return wrong(absl::StrCat(number.name, "?"));
    }
    number.into = parsed[number.name].get<uint32_t>();
  }
  if (!parsed.contains("seed") || !parsed["seed"].is_number_unsigned()) return wrong("seed?");
  prompt.seed = parsed["seed"].get<uint64_t>();
  for (const char* flag : {"by_layers", "last"}) {
    if (!parsed.contains(flag) || !parsed[flag].is_boolean()) return wrong(absl::StrCat(flag, "?"));
  }
  prompt.by_layers = parsed["by_layers"].get<bool>();
  prompt.last = parsed["last"].get<bool>();
  if (Status s = prompt.shape.Check(); !s.ok()) return wrong(s.message());
  return prompt;
}

}  // namespace tokamak::example
