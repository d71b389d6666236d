#include "assure/advisory_product.h"

#include <algorithm>
#include <set>

#include "base/closest.h"

namespace ringfence::assure {
namespace {

bool HasWord(std::string_view name, std::string_view word) {
  std::size_t at = 0;
  while ((at = name.find(word, at)) != std::string_view::npos) {
    const bool starts = at == 0 || name[at - 1] == ' ';
    const std::size_t end = at + word.size();
    if (starts && (end == name.size() || name[end] == ' ')) {
      return true;
    }
    ++at;
  }
  return false;
}

template <typename Words>
bool HasAny(std::string_view name, const Words& words) {
  return std::any_of(words.begin(), words.end(),
                     [name](std::string_view word) { return HasWord(name, word); });
}

std::string CutComponent(std::string& name) {
  for (const std::string_view component : {"bmc", "sbios", "vbios", "cpld"}) {
    const std::string word = " " + std::string(component);
    if (name.ends_with(word)) {
      name.erase(name.size() - word.size());
      return std::string(component);
    }
  }
  return "";
}

std::vector<std::string> SplitWords(const std::string& name) {
  std::vector<std::string> words;
  std::size_t at = 0;
  while (at < name.size()) {
    const std::size_t end = std::min(name.find(' ', at), name.size());
    words.push_back(name.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

}  // namespace

const std::vector<KnownProduct>& KnownProducts() {
  static const std::vector<std::string_view> kEditions = {"geforce", "rtx",   "quadro",
                                                          "nvs",     "tesla", "studio"};
  static const std::vector<std::string_view> kNoDriver = {
      "experience", "now", "vgpu", "gaming", "chatrtx", "audio", "guest", "manager", "server"};
  static const std::vector<KnownProduct> kProducts = {
      {"gpu-driver",
       "NVIDIA GPU Display Driver, any edition",
       Line::kDriver,
       {"gpu display driver", "display driver", "driver", "gpu driver", "linux driver",
        "linux gpu driver", "windows driver", "kernel driver", "geforce rtx quadro nvs tesla"},
       {"geforce", "rtx", "quadro", "nvs", "tesla", "studio", "display driver"},
       kNoDriver},
      {"driver-tesla",
       "GPU Display Driver for data centre GPUs (Tesla)",
       Line::kDriver,
       {"tesla", "tesla driver", "data center driver", "datacenter driver",
        "data center gpu driver", "datacenter gpu driver", "data centre driver", "data center gpu",
        "tesla gpu driver"},
       {"tesla"},
       kNoDriver},
      {"driver-rtx",
       "GPU Display Driver for RTX, Quadro and NVS",
       Line::kDriver,
       {"rtx", "quadro", "nvs", "rtx driver", "quadro driver", "rtx quadro nvs", "rtx quadro",
        "rtx pro rtx quadro"},
       {"rtx", "quadro", "nvs"},
       kNoDriver},
      {"driver-geforce",
       "GPU Display Driver for GeForce",
       Line::kDriver,
       {"geforce", "geforce driver"},
       {"geforce"},
       kNoDriver},
      {"driver-studio",
       "GPU Display Driver, Studio edition",
       Line::kDriver,
       {"studio", "studio driver"},
       {"studio"},
       kNoDriver},
      {"vgpu",
       "vGPU software, guest driver and manager",
       Line::kVgpu,
       {"vgpu", "vgpu software", "virtual gpu", "virtual gpu software", "grid", "grid driver"},
       {"vgpu", "guest driver", "virtual gpu manager"},
       {"gaming"}},
      {"vgpu-guest",
       "vGPU software, guest driver",
       Line::kVgpu,
       {"guest driver", "vgpu guest", "vgpu driver", "vgpu guest driver",
        "vgpu software guest driver"},
       {"guest driver", "vgpu software guest driver"},
       {"gaming"}},
      {"vgpu-manager",
       "vGPU software, Virtual GPU Manager",
       Line::kVgpu,
       {"virtual gpu manager", "vgpu manager", "vgpu host driver", "vgpu host",
        "vgpu software virtual gpu manager"},
       {"virtual gpu manager"},
       {"gaming"}},
      {"cloud-gaming",
       "Cloud Gaming, guest driver and manager",
       Line::kGaming,
       {"cloud gaming", "gaming"},
       {"gaming", "guest driver", "virtual gpu manager"},
       {}},
      {"gaming-guest",
       "Cloud Gaming, guest driver",
       Line::kGaming,
       {"cloud gaming guest", "cloud gaming guest driver", "gaming guest driver"},
       {"guest driver"},
       {}},
      {"gaming-manager",
       "Cloud Gaming, Virtual GPU Manager",
       Line::kGaming,
       {"cloud gaming manager", "cloud gaming virtual gpu manager", "gaming virtual gpu manager"},
       {"virtual gpu manager"},
       {}},
      {"container-toolkit",
       "NVIDIA Container Toolkit",
       Line::kPlain,
       {"container toolkit", "nvidia container toolkit", "container runtime", "libnvidia container",
        "libnvidia container1", "nct"},
       {"container toolkit"},
       {}},
      {"gpu-operator",
       "NVIDIA GPU Operator",
       Line::kPlain,
       {"gpu operator", "operator"},
       {"gpu operator"},
       {}},
      {"dcgm",
       "NVIDIA Data Center GPU Manager",
       Line::kPlain,
       {"dcgm", "data center gpu manager", "datacenter gpu manager",
        "data center gpu manager dcgm"},
       {"dcgm", "data center gpu manager"},
       {}},
      {"triton",
       "NVIDIA Triton Inference Server",
       Line::kPlain,
       {"triton", "triton inference server", "triton server", "tritonserver"},
       {"triton inference server", "triton"},
       {}},
      {"cuda-toolkit",
       "NVIDIA CUDA Toolkit",
       Line::kPlain,
       {"cuda toolkit", "cuda"},
       {"cuda toolkit"},
       {}},
      {"nemo",
       "NVIDIA NeMo Framework",
       Line::kPlain,
       {"nemo", "nemo framework"},
       {"nemo", "nemo framework"},
       {"retriever", "guardrails", "agent", "curator", "gym"}},
      {"device-plugin",
       "NVIDIA Kubernetes Device Plugin",
       Line::kPlain,
       {"device plugin", "k8s device plugin", "kubernetes device plugin"},
       {"kubernetes device plugin", "device plugin"},
       {}},
      {"mig-manager",
       "NVIDIA MIG Manager",
       Line::kPlain,
       {"mig manager", "mig parted"},
       {"mig manager"},
       {}},
      {"fabric-manager",
       "NVIDIA Fabric Manager",
       Line::kPlain,
       {"fabric manager", "fabricmanager"},
       {"fabric manager"},
       {}},
      {"jetson-linux",
       "Jetson Linux",
       Line::kPlain,
       {"jetson", "jetson linux", "l4t"},
       {"jetson"},
       {}},
  };
  return kProducts;
}

std::string NormalName(std::string_view name) {
  std::string out;
  for (const char c : name.substr(0, 256)) {
    const bool kept = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    if (kept || (c >= 'A' && c <= 'Z')) {
      out += kept ? c : static_cast<char>(c - 'A' + 'a');
    } else if (!out.empty() && out.back() != ' ') {
      out += ' ';
    }
  }
  while (!out.empty() && out.back() == ' ') {
    out.pop_back();
  }
  std::string without;
  for (const std::string& word : SplitWords(out)) {
    if (word != "nvidia" && word != "the" && !word.empty()) {
      without += (without.empty() ? "" : " ") + word;
    }
  }
  return without;
}

RowNames NamesOf(const BulletinRow& row) {
  const std::string name = NormalName(row.product);
  RowNames names;
  names.whole = name + " " + NormalName(row.platform.name);
  const auto& products = KnownProducts();
  for (std::size_t i = 0; i < products.size(); ++i) {
    const KnownProduct& known = products[i];
    const bool named = HasAny(name, known.words) && !HasAny(name, known.not_words);
    const bool gaming = row.platform.gaming || HasWord(name, "gaming");
    if (named && gaming == (known.line == Line::kGaming)) {
      names.known |= std::uint64_t{1} << i;
    }
  }
  return names;
}

bool IsRowOf(const BulletinRow& row, const RowNames& names, const ProductQuery& query) {
  if (query.known != nullptr) {
    const auto at = static_cast<std::size_t>(query.known - KnownProducts().data());
    return (names.known >> at & 1U) != 0;
  }
  if (!query.component.empty() && !row.component.empty() && row.component != query.component) {
    return false;
  }
  return std::all_of(query.words.begin(), query.words.end(),
                     [&names](const std::string& word) { return HasWord(names.whole, word); });
}

bool IsRowOfLine(const RowNames& names, Line line) {
  const auto& products = KnownProducts();
  for (std::size_t i = 0; i < products.size(); ++i) {
    if (products[i].line == line && (names.known >> i & 1U) != 0) {
      return true;
    }
  }
  return false;
}

Result<ProductQuery> ResolveProduct(std::string_view name, const std::vector<Bulletin>& bulletins) {
  ProductQuery query;
  query.name = NormalName(name);
  std::string id(name.substr(0, 64));
  std::transform(id.begin(), id.end(), id.begin(), [](unsigned char c) {
    return static_cast<char>(c == '_' || c == ' ' ? '-' : c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  });
  for (const KnownProduct& known : KnownProducts()) {
    if (known.id == id ||
        std::find(known.aliases.begin(), known.aliases.end(), query.name) != known.aliases.end()) {
      query.known = &known;
      query.line = known.line;
      return query;
    }
  }
  query.component = CutComponent(query.name);
  query.words = SplitWords(query.name);
  std::set<std::string> names;
  for (const Bulletin& bulletin : bulletins) {
    for (const Flaw& flaw : bulletin.flaws) {
      for (const BulletinRow& row : flaw.rows) {
        const RowNames row_names = NamesOf(row);
        if (!query.words.empty() && IsRowOf(row, row_names, query)) {
          for (const Line line : {Line::kDriver, Line::kVgpu, Line::kGaming}) {
            query.line = IsRowOfLine(row_names, line) ? line : query.line;
          }
          return query;
        }
        names.insert(row.product);
      }
    }
  }
  std::vector<std::string_view> candidates(names.begin(), names.end());
  for (const KnownProduct& product : KnownProducts()) {
    candidates.push_back(product.id);
  }
  const auto near = Closest(name, candidates);
  return Error{Code::kNotFound,
               "no bulletin speaks of a product \"" + std::string(name.substr(0, 128)) + "\"",
               (near ? "did you mean \"" + *near + "\"? " : std::string()) +
                   "`ringfence advisory products` lists the names"};
}

}  // namespace ringfence::assure
