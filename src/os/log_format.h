#pragma once

namespace ringfence::os {

// kText: "TIME server info event key=value". kJson: one object a line, {"event","level","process",
// "time",...}; in the journal each line also has its level as the journal's priority.
enum class LogFormat { kText, kJson };
void SetLogFormat(LogFormat format);

}  // namespace ringfence::os
