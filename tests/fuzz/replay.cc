// The test that every fuzz target is: its corpus, and a few thousand seeded mutations of it.
// Finding is ci/fuzz's business; this shows that what was found stays mended and that the target
// itself still works, under any compiler and sanitizer.
#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "lib/base/check.h"
#include "lib/base/random.h"
#include "tests/fuzz/setup.h"
#include "tests/fuzz/target.h"

namespace tokamak::fuzz {
namespace {

using Bytes = std::vector<uint8_t>;

constexpr size_t kMaxInput = 4096;

const Bytes* running = nullptr;  // for whoever looks at a dead process

// Prints the input that killed the process, ready to be made a file of the corpus by `xxd -r -p`.
void PrintInput(int signal) {
  if (running != nullptr) {
    const char text[] = "\nthe input, in hexadecimal:\n";
    ssize_t ignored = write(STDERR_FILENO, text, sizeof(text) - 1);
    for (const uint8_t byte : *running) {
      const char hex[] = {"0123456789abcdef"[byte >> 4], "0123456789abcdef"[byte & 15]};
      ignored = write(STDERR_FILENO, hex, sizeof(hex));
    }
    ignored = write(STDERR_FILENO, "\n", 1);
    static_cast<void>(ignored);
  }
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

void TryInput(const Bytes& input) {
  running = &input;
  LLVMFuzzerTestOneInput(input.data(), input.size());
  running = nullptr;
}

std::vector<Bytes> Corpus() {
  const std::string folder = CHECK_NOTNULL(std::getenv("FUZZ_CORPUS"));
  std::vector<std::string> names;
  DIR* const listing = CHECK_NOTNULL(opendir(folder.c_str()));
  while (const dirent* entry = readdir(listing)) {
    if (entry->d_name[0] != '.') names.push_back(entry->d_name);
  }
  closedir(listing);
  std::sort(names.begin(), names.end());
  std::vector<Bytes> corpus;
  for (const std::string& name : names) {
    std::ifstream file(folder + "/" + name, std::ios::binary);
    corpus.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return corpus;
}

Bytes Mutate(const std::vector<Bytes>& corpus, base::Random& random) {
  Bytes bytes = corpus[random.Below(corpus.size())];
  for (uint64_t changes = 1 + random.Below(6); changes > 0; --changes) {
    const size_t at = random.Below(bytes.size() + 1);
    const auto here = bytes.begin() + static_cast<ptrdiff_t>(at);
    switch (random.Below(5)) {
      case 0:  // a byte becomes another
      case 1:
        if (at < bytes.size()) bytes[at] = static_cast<uint8_t>(random.Next());
        break;
      case 2:  // a bit turns
        if (at < bytes.size()) bytes[at] ^= static_cast<uint8_t>(1u << random.Below(8));
        break;
      case 3:  // the end, or a piece, is missing
        bytes.erase(here, random.Chance(0.2) ? bytes.end() : std::min(bytes.end(), here + 4));
        break;
      case 4: {  // a piece of another input comes in
        const Bytes& other = corpus[random.Below(corpus.size())];
        const size_t begin = random.Below(other.size() + 1);
        const size_t length = std::min<size_t>(random.Below(64), other.size() - begin);
        bytes.insert(here, other.begin() + static_cast<ptrdiff_t>(begin),
                     other.begin() + static_cast<ptrdiff_t>(begin + length));
        break;
      }
    }
  }
  bytes.resize(std::min(bytes.size(), kMaxInput));
  return bytes;
}

class FuzzTarget : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    Prepare();
    for (const int signal : {SIGABRT, SIGSEGV, SIGTRAP, SIGFPE, SIGILL, SIGBUS}) {
      const auto before = std::signal(signal, PrintInput);
      if (before != SIG_DFL) std::signal(signal, before);  // a sanitizer's, which ends in SIGABRT
    }
  }
};

TEST_F(FuzzTarget, TakesItsCorpus) {
  const std::vector<Bytes> corpus = Corpus();
  ASSERT_FALSE(corpus.empty());
  for (const Bytes& input : corpus) TryInput(input);
  TryInput({});
}

TEST_F(FuzzTarget, TakesMutationsOfItsCorpus) {
  const std::vector<Bytes> corpus = Corpus();
  ASSERT_FALSE(corpus.empty());
  const int rounds = std::atoi(CHECK_NOTNULL(std::getenv("FUZZ_ROUNDS")));
  base::Random random(20260101);
  for (int i = 0; i < rounds; ++i) TryInput(Mutate(corpus, random));
}

}  // namespace
}  // namespace tokamak::fuzz
