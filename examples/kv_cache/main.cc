// kv_cache: a prefill on one node hands the key-value cache over to a decoder on another, layer by
// layer.
#include <algorithm>
#include <exception>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "examples/kv_cache/cache_model.h"
#include "examples/kv_cache/decode.h"
#include "examples/kv_cache/prefill.h"
#include "examples/moments.h"
#include "examples/object_name.h"
#include "examples/units.h"
#include "tokamak/client.h"
#include "tokamak/status.h"

namespace tokamak::example {
namespace {

constexpr char kAbout[] = "kv_cache hands a key-value cache from a prefill to a decoder, layer by layer.";
constexpr char kFooter[] =
    "Example, with the two nodes of tok up --nodes 2 --memory 512MiB (their sockets are printed):\n"
    "  kv_cache prefill --socket NODE1.sock --name chat &\n"
    "  kv_cache decode --socket NODE2.sock --name chat --rounds 5\n"
    "Exit codes: 0 done, 1 it failed (one line on standard error says why), 2 wrong flags.";

struct Flags {
  std::string socket;
  std::string name = "chat";
  double idle = 600;     // seconds
  double deadline = 30;  // the same
  uint64_t rounds = 1;
  bool compare = true;
  bool check = false;
  DecodeOptions decode;
  MomentFlags moments;
};

int Fail(const Status& status, int code = 1) {
  std::cerr << "kv_cache: " << status.message() << std::endl;
  return code;
}

Result<Client> Connect(const Flags& flags) {
  ClientOptions options;
  options.name = "kv_cache";
  return Client::Connect(flags.socket, options);
}

int RunPrefill(const Flags& flags) {
  auto client = Connect(flags);
  if (!client.ok()) return Fail(client.status());
  PrefillOptions options;
  options.name = flags.name;
  options.idle = Seconds(flags.idle);
  options.deadline = Seconds(flags.deadline);
  options.on_moment = ToDoAtMoments(flags.moments);
  Prefill prefill(*client, options);
  if (Status s = prefill.Serve(); !s.ok()) return Fail(s);
  std::cout << "prefill: " << prefill.served() << " requests served, " << prefill.cancelled() << " given up\n";
  return 0;
}

double Median(std::vector<double> numbers) {
  std::sort(numbers.begin(), numbers.end());
  return numbers[numbers.size() / 2];
}

// Returns the tokens of a decoder that has computed the cache itself.
std::vector<uint64_t> TokensOf(const DecodeOptions& options) {
  const CacheShape& shape = options.prompt.shape;
  std::vector<std::vector<float>> blocks(shape.layers, std::vector<float>(shape.block_floats()));
  PrefillModel prefill(shape, options.prompt.seed);
  for (std::vector<float>& block : blocks) prefill.ComputeLayer(block);
  DecodeModel decode(shape, options.prompt.seed);
  std::vector<uint64_t> tokens;
  while (tokens.size() < options.tokens) {
    for (const std::vector<float>& block : blocks) decode.Attend(block);
    tokens.push_back(decode.EndToken());
  }
  return tokens;
}

struct Way {
  const char* name;
  bool by_layers;
  std::vector<double> first_token;
  std::vector<double> first_layer;  // used
  std::vector<double> last_layer;   // arrived
};

Status DecodeAll(Client& client, const Flags& flags, std::vector<Way>& ways) {
  DecodeOptions options = flags.decode;
  for (uint64_t round = 0; round < flags.rounds; ++round) {
    for (Way& way : ways) {
      options.prompt.seed = flags.decode.prompt.seed + round;
      options.prompt.by_layers = way.by_layers;
      options.prompt.last = round + 1 == flags.rounds && &way == &ways.back();
      const auto report = Decode(client, options);
      if (!report.ok()) return report.status();
      ++options.number;
      way.first_token.push_back(report->first_token);
      way.first_layer.push_back(report->used.front());
      way.last_layer.push_back(report->arrived.back());
      if (flags.check && report->tokens != TokensOf(options)) {
        return Status(StatusCode::kDataLoss,
                      absl::StrCat("request ", options.name, "/", options.number - 1,
                                   ": not the tokens of a decoder that computed the cache itself"));
      }
      std::cout << "request " << options.number - 1 << " (" << way.name << "): tokens";
      for (const uint64_t token : report->tokens) std::cout << absl::StrFormat(" %016x", token);
      std::cout << std::endl;
    }
  }
  return Status();
}

int RunDecode(Flags& flags) {
  if (Status s = flags.decode.prompt.shape.Check(); !s.ok()) return Fail(s, 2);
  auto client = Connect(flags);
  if (!client.ok()) return Fail(client.status());
  const CacheShape& shape = flags.decode.prompt.shape;
  // At the least all layers of one request; the bytes of both nodes are needed, this one's are
  // known.
  if (shape.layers * shape.block_bytes() > client->capacity()) {
    return Fail(Status(
        StatusCode::kResourceExhausted,
        absl::StrCat("the cache takes ", FormatSize(shape.layers * shape.block_bytes()), ", and this node's store ",
                     FormatSize(client->capacity()), ": give tokd more --memory, or ask for less")));
  }
  flags.decode.name = flags.name;
  flags.decode.deadline = Seconds(flags.deadline);
  flags.decode.on_moment = ToDoAtMoments(flags.moments);
  std::vector<Way> ways = {{"by layers", true, {}, {}, {}}};
  if (flags.compare) ways.push_back({"all layers, then transfer", false, {}, {}, {}});
  if (Status s = DecodeAll(*client, flags, ways); !s.ok()) return Fail(s);
  std::cout << shape.layers << " layers of " << FormatSize(shape.block_bytes()) << ", " << flags.decode.gets_under_way
            << " gets under way, medians of " << flags.rounds << ":\n";
  for (const Way& way : ways) {
    std::cout << absl::StrFormat(
        "%-26s first layer used after %8.2f ms, last layer here %8.2f ms, first token %8.2f ms\n", way.name,
        1e3 * Median(way.first_layer), 1e3 * Median(way.last_layer), 1e3 * Median(way.first_token));
  }
  if (flags.compare) {
    const double saved = Median(ways[1].first_token) - Median(ways[0].first_token);
    std::cout << absl::StrFormat("overlap: the first token comes %.2f ms sooner (%.0f %%)\n", 1e3 * saved,
                                 100 * saved / Median(ways[1].first_token));
  }
  return 0;
}

int Run(int argc, char** argv) {
  Flags flags;
  CLI::App app(kAbout, "kv_cache");
  app.footer(kFooter);
  app.require_subcommand(1);
  CacheShape& shape = flags.decode.prompt.shape;

  CLI::App* const prefill = app.add_subcommand("prefill", "serve a decoder's requests, up to its last");
  CLI::App* const decode = app.add_subcommand("decode", "on another node: ask for a cache, and decode with it");
  for (CLI::App* const command : {prefill, decode}) {
    command->add_option("--socket", flags.socket, "the Unix socket of this node's tokd")->required();
    command->add_option("--name", flags.name, "what the two call what they do together")->capture_default_str();
    AddMomentFlags(*command, flags.moments);
  }
  AddTime(*prefill, "--idle", flags.idle, "give up when no prompt comes for this long", "10min");
  AddTime(*prefill, "--deadline", flags.deadline, "for the decoder to be done, once all layers are put", "30s");
  AddTime(*decode, "--deadline", flags.deadline, "for the first token", "30s");
  decode->add_option("--layers", shape.layers, "layers of the model")->capture_default_str();
  decode->add_option("--tokens", shape.tokens, "tokens of the prompt")->capture_default_str();
  decode->add_option("--width", shape.width, "floats of a key, and of a value")->capture_default_str();
  decode->add_option("--work", shape.work, "how long prefill computes, in rounds for each layer")
      ->capture_default_str();
  decode->add_option("--seed", flags.decode.prompt.seed, "stands for the prompt's text")->capture_default_str();
  decode->add_option("--decode", flags.decode.tokens, "tokens to decode")
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str();
  decode->add_option("--gets", flags.decode.gets_under_way, "layers that are asked for at once")
      ->check(CLI::Range(uint32_t{1}, DecodeOptions::kMaxGets))
      ->capture_default_str();
  decode->add_option("--rounds", flags.rounds, "requests, of each way")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  decode->add_flag("--compare,!--no-compare", flags.compare,
                   "besides, each as \"all layers, then transfer\" (unless --no-compare)");
  decode->add_flag("--check", flags.check, "compute the cache here as well, and compare the tokens");

  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {
    return app.exit(asked);
  } catch (const CLI::ParseError& error) {
    return Fail(Status(StatusCode::kInvalidArgument, absl::StrCat(error.what(), " (see kv_cache --help)")), 2);
  }
  if (Status s = CheckName("--name", flags.name); !s.ok()) return Fail(s, 2);
  return prefill->parsed() ? RunPrefill(flags) : RunDecode(flags);
}

}  // namespace
}  // namespace tokamak::example

int main(int argc, char** argv) {
  try {
    return tokamak::example::Run(argc, argv);
  } catch (const std::exception& error) {  // such as no memory for what is asked for
    std::cerr << "kv_cache: " << error.what() << std::endl;
    return 1;
  }
}
