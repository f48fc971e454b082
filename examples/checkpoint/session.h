// Session says which trainer has a run now, and so what its objects are called.
//
// RUN/session is the one id that trainer and saver agree on beforehand. Its content names the
// trainer's life (64 random bits), and all other names hold that: objects and messages of an
// earlier life are never taken for this one's. Snapshots use two slots in turn, so the names of a
// life are few and known: the next life deletes them all, whatever the last one had reached when it
// was killed.
//
//   RUN/session                      {"life": "...", "pieces": N}
//   RUN/LIFE/SLOT/piece/I            a part of the state
//   RUN/LIFE/SLOT/head               the manifest, put when all pieces are sealed
//   RUN/LIFE/SLOT/saved              put by the saver, when all is on its disk
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "examples/checkpoint/manifest.h"
#include "examples/object_name.h"
#include "nlohmann/json.hpp"
#include "tokamak/status.h"

namespace tokamak::example {

struct Session {
  static constexpr uint64_t kSlots = 2;

  std::string run;
  uint64_t life = 0;
  uint64_t pieces = 0;  // of each snapshot

  static ObjectName NameOf(const std::string& run) { return ObjectName(absl::StrCat(run, "/session")); }

  // The slot of a life's snapshot.
  static uint64_t SlotOf(uint64_t number) { return number % kSlots; }

  ObjectName Piece(uint64_t slot, uint64_t piece) const { return InSlot(slot, absl::StrCat("piece/", piece)); }
  ObjectName Head(uint64_t slot) const { return InSlot(slot, "head"); }
  ObjectName Saved(uint64_t slot) const { return InSlot(slot, "saved"); }

  std::string ToJson() const { return nlohmann::json{{"life", ToHex(life)}, {"pieces", pieces}}.dump(); }

  static Result<Session> Parse(const std::string& run, absl::string_view text) {
    const auto parsed = nlohmann::json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
    if (parsed.is_object() && parsed.contains("life") && parsed["life"].is_string() && parsed.contains("pieces") &&
        parsed["pieces"].is_number_unsigned()) {
      const auto life = FromHex(parsed["life"].get<std::string>());
      const uint64_t pieces = parsed["pieces"].get<uint64_t>();
      if (life.ok() && pieces >= 1 && pieces <= Manifest::kMaxPieces) return Session{run, *life, pieces};
    }
    return Status(StatusCode::kInvalidArgument,
                  absl::StrCat("the object ", NameOf(run).text(),
                               " is not a trainer's: remove it (tok rm) or choose another --run"));
  }

 private:
  ObjectName InSlot(uint64_t slot, absl::string_view what) const {
    return ObjectName(absl::StrCat(run, "/", ToHex(life), "/", slot, "/", what));
  }
};

}  // namespace tokamak::example
