// The example of docs/verbs.md is this directory's verbs_example.h, and it works.
#include "tests/verbs/conformance/verbs_example.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>

#include "gtest/gtest.h"
#include "tests/verbs/conformance/backend.h"

namespace tokamak::example {
namespace {

std::string ReadFile(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file.good()) << path;
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(VerbsExampleTest, TheWriterSeesItsTextArriveAtTheOwner) {
  auto made = verbs::conformance::Profiles().at(0).make();
  ASSERT_TRUE(made.ok()) << made.status();
  verbs::conformance::Backend& backend = **made;
  uint8_t text[] = "a tokamak confines plasma";
  Owner owner(backend.loop(1), backend.device(1));
  ASSERT_TRUE(owner.Start().ok());
  Writer writer(backend.loop(0), backend.device(0), absl::MakeSpan(text));
  ASSERT_TRUE(writer.Start(owner.service()).ok());
  EXPECT_TRUE(backend.Drive([&] { return writer.done(); }, backend.patience()));
  EXPECT_TRUE(writer.status().ok()) << writer.status();
  EXPECT_TRUE(std::equal(std::begin(text), std::end(text), owner.bytes().begin()));
}

TEST(VerbsExampleTest, TheDocumentShowsTheFileAsItIs) {
  const std::string source = ReadFile("tests/verbs/conformance/verbs_example.h");
  const std::string document = ReadFile("docs/verbs.md");
  const std::string begin = "<!-- from tests/verbs/conformance/verbs_example.h -->\n```cpp\n";
  const size_t start = document.find(begin);
  ASSERT_NE(start, std::string::npos);
  const size_t end = document.find("```\n", start + begin.size());
  ASSERT_NE(end, std::string::npos);
  EXPECT_EQ(document.substr(start + begin.size(), end - start - begin.size()), source)
      << "copy verbs_example.h into docs/verbs.md";
}

}  // namespace
}  // namespace tokamak::example
