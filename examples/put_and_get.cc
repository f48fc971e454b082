// Puts an object on one node and reads it in place on another:
//   put_and_get SOCKET_OF_ONE_NODE SOCKET_OF_ANOTHER
#include <chrono>
#include <cstring>
#include <iostream>
#include <string>

#include "tokamak/client.h"

using tokamak::Client;
using tokamak::ObjectId;
using tokamak::StatusCode;

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: put_and_get SOCKET SOCKET" << std::endl;
    return 2;
  }
  auto here = Client::Connect(argv[1]);
  auto there = Client::Connect(argv[2]);
  if (!here.ok() || !there.ok()) {
    std::cerr << here.status() << " " << there.status() << std::endl;
    return 1;
  }

  // Create, fill in shared memory, seal: from then on the object never changes, so the one of an
  // earlier run will do.
  const std::string text = "hello from the other node";
  const ObjectId id = ObjectId::FromName("greeting");
  auto buffer = here->Create(id, text.size());
  if (buffer.ok()) {
    std::memcpy(buffer->data().data(), text.data(), text.size());
    if (auto sealed = buffer->Seal(); !sealed.ok()) {
      std::cerr << sealed << std::endl;
      return 1;
    }
  } else if (buffer.status().code() != StatusCode::kAlreadyExists) {
    std::cerr << buffer.status() << std::endl;
    return 1;
  }

  // Get pulls it over RDMA verbs; the bytes are read in place, and stay while `object` lives.
  auto object = there->Get(id, std::chrono::seconds(5));
  if (!object.ok()) {
    std::cerr << object.status() << std::endl;
    return 1;
  }
  std::cout << tokamak::AsText(object->data()) << std::endl;
  return 0;
}
