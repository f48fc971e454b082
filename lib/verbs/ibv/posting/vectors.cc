#include "lib/verbs/ibv/posting/vectors.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "lib/os/process/processors.h"

namespace tokamak::verbs::ibv {
namespace {

namespace fs = std::filesystem;

std::string FirstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// Returns 3 for "mlx5_comp3@pci:0000:3b:00.0" and "mlx5_comp3"; else -1.
int VectorOf(absl::string_view interrupt) {
  constexpr absl::string_view kMark = "_comp";
  const size_t mark = interrupt.find(kMark);
  if (mark == absl::string_view::npos) return -1;
  const absl::string_view number = interrupt.substr(mark + kMark.size());
  int vector = -1;
  if (!absl::SimpleAtoi(number.substr(0, number.find('@')), &vector) || vector < 0) return -1;
  return vector;
}

// Reads where it goes; some kernels and controllers only name where it may go.
std::vector<int> ProcessorsOf(const std::string& root, absl::string_view interrupt) {
  const std::string folder = absl::StrCat(root, "/proc/irq/", interrupt, "/");
  const std::vector<int> effective = os::ParseProcessors(FirstLine(folder + "effective_affinity_list"));
  return effective.empty() ? os::ParseProcessors(FirstLine(folder + "smp_affinity_list")) : effective;
}

}  // namespace

std::vector<std::vector<int>> VectorProcessors(const std::string& root, const std::string& device, int count) {
  const std::string of_device = absl::StrCat(root, "/sys/class/infiniband/", device, "/device/msi_irqs/");
  std::vector<std::vector<int>> processors(static_cast<size_t>(std::max(count, 0)));
  bool any = false;
  std::ifstream interrupts(root + "/proc/interrupts");
  for (std::string line; std::getline(interrupts, line);) {
    // "  93:  0  17  IR-PCI-MSI 1048577-edge  mlx5_comp0@pci:0000:3b:00.0"
    absl::StripAsciiWhitespace(&line);
    const absl::string_view text = line;
    const size_t colon = text.find(':');
    const size_t blank = text.find_last_of(" \t");
    if (colon == absl::string_view::npos || blank == absl::string_view::npos) continue;
    const absl::string_view number = text.substr(0, colon);
    const int vector = VectorOf(text.substr(blank + 1));
    std::error_code error;
    if (vector < 0 || vector >= count || !fs::exists(absl::StrCat(of_device, number), error)) continue;
    processors[static_cast<size_t>(vector)] = ProcessorsOf(root, number);
    any = true;
  }
  if (!any) processors.clear();
  return processors;
}

std::vector<int> VectorsFor(const std::vector<std::vector<int>>& processors, const std::vector<int>& allowed,
                            int count) {
  std::vector<int> vectors;
  for (size_t i = 0; i < processors.size(); ++i) {
    const bool meets = std::any_of(processors[i].begin(), processors[i].end(), [&allowed](int one) {
      return std::binary_search(allowed.begin(), allowed.end(), one);
    });
    if (meets) vectors.push_back(static_cast<int>(i));
  }
  if (!vectors.empty()) return vectors;
  vectors.resize(static_cast<size_t>(std::max(count, 1)));
  std::iota(vectors.begin(), vectors.end(), 0);
  return vectors;
}

}  // namespace tokamak::verbs::ibv
