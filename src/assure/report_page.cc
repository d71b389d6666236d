#include "assure/report_page.h"

#include <string_view>

#include "assure/assess_report.h"

namespace ringfence::assure {
namespace {

constexpr std::string_view kStyle = R"css(<style>
:root{--fail:#b3261e;--unknown:#d4a72c;--pass:#1a7f37;--na:#d0d7de}
*{box-sizing:border-box}
body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:64rem;padding:0 1rem;color:#1f2328;background:#fff}
h1{margin:0;overflow-wrap:anywhere}h2{margin-top:2rem;border-bottom:1px solid #d0d7de}
table{border-collapse:collapse;width:100%}
th,td{text-align:left;vertical-align:top;padding:.35rem .6rem;border-bottom:1px solid #d0d7de}
th{font-size:.85em}th:first-child,td:first-child{white-space:nowrap}
.wide{overflow-wrap:anywhere;width:100%}.short{min-width:5.5rem}
.head{display:flex;gap:2rem;align-items:center;flex-wrap:wrap}
.score{font-size:3rem;font-weight:700;white-space:nowrap}
.fail{color:#b3261e;font-weight:600}.unknown{color:#9a6700}.pass{color:#1a7f37}.na{color:#59636e}
.proven{color:#1a7f37;font-weight:600}.configured{color:#0969da}.failing{color:#b3261e;font-weight:600}.none{color:#59636e}
.heat{width:auto}.heat td{text-align:center;min-width:2.4rem;border:1px solid #fff}
.heat th{border:0;text-align:center}.heat caption{text-align:left;font-size:.85em;color:#59636e}
.tag{display:inline-block;padding:.05em .5em;border-radius:.3em;white-space:nowrap}
.critical{background:#ffcecb}.high{background:#ffd8b5}.medium{background:#fff8c5}.low{background:#dafbe1}
.bars{display:grid;grid-template-columns:max-content 1fr max-content;gap:.3rem .8rem;align-items:center}
.bar{display:flex;height:1.1rem}.bar i{display:block;min-width:2px}
i.fail{background:var(--fail)}i.unknown{background:var(--unknown)}i.pass{background:var(--pass)}i.na{background:var(--na)}
code{background:#f6f8fa;padding:.1em .3em;overflow-wrap:anywhere}details{margin:.2rem 0}summary{cursor:pointer}
small{color:#59636e}li{margin:.3rem 0}svg{max-width:100%}
@media(max-width:40rem){th,td{padding:.3rem .35rem}.head{gap:1rem}.score{font-size:2.2rem}.few{display:none}}
@media print{body{margin:0;max-width:none;font-size:9.5pt;padding:0}h2{margin-top:1rem;break-after:avoid}
tr,li,.heat,.bars{break-inside:avoid}thead{display:table-header-group}*{print-color-adjust:exact;-webkit-print-color-adjust:exact}
details:not([open]){display:none}}
</style>)css";

}  // namespace

std::string PageBegin(const std::string& title) {
  return "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
         "content=\"width=device-width\"><title>" +
         EscapeXml(title) + "</title>" + std::string(kStyle) + "</head><body>";
}

std::string HeatTable(const int (&cells)[5][5]) {
  std::string out =
      "<table class=\"heat\"><caption>Likelihood upwards, impact to the right.</caption>";
  for (int likelihood = 5; likelihood >= 1; --likelihood) {
    out += "<tr><th>" + std::to_string(likelihood) + "</th>";
    for (int impact = 1; impact <= 5; ++impact) {
      const int count = cells[likelihood - 1][impact - 1];
      out += "<td class=\"" + RiskSeverity(likelihood * impact) + "\">" +
             (count > 0 ? "<b>" + std::to_string(count) + "</b>" : "·") + "</td>";
    }
    out += "</tr>";
  }
  out += "<tr><th></th>";
  for (int impact = 1; impact <= 5; ++impact) {
    out += "<th>" + std::to_string(impact) + "</th>";
  }
  return out + "</tr></table>";
}

}  // namespace ringfence::assure
