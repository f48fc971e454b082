// Finding is what one check of tok doctor came to: a verdict, what was seen, and what to do about
// it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tokamak::cli::doctor {

enum class Verdict : uint8_t {
  kOk,
  kWarning,        // works, but not as well as it could, or not in every case
  kFailed,         // RDMA does not work here because of this
  kNotApplicable,  // could not be looked at, or does not matter here; `seen` says why
};
const char* ToString(Verdict verdict);

struct Finding {
  std::string check;  // a word or two: "memlock"
  Verdict verdict = Verdict::kOk;
  std::string seen;    // one sentence, with the numbers that led to the verdict
  std::string advice;  // what to do, a command where there is one; empty where nothing is to be done
  std::vector<std::pair<std::string, double>> numbers;  // for programs: name with its unit, value
};

inline Finding Ok(std::string check, std::string seen, std::string advice = "") {
  return {std::move(check), Verdict::kOk, std::move(seen), std::move(advice), {}};
}
inline Finding Warning(std::string check, std::string seen, std::string advice) {
  return {std::move(check), Verdict::kWarning, std::move(seen), std::move(advice), {}};
}
inline Finding Failed(std::string check, std::string seen, std::string advice) {
  return {std::move(check), Verdict::kFailed, std::move(seen), std::move(advice), {}};
}
inline Finding NotApplicable(std::string check, std::string seen, std::string advice = "") {
  return {std::move(check), Verdict::kNotApplicable, std::move(seen), std::move(advice), {}};
}

}  // namespace tokamak::cli::doctor
