#include "examples/checkpoint/manifest.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "examples/object_name.h"
#include "nlohmann/json.hpp"
#include "tokamak/span.h"
#include "tokamak/status.h"
#include "xxhash.h"

namespace tokamak::example {

using nlohmann::json;

std::string Manifest::ToJson() const {
  json texts = json::array();
  for (const uint64_t hash : hashes) texts.push_back(ToHex(hash));
  return json{{"run", run},    {"life", ToHex(life)}, {"number", number}, {"resumed", resumed},
              {"step", step},  {"final", final},      {"bytes", bytes},   {"piece_bytes", piece_bytes},
              {"xxh64", texts}}
      .dump();
}

Result<Manifest> Manifest::Parse(absl::string_view text, absl::string_view what) {
  const auto wrong = [&](absl::string_view why) {
    return Status(StatusCode::kInvalidArgument, absl::StrCat(what, " is no manifest: ", why));
  };
  if (text.size() > kMaxBytes) return wrong("it is too long");
  const json parsed = json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (!parsed.is_object()) return wrong("it is no JSON object");
  for (const char* number : {"number", "step", "bytes", "piece_bytes"}) {
    if (!parsed.contains(number) || !parsed[number].is_number_unsigned()) return wrong(absl::StrCat(number, "?"));
  }
  for (const char* flag : {"resumed", "final"}) {
    if (!parsed.contains(flag) || !parsed[flag].is_boolean()) return wrong(absl::StrCat(flag, "?"));
  }
  for (const char* name : {"run", "life"}) {
    if (!parsed.contains(name) || !parsed[name].is_string()) return wrong(absl::StrCat(name, "?"));
  }
  if (!parsed.contains("xxh64") || !parsed["xxh64"].is_array()) return wrong("xxh64?");
  Manifest manifest;
  manifest.run = parsed["run"].get<std::string>();
  manifest.number = parsed["number"].get<uint64_t>();
  manifest.resumed = parsed["resumed"].get<bool>();
  manifest.step = parsed["step"].get<uint64_t>();
  manifest.final = parsed["final"].get<bool>();
  manifest.bytes = parsed["bytes"].get<uint64_t>();
  manifest.piece_bytes = parsed["piece_bytes"].get<uint64_t>();
  if (!CheckName("run", manifest.run).ok()) return wrong("run?");
  const auto life = FromHex(parsed["life"].get<std::string>());
  if (!life.ok()) return wrong("life?");
  manifest.life = *life;
  const auto pieces = CountPieces(manifest.bytes, manifest.piece_bytes);
  if (!pieces.ok()) return wrong(pieces.status().message());
  if (parsed["xxh64"].size() != *pieces) return wrong("another number of hashes than of pieces");
  for (const json& hash : parsed["xxh64"]) {
    const auto number =
        hash.is_string() ? FromHex(hash.get<std::string>()) : Status(StatusCode::kInvalidArgument, "xxh64?");
    if (!number.ok()) return wrong("xxh64?");
    manifest.hashes.push_back(*number);
  }
  return manifest;
}

Result<uint64_t> CountPieces(uint64_t bytes, uint64_t piece_bytes) {
  if (bytes == 0 || piece_bytes == 0)
    return Status(StatusCode::kInvalidArgument, "state and pieces have at least one byte");
  const uint64_t pieces = (bytes - 1) / piece_bytes + 1;
  if (pieces > Manifest::kMaxPieces) {
    return Status(StatusCode::kInvalidArgument, absl::StrCat(pieces, " pieces, and at most ", Manifest::kMaxPieces,
                                                             " are possible: make them larger"));
  }
  return pieces;
}

uint64_t HashOfPiece(Span<const uint8_t> piece) { return XXH64(piece.data(), piece.size(), 0); }

std::string ToHex(uint64_t number) { return absl::StrCat(absl::Hex(number, absl::kZeroPad16)); }

Result<uint64_t> FromHex(absl::string_view text) {
  uint64_t number = 0;
  if (text.size() != 16 || !absl::SimpleHexAtoi(text, &number)) {
    return Status(StatusCode::kInvalidArgument, "not 16 hexadecimal digits");
  }
  return number;
}

}  // namespace tokamak::example
