// Text that people type: sizes, times, addresses, devices, policies, tokd's flags. Anything is
// either refused or means something that can be written and read again.
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "lib/base/check.h"
#include "lib/base/units.h"
#include "lib/daemon/flags/options.h"
#include "lib/daemon/flags/policy_file.h"
#include "lib/transport/policy/policy.h"
#include "lib/verbs/soft/udp/udp_fabric.h"
#include "lib/verbs/types.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/target.h"

namespace tokamak::fuzz {
namespace {

void TryAddress(const std::string& text) {
  const absl::StatusOr<verbs::Address> address = verbs::Address::Parse(text);
  if (!address.ok()) return;
  const absl::StatusOr<verbs::Address> again = verbs::Address::Parse(address->ToString());
  CHECK(again.ok() && *again == *address) << text << " became " << address->ToString();
}

void TryDevice(const std::string& text) {
  const absl::StatusOr<verbs::soft::UdpDeviceName> device = verbs::soft::ParseUdpDevice(text);
  if (device.ok()) CHECK(verbs::soft::IsUdpDevice(text)) << text;
}

void TryPolicyFile(const std::string& text) {
  const absl::StatusOr<daemon::PolicyFile> file = daemon::ParsePolicyFile(text);
  if (!file.ok()) return;
  const absl::StatusOr<daemon::PolicyFile> again = daemon::ParsePolicyFile(daemon::FormatPolicyFile(*file));
  CHECK(again.ok()) << again.status();
  CHECK_EQ(again->policy.ToString(), file->policy.ToString());
  CHECK_EQ(again->measured.has_value(), file->measured.has_value());
}

void TryPolicy(const std::string& text) {
  TryPolicyFile(text);
  const absl::StatusOr<transport::Policy> policy = transport::Policy::Parse(text);
  if (!policy.ok()) return;
  const absl::StatusOr<transport::Policy> again = transport::Policy::Parse(policy->ToString());
  CHECK(again.ok() && again->ToString() == policy->ToString()) << text << " became " << policy->ToString();
  for (const uint64_t size : {uint64_t{0}, uint64_t{1} << 20, UINT64_MAX}) {
    CHECK(policy->Choose(size) != transport::Protocol::kAuto);
  }
}

void TrySize(const std::string& text) {
  const absl::StatusOr<uint64_t> size = base::ParseSize(text);
  if (!size.ok()) return;
  const std::string written = base::FormatSize(*size);
  std::string tight;  // as a flag: without the blank
  for (const char c : written) {
    if (c != ' ') tight.push_back(c);
  }
  if (*size < uint64_t{1} << 60) CHECK(base::ParseSize(tight).ok()) << text << " became " << written;
}

void TryDuration(const std::string& text) {
  const absl::StatusOr<base::Duration> duration = base::ParseDuration(text);
  if (!duration.ok()) return;
  CHECK(*duration >= base::Duration()) << text;
  base::FormatDuration(*duration);
}

// One argument in a line.
void TryFlags(const std::string& text) {
  std::vector<std::string> words = absl::StrSplit(text, '\n');
  for (std::string& word : words) word = word.c_str();  // as the system hands them over
  std::vector<const char*> arguments = {"tokd"};
  for (const std::string& word : words) arguments.push_back(word.c_str());
  const daemon::ParsedFlags parsed = daemon::ParseFlags(static_cast<int>(arguments.size()), arguments.data());
  if (!parsed.run) return;
  CHECK_LE(parsed.options.engines, 15u);
  CHECK(parsed.options.memory >= 1 << 20);
  CHECK(!parsed.options.name.empty() && !parsed.options.socket.empty());
}

}  // namespace
}  // namespace tokamak::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tokamak::fuzz;  // NOLINT: in a function
  Input input(data, size);
  const uint32_t kind = input.Below(7);
  const absl::Span<const uint8_t> rest = input.Rest();
  const std::string text(reinterpret_cast<const char*>(rest.data()), rest.size());
  switch (kind) {
    case 0:
      TryAddress(text);
      break;
    case 1:
      TryDevice(text);
      break;
    case 2:
      TryPolicy(text);
      break;
    case 3:
      TrySize(text);
      break;
    case 4:
      TryDuration(text);
      break;
    case 5:
      tokamak::daemon::ParseDirectory(text).IgnoreError();
      break;
    case 6:
      TryFlags(text);
      break;
  }
  return 0;
}
