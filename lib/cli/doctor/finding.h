// Finding is the result of one check of tok doctor: a verdict, what was seen, and what to do about
// it. Checks are tables: of checks by name, and in each of rows, of which the first that holds is
// the finding.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <iterator>
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
  Verdict verdict = Verdict::kOk;
  std::string seen;    // one sentence, with the numbers that led to the verdict
  std::string advice;  // what to do, a command where there is one; empty where nothing is to be done
  std::vector<std::pair<std::string, double>> numbers = {};  // for programs: name with its unit, value
  std::string check = "";                                    // a word or two: "memlock"
};

inline Finding Ok(std::string seen, std::string advice = "") {
  return {Verdict::kOk, std::move(seen), std::move(advice)};
}
inline Finding Warning(std::string seen, std::string advice) {
  return {Verdict::kWarning, std::move(seen), std::move(advice)};
}
inline Finding Failed(std::string seen, std::string advice) {
  return {Verdict::kFailed, std::move(seen), std::move(advice)};
}
inline Finding NotApplicable(std::string seen, std::string advice = "") {
  return {Verdict::kNotApplicable, std::move(seen), std::move(advice)};
}

inline Finding Named(std::string check, Finding finding) {
  finding.check = std::move(check);
  return finding;
}

struct Row {
  bool when;
  Finding finding;
};

// Returns the first row's finding that holds; the last row always does.
inline Finding FirstOf(std::initializer_list<Row> rows) {
  return std::find_if(rows.begin(), std::prev(rows.end()), [](const Row& row) { return row.when; })->finding;
}

// A check of what is known: its name, whether it concerns this case, and its finding.
template <typename Known>
struct Check {
  const char* name;
  bool (*concerns)(const Known& known);
  Finding (*look)(const Known& known);
};

template <typename Known, size_t kCount>
std::vector<Finding> RunChecks(const Check<Known> (&checks)[kCount], const Known& known) {
  std::vector<Finding> findings;
  for (const Check<Known>& check : checks) {
    if (check.concerns(known)) findings.push_back(Named(check.name, check.look(known)));
  }
  return findings;
}

}  // namespace tokamak::cli::doctor
