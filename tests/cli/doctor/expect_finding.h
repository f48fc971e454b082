// Expectations of the findings of tok doctor's checks.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "lib/cli/doctor/finding.h"

namespace tokamak::cli::doctor {

inline Finding FindingOf(const std::vector<Finding>& findings, const std::string& check) {
  for (const Finding& finding : findings) {
    if (finding.check == check) return finding;
  }
  ADD_FAILURE() << "no finding " << check;
  return NotApplicable("");
}

// The checks that were made: "link gid".
inline std::string NamesOf(const std::vector<Finding>& findings) {
  std::string names;
  for (const Finding& finding : findings) absl::StrAppend(&names, names.empty() ? "" : " ", finding.check);
  return names;
}

// Texts are parts of those of the finding.
inline void ExpectFinding(const std::vector<Finding>& findings, const std::string& check, Verdict verdict,
                          const std::string& seen, const std::string& advice) {
  const Finding finding = FindingOf(findings, check);
  const std::string all = absl::StrCat(check, ": ", finding.seen, " -> ", finding.advice);
  EXPECT_EQ(finding.verdict, verdict) << all;
  EXPECT_TRUE(absl::StrContains(finding.seen, seen)) << all << "; expected: " << seen;
  EXPECT_TRUE(absl::StrContains(finding.advice, advice)) << all << "; expected: " << advice;
}

}  // namespace tokamak::cli::doctor
