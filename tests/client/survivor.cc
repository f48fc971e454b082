// A program that lives through restarts of its daemon: survivor SOCKET. Whenever it reads a line,
// it puts the object of that name and gets it, and says what came of it; and whether what it got
// first of all is readable no more.
#include <chrono>
#include <iostream>
#include <string>

#include "tokamak/client.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  tokamak::ClientOptions options;
  options.reconnect = true;
  auto client = tokamak::Client::Connect(argv[1], options);
  if (!client.ok()) return 1;
  const std::string kept = "kept";
  const tokamak::Span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(kept.data()), kept.size());
  const tokamak::ObjectId first = tokamak::ObjectId::FromName("first");
  if (!client->Put(first, bytes).ok()) return 1;
  const auto view = client->Get(first, std::chrono::seconds(60));
  for (std::string name; std::getline(std::cin, name);) {
    const tokamak::ObjectId id = tokamak::ObjectId::FromName(name);
    tokamak::Status status = client->Put(id, bytes);
    if (status.ok()) status = client->Get(id, std::chrono::seconds(60)).status();
    std::cout << status << (view->data() == bytes ? "" : ", and what was kept is not") << std::endl;
  }
  return 0;
}
