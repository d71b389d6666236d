#include "assure/nvml_view.h"

#include "gpu/limits.h"

namespace ringfence::assure {
namespace {

constexpr std::size_t kNvmlBytesMax = std::size_t{1} << 20U;

std::string OnOff(const std::optional<bool>& flag, std::string_view on, std::string_view off) {
  return std::string(!flag ? "n/a" : *flag ? on : off);
}

Result<std::optional<bool>> ReadFlag(JsonReader& reader, std::string_view name) {
  if (!reader.Has(name)) {
    return std::optional<bool>();
  }
  RINGFENCE_ASSIGN(const bool flag, reader.Bool(name));
  return std::optional<bool>(flag);
}

Result<gpu::Firmware> ReadCard(const Json& value, const std::string& where) {
  RINGFENCE_ASSIGN(auto reader, JsonReader::Open(value, where));
  gpu::Firmware card;
  RINGFENCE_ASSIGN(card.uuid, reader.StringOr("uuid", "", 96));
  RINGFENCE_ASSIGN(card.model, reader.StringOr("model", "", 96));
  RINGFENCE_ASSIGN(card.serial, reader.StringOr("serial", "", 64));
  RINGFENCE_ASSIGN(card.pci_address, reader.StringOr("pci_address", "", 32));
  RINGFENCE_ASSIGN(card.vbios, reader.StringOr("vbios", "", 64));
  RINGFENCE_ASSIGN(card.gsp, reader.StringOr("gsp", "", 64));
  RINGFENCE_ASSIGN(card.inforom, reader.StringOr("inforom", "", 64));
  RINGFENCE_ASSIGN(card.inforom_valid, ReadFlag(reader, "inforom_valid"));
  RINGFENCE_ASSIGN(card.ecc, ReadFlag(reader, "ecc"));
  RINGFENCE_ASSIGN(card.mig, ReadFlag(reader, "mig"));
  RINGFENCE_ASSIGN(card.persistence, ReadFlag(reader, "persistence"));
  if (reader.Has("uncorrected_errors")) {
    RINGFENCE_ASSIGN(const auto errors,
                     reader.Int("uncorrected_errors", 0, std::int64_t{1} << 53U));
    card.uncorrected_errors = static_cast<std::uint64_t>(errors);
  }
  RINGFENCE_ASSIGN(card.problem, reader.StringOr("problem", "", 1000));
  RINGFENCE_TRY(reader.Finish());
  return card;
}

}  // namespace

NvmlView AskNvml(const std::string& driver_root) {
  auto report = gpu::ReadFirmware(driver_root);
  if (!report.has_value()) {
    return {std::nullopt, report.error().message};
  }
  return {std::move(*report), ""};
}

NvmlView CapturedNvml(const MachineView& machine) {
  const auto text = machine.Read(kNvmlFile, kNvmlBytesMax);
  if (!text.has_value()) {
    return {std::nullopt, text.error().code == Code::kNotFound ? "" : text.error().message};
  }
  auto report = ParseNvml(*text);
  if (!report.has_value()) {
    return {std::nullopt, std::string(kNvmlFile) + ": " + report.error().message};
  }
  return {std::move(*report), ""};
}

Json NvmlJson(const gpu::FirmwareReport& report) {
  JsonArray gpus;
  for (const gpu::Firmware& card : report.gpus) {
    JsonObject object{{"uuid", card.uuid},       {"model", card.model},
                      {"serial", card.serial},   {"pci_address", card.pci_address},
                      {"vbios", card.vbios},     {"gsp", card.gsp},
                      {"inforom", card.inforom}, {"problem", card.problem}};
    const std::pair<const char*, const std::optional<bool>*> flags[] = {
        {"inforom_valid", &card.inforom_valid},
        {"ecc", &card.ecc},
        {"mig", &card.mig},
        {"persistence", &card.persistence}};
    for (const auto& flag : flags) {
      if (flag.second->has_value()) {
        object[flag.first] = **flag.second;
      }
    }
    if (card.uncorrected_errors) {
      object["uncorrected_errors"] = *card.uncorrected_errors;
    }
    gpus.push_back(std::move(object));
  }
  return JsonObject{
      {"driver", report.driver}, {"simulated", report.simulated}, {"gpus", std::move(gpus)}};
}

Result<gpu::FirmwareReport> ParseNvml(std::string_view text) {
  RINGFENCE_ASSIGN(const Json json, ParseJson(text, kNvmlBytesMax));
  RINGFENCE_ASSIGN(auto reader, JsonReader::Open(json));
  gpu::FirmwareReport report;
  RINGFENCE_ASSIGN(report.driver, reader.StringOr("driver", "", 96));
  RINGFENCE_ASSIGN(report.simulated, reader.BoolOr("simulated", false));
  RINGFENCE_ASSIGN(const auto cards, reader.Array("gpus", gpu::kGpusMax));
  RINGFENCE_TRY(reader.Finish());
  for (std::size_t i = 0; i < cards.size(); ++i) {
    RINGFENCE_ASSIGN(gpu::Firmware card, ReadCard(*cards[i], "gpus[" + std::to_string(i) + "]"));
    report.gpus.push_back(std::move(card));
  }
  return report;
}

std::string NvmlFact(const gpu::Firmware& card, std::string_view name) {
  const std::pair<std::string_view, const std::string*> texts[] = {
      {"uuid", &card.uuid},       {"model", &card.model},
      {"serial", &card.serial},   {"pci_address", &card.pci_address},
      {"vbios", &card.vbios},     {"gsp", &card.gsp},
      {"inforom", &card.inforom}, {"problem", &card.problem}};
  for (const auto& [known, text] : texts) {
    if (known == name) {
      return text->empty() && name != "problem" ? "n/a" : *text;
    }
  }
  if (name == "inforom_valid") {
    return OnOff(card.inforom_valid, "yes", "no");
  }
  if (name == "uncorrected_errors") {
    return card.uncorrected_errors ? std::to_string(*card.uncorrected_errors) : "n/a";
  }
  return OnOff(name == "ecc"           ? card.ecc
               : name == "mig"         ? card.mig
               : name == "persistence" ? card.persistence
                                       : std::optional<bool>(),
               "on", "off");
}

}  // namespace ringfence::assure
