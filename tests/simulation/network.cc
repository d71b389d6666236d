#include "network.h"

namespace ringfence::simulation {
namespace {

Error Lost() { return Error{Code::kUnavailable, "the connection broke: no answer"}; }

}  // namespace

void Network::Deliver(const std::string& from, const net::Request& request, SimServer::Done done) {
  if (cut.contains(from)) {
    done(Lost());
    return;
  }
  scheduler_.Trace(from + " " + request.method + " " + request.path);
  if (on_delivery) {
    on_delivery(from, request);
  }
  server_.Handle(request, std::move(done));
}

void Network::Send(const std::string& from, const net::Request& request, SimServer::Done done) {
  Chance& chance = scheduler_.chance();
  if (cut.contains(from)) {
    scheduler_.After(chance.Time(1, 5000), [done] { done(Lost()); });
    return;
  }
  const Milliseconds delay =
      chance.In1000(late_in_1000) ? chance.Time(1000, 150000) : chance.Time(0, 15);
  const bool unheard = chance.In1000(unheard_in_1000);
  if (chance.In1000(repeated_in_1000)) {
    scheduler_.After(delay + chance.Time(0, 60000), [this, from, request] {
      scheduler_.Trace(from + " repeats itself:");
      Deliver(from, request, [](const Result<net::Response>&) {});
    });
  }
  if (chance.In1000(lost_in_1000)) {
    scheduler_.After(delay, [done] { done(Lost()); });
    return;
  }
  scheduler_.After(delay, [this, from, request, unheard, done] {
    Deliver(from, request, [this, from, unheard, done](Result<net::Response> answer) {
      const Milliseconds back = scheduler_.chance().Time(0, 15);
      if (unheard || cut.contains(from)) {
        answer = Lost();
      }
      if (answer.has_value() && answer->status >= 300) {
        scheduler_.Trace(from + " is answered " + std::to_string(answer->status) + " " +
                         net::ErrorFromResponse(answer->status, answer->body).message);
      }
      scheduler_.After(back, [done, answer] { done(answer); });
    });
  });
}

}  // namespace ringfence::simulation
