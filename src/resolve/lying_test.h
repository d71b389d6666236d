#pragma once

// A resolver above that says what a test tells it to, over datagrams and streams.

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "os/internet.h"
#include "resolve/wire_test.h"

namespace ringfence::resolve {

class Liar {
 public:
  // What it says to a query, one message or several; `stream`: asked over TCP.
  using Script = std::function<std::vector<Bytes>(ByteView query, bool stream)>;

  // The sockets must be bound to one port.
  Liar(os::UniqueFd datagrams, os::UniqueFd streams, Script script)
      : datagrams_(std::move(datagrams)),
        streams_(std::move(streams)),
        script_(std::move(script)),
        thread_([this](const std::stop_token& stop) { Run(stop); }) {}

  static std::unique_ptr<Liar> At(const os::Ipv4End& end, Script script) {
    os::UniqueFd streams = std::move(os::ListenTcp(end, 8).value());
    const std::uint16_t port = os::OwnEnd(streams.get())->port;
    return std::make_unique<Liar>(std::move(os::BindUdp({end.address, port}).value()),
                                  std::move(streams), std::move(script));
  }
  os::Ipv4End end() const { return os::OwnEnd(streams_.get()).value(); }

 private:
  void Run(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      pollfd items[] = {{datagrams_.get(), POLLIN, 0}, {streams_.get(), POLLIN, 0}};
      if (poll(items, 2, 10) <= 0) {
        continue;
      }
      if (const auto query = os::ReceiveDatagram(datagrams_.get(), 4096); query.has_value()) {
        for (const Bytes& answer : script_(query->bytes, false)) {
          os::SendDatagram(datagrams_.get(), answer, query->from);
        }
      }
      if (auto asked = os::AcceptFrom(streams_.get()); asked.has_value()) {
        Serve(asked->socket.get());
      }
    }
  }
  void Serve(int socket) {
    Bytes in;
    while (in.size() < 2 || in.size() < 2U + GetBigEndian<std::uint16_t>(in)) {
      pollfd item{socket, POLLIN, 0};
      if (poll(&item, 1, 3000) <= 0) {
        return;
      }
      const auto more = os::ReceiveSome(socket, 4096);
      if (!more.has_value() || more->empty()) {
        return;
      }
      Append(in, *more);
    }
    for (const Bytes& answer : script_(ByteView(in).subspan(2), true)) {
      const auto length = PutBigEndian(static_cast<std::uint16_t>(answer.size()));
      Bytes out(length.begin(), length.end());
      Append(out, answer);
      for (std::size_t at = 0; at < out.size();) {
        pollfd item{socket, POLLOUT, 0};
        (void)poll(&item, 1, 3000);
        const auto sent = os::SendSome(socket, ByteView(out).subspan(at));
        if (!sent.has_value()) {
          return;
        }
        at += *sent;
      }
    }
  }

  os::UniqueFd datagrams_;
  os::UniqueFd streams_;
  Script script_;
  std::jthread thread_;
};

// Tells the truth: every name stands for this address.
inline Liar::Script Truth(std::uint32_t address, std::uint32_t ttl = 300) {
  return [=](ByteView query, bool) {
    wire::Message message = wire::AnswerTo(query);
    message.records = {wire::Address(wire::AskedName(query), address, ttl)};
    return std::vector<Bytes>{message.Write()};
  };
}

}  // namespace ringfence::resolve
