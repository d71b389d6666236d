#include "assure/advisories.h"

#include <algorithm>

#include "base/debian_version.h"
#include "base/json.h"
#include "wire/yaml.h"

namespace ringfence::assure {
namespace {

constexpr std::size_t kAdvisoriesMax = 1000;

// Debian's order knows what comes before a release: "1.2.0-rc.3" as "1.2.0~rc.3".
std::string InDebianOrder(std::string version) {
  const std::size_t dash = version.find("-rc");
  if (dash != std::string::npos) {
    version[dash] = '~';
  }
  return version;
}

// "1.2.8" -> "1.2".
std::string SeriesOf(const std::string& version) {
  const std::size_t first = version.find('.');
  return version.substr(0, first == std::string::npos ? first : version.find('.', first + 1));
}

bool AtLeast(const std::string& version, const std::string& least) {
  return CompareDebianVersions(InDebianOrder(version), InDebianOrder(least)) >= 0;
}

// Each series has its own first good version; a series later than all of them has it from the
// start.
bool FixedUpstream(const Advisory& advisory, const std::string& version) {
  bool later = !advisory.upstream.empty();
  for (const std::string& fixed : advisory.upstream) {
    if (SeriesOf(fixed) == SeriesOf(version)) {
      return AtLeast(version, fixed);
    }
    later = later && CompareDebianVersions(SeriesOf(version), SeriesOf(fixed)) > 0;
  }
  return later;
}

// The version that a package is of: all before its revision.
std::string UpstreamOf(const std::string& package) {
  return package.substr(0, std::min(package.rfind('-'), package.size()));
}

}  // namespace

Result<std::vector<Advisory>> ParseAdvisories(std::string_view yaml, const std::string& file) {
  RINGFENCE_ASSIGN(const Json json, wire::YamlToJson(yaml, file));
  RINGFENCE_ASSIGN(auto reader, JsonReader::Open(json));
  RINGFENCE_TRY(reader.String("runtime", 64));
  RINGFENCE_ASSIGN(const auto items, reader.Array("advisories", kAdvisoriesMax));
  RINGFENCE_TRY(reader.Finish());
  std::vector<Advisory> advisories;
  for (const Json* item : items) {
    RINGFENCE_ASSIGN(auto one, JsonReader::Open(*item, "advisories"));
    Advisory advisory;
    RINGFENCE_ASSIGN(advisory.id, one.String("id", 64));
    RINGFENCE_ASSIGN(advisory.what, one.String("what", 512));
    RINGFENCE_ASSIGN(advisory.upstream, one.Strings("upstream", 16, 64));
    RINGFENCE_ASSIGN(advisory.debian, one.Strings("debian", 16, 64));
    RINGFENCE_ASSIGN(advisory.blocks, one.Bool("blocks"));
    RINGFENCE_TRY(one.Finish());
    advisories.push_back(std::move(advisory));
  }
  return advisories;
}

std::string WhyFixed(const Advisory& advisory, const InstalledVersion& version) {
  if (FixedUpstream(advisory, version.upstream)) {
    return "version " + version.upstream + " is from after its fix";
  }
  if (version.package.empty()) {
    return "";
  }
  for (const std::string& fixed : advisory.debian) {
    if (UpstreamOf(fixed) == UpstreamOf(version.package) &&
        CompareDebianVersions(version.package, fixed) >= 0) {
      return "Debian mended it in " + fixed;
    }
  }
  if (version.changelog.find(advisory.id) != std::string::npos) {
    return "the changelog of " + version.package + " names it";
  }
  return "";
}

}  // namespace ringfence::assure
