// Goal: no text makes the readers of Cedar's JSON forms and schemas do anything but answer.
// Method: the same bytes to each of them; what is accepted must survive being written again.

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "cedar/conformance.h"
#include "cedar/entities.h"
#include "cedar/json.h"
#include "cedar/policy_json.h"
#include "cedar/schema.h"

namespace cedar = ringfence::cedar;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)cedar::ParseSchema(text, cedar::SchemaFormat::kCedar);
  (void)cedar::ParseSchema(text, cedar::SchemaFormat::kJson);
  if (const auto entities = cedar::Entities::FromJson(text); entities.has_value()) {
    // A datetime outside of the years 0000 to 9999 has no text form.
    const auto again = cedar::Entities::FromJson(cedar::ToJsonText(*entities));
    if (again.has_value() ? again->all().size() != entities->all().size()
                          : again.error().message.find("datetime") == std::string::npos) {
      std::abort();
    }
  }
  if (const auto policies = cedar::PoliciesFromJson(text); policies.has_value()) {
    const auto again = cedar::PoliciesFromJson(ringfence::PrettyJson(cedar::ToJson(*policies)));
    if (!again.has_value() || again->policies().size() != policies->policies().size()) {
      std::abort();
    }
  }
  const auto no_files = [](const std::string&) -> ringfence::Result<std::string> {
    return ringfence::Error{ringfence::Code::kNotFound, "no files here"};
  };
  if (cedar::IsConformanceTest(text)) {
    (void)cedar::RunConformanceTest(text, no_files);
  }
  return 0;
}
