#include "tests/support/test_devices.h"

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "lib/base/check.h"

namespace tokamak::testing_support {

namespace {

constexpr uint32_t kMostNodes = 250;  // each has an address of 127.0.0.0/24

std::vector<cli::NodePlace> Place() {
  cli::Places places;
  places.devices = TestDevices();
  auto placed = cli::PlaceNodes(places, kMostNodes);
  CHECK(placed.ok()) << "TOKAMAK_TEST_DEVICES: " << placed.status();
  return *std::move(placed);
}

}  // namespace

std::vector<std::string> TestDevices() {
  if (const char* const given = std::getenv("TOKAMAK_TEST_DEVICES"); given != nullptr) {
    return absl::StrSplit(given, ',', absl::SkipEmpty());
  }
  std::vector<std::string> names;
  if (const char* const lab = std::getenv("TOKAMAK_LAB_DEVICES"); lab != nullptr) {
    for (const auto device : absl::StrSplit(lab, ' ', absl::SkipEmpty())) names.push_back(absl::StrCat("ibv:", device));
  }
  return names;
}

cli::NodePlace PlaceOfNode(int index) {
  static const std::vector<cli::NodePlace> places = Place();
  CHECK(index >= 1 && index <= static_cast<int>(places.size())) << "no node " << index;
  return places[static_cast<size_t>(index - 1)];
}

}  // namespace tokamak::testing_support
