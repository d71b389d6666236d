#include "jailer/desk.h"

#include "base/encoding.h"
#include "isolate/incident.h"
#include "os/failpoint.h"
#include "os/memory_file.h"

namespace ringfence::jailer {

using isolate::RequestType;

Status Desk::KeepIncident(const std::string& what, const std::string& detail) {
  isolate::Incident incident;
  incident.node = parts_.node;
  incident.time = clock_->Now();
  incident.what = what;
  incident.detail = detail.substr(0, isolate::kIncidentDetailBytesMax);
  incident.dropped = records_->IncidentsDropped();
  return records_->AddIncident(isolate::SealIncident(parts_.identity.key, incident));
}

void Desk::Answer(std::uint32_t id, RequestType type, Status status) {
  isolate::Reply reply;
  reply.id = id;
  reply.type = type;
  reply.status = std::move(status);
  parts_.send(std::move(reply), {});
}

void Desk::AnswerText(std::uint32_t id, RequestType type, std::string text) {
  isolate::Reply reply;
  reply.id = id;
  reply.type = type;
  reply.text = std::move(text);
  parts_.send(std::move(reply), {});
}

void Desk::AnswerFile(std::uint32_t id, RequestType type, ByteView bytes) {
  auto file = os::MakeMemoryFile("ringfence-reply", bytes);
  if (!file.has_value()) {
    Answer(id, type, file.error());
    return;
  }
  isolate::Reply reply;
  reply.id = id;
  reply.type = type;
  std::vector<os::UniqueFd> fds;
  fds.push_back(std::move(*file));
  parts_.send(std::move(reply), std::move(fds));
}

void Desk::Handle(const isolate::Request& request) {
  const std::uint32_t id = request.id;
  switch (isolate::TypeOf(request.body)) {
    case RequestType::kHello: {
      isolate::Reply reply;
      reply.id = id;
      reply.type = RequestType::kHello;
      reply.hello = {RINGFENCE_VERSION, Base64(parts_.identity.key.public_key().raw()),
                     parts_.identity.key_proof, parts_.missing};
      parts_.send(std::move(reply), {});
      return;
    }
    case RequestType::kInventory:
      return HandleInventory(id);
    case RequestType::kStart:
      return HandleStart(id, std::get<isolate::StartRequest>(request.body));
    case RequestType::kEnd:
      return HandleEnd(id, std::get<isolate::EndRequest>(request.body).lease);
    case RequestType::kScrub:
      return HandleScrub(id, std::get<isolate::ScrubRequest>(request.body));
    case RequestType::kList:
      return HandleList(id);
    case RequestType::kForget:
      return HandleForget(id, std::get<isolate::ForgetRequest>(request.body).lease);
    case RequestType::kIncidents:
      return HandleIncidents(id);
    case RequestType::kAckIncidents:
      return Answer(
          id, RequestType::kAckIncidents,
          records_->AckIncidents(std::get<isolate::AckIncidentsRequest>(request.body).count));
    case RequestType::kImages:
      return HandleImages(id);
    case RequestType::kSense:
      return HandleSense(id);
    case RequestType::kMig:
      return HandleMig(id, std::get<isolate::MigRequest>(request.body).order);
  }
}

void Desk::HandleList(std::uint32_t id) {
  std::vector<isolate::BoxRecord> list;
  for (const auto& [lease, record] : records_->leases()) {
    isolate::BoxRecord one;
    one.lease = lease;
    one.state = record.state;
    for (const gpu::WantedGpu& gpu : record.gpus) {
      one.gpus.push_back(gpu.uuid);
    }
    one.receipt = record.receipt;
    list.push_back(std::move(one));
  }
  AnswerFile(id, RequestType::kList, isolate::EncodeRecords(list));
}

void Desk::HandleForget(std::uint32_t id, const std::string& lease) {
  const LeaseRecord* record = records_->Find(lease);
  if (record != nullptr && record->state != isolate::BoxState::kScrubbed) {
    Answer(id, RequestType::kForget,
           Error{Code::kFailedPrecondition, "lease " + lease + " is not scrubbed yet"});
    return;
  }
  RINGFENCE_FAILPOINT("jailer.forget");
  Status forgotten = records_->Forget(lease, clock_->Now());
  RINGFENCE_FAILPOINT("jailer.forgotten");
  Answer(id, RequestType::kForget, std::move(forgotten));
}

void Desk::HandleIncidents(std::uint32_t id) {
  const auto incidents = records_->Incidents();
  if (!incidents.has_value()) {
    Answer(id, RequestType::kIncidents, incidents.error());
    return;
  }
  AnswerFile(id, RequestType::kIncidents, isolate::EncodeTexts(*incidents));
}

void Desk::HandleImages(std::uint32_t id) {
  const auto images = hands_->ListImages();
  if (!images.has_value()) {
    Answer(id, RequestType::kImages, images.error());
    return;
  }
  AnswerFile(id, RequestType::kImages, isolate::EncodeImages(*images));
}

void Desk::HandleSense(std::uint32_t id) {
  auto lines = hands_->StartSensor();
  if (!lines.has_value()) {
    Answer(id, RequestType::kSense, lines.error());
    return;
  }
  isolate::Reply reply;
  reply.id = id;
  reply.type = RequestType::kSense;
  std::vector<os::UniqueFd> fds;
  fds.push_back(std::move(*lines));
  parts_.send(std::move(reply), std::move(fds));
}

void Desk::HandleEnd(std::uint32_t id, const std::string& lease) {
  if (records_->Find(lease) == nullptr) {
    Answer(id, RequestType::kEnd, Error{Code::kNotFound, "no lease " + lease + " on this node"});
    return;
  }
  hands_->EndBox(lease);
  Answer(id, RequestType::kEnd, {});
}

}  // namespace ringfence::jailer
