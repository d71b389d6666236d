// `ringfence image ...`: the images of this node, of which boxes are made. They lie in the jailer's
// folder, so all of these need root, and none of them needs the server.

#include "cli/commands.h"
#include "cli/console.h"
#include "cli/human.h"
#include "cli/image_place.h"
#include "image/store.h"
#include "isolate/image_worker.h"
#include "os/file.h"
#include "os/identity.h"

namespace ringfence::cli {
namespace {

Status NeedRoot() {
  if (os::IsRoot()) {
    return {};
  }
  return Error{Code::kPermissionDenied, "the images of a node are root's",
               "run it on the node as root: sudo ringfence image ..."};
}

JsonArray ToJson(const std::vector<image::StoredImage>& images) {
  JsonArray array;
  for (const image::StoredImage& one : images) {
    array.push_back(image::StoredImageToJson(one));
  }
  return array;
}

std::string Joined(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) {
    all += (all.empty() ? "" : ", ") + text;
  }
  return all;
}

void PrintFacts(Invocation& invocation, const image::StoredImage& stored) {
  const image::Report& report = stored.report;
  FactList facts;
  facts.Add("Digest", report.digest);
  facts.Add("Names", Joined(stored.names));
  facts.Add("Size", FormatSize(report.bytes) + " in " + Count(report.entries, "file") + " of " +
                        Count(report.layers, "layer"));
  facts.Add("Tree", report.tree_digest);
  facts.Add("Command", Joined(report.command));
  facts.Add("Starts in", report.working_folder);
  facts.Add("Set-user-id bits left out", std::to_string(report.privileged_bits));
  facts.Add("Imported", RelativeTime(FormatTime(stored.imported), invocation.clock.Now()) +
                            " from " + stored.source);
  facts.Add("Vouched for by", stored.verifier.empty() ? "nobody (node.image_verifier is not set)"
                                                      : "program " + stored.verifier);
  facts.Print(invocation.console);
}

Result<int> Import(Invocation& invocation) {
  RINGFENCE_TRY(NeedRoot());
  const std::string text = invocation.parsed.Argument(0);
  RINGFENCE_ASSIGN(const image::SourceReference source,
                   image::ParseSource(text, os::IsDirectory(text)));
  RINGFENCE_ASSIGN(const isolate::ImagePlace place, ImagePlaceOf(invocation.settings));
  RINGFENCE_ASSIGN(
      const image::StoredImage stored,
      isolate::ImportImage(place, source, invocation.parsed.Values("name"), invocation.clock));
  if (invocation.console.table()) {
    PrintFacts(invocation, stored);
  } else {
    invocation.console.Show(image::StoredImageToJson(stored));
  }
  return 0;
}

Result<int> List(Invocation& invocation) {
  RINGFENCE_TRY(NeedRoot());
  RINGFENCE_ASSIGN(const auto images, image::Store(ImageFolder(invocation.settings)).List());
  Console& console = invocation.console;
  if (!console.table()) {
    console.Show(ToJson(images));
    return 0;
  }
  if (images.empty()) {
    console.Note("no images here; `ringfence image import REF` brings one");
    return 0;
  }
  Table table({"DIGEST", "NAMES", "SIZE", "IMPORTED"});
  for (const image::StoredImage& one : images) {
    table.Add({one.report.digest, Joined(one.names), FormatSize(one.report.bytes),
               RelativeTime(FormatTime(one.imported), invocation.clock.Now())});
  }
  table.Print(console);
  return 0;
}

Result<int> Show(Invocation& invocation) {
  RINGFENCE_TRY(NeedRoot());
  const image::Store store(ImageFolder(invocation.settings));
  RINGFENCE_ASSIGN(const image::StoredImage stored,
                   store.FindByText(invocation.parsed.Argument(0)));
  if (invocation.console.table()) {
    PrintFacts(invocation, stored);
  } else {
    invocation.console.Show(image::StoredImageToJson(stored));
  }
  return 0;
}

Result<int> Remove(Invocation& invocation) {
  RINGFENCE_TRY(NeedRoot());
  image::Store store(ImageFolder(invocation.settings));
  std::string digest = invocation.parsed.Argument(0);
  if (!image::IsDigest(digest)) {  // one that is damaged can still be removed by its digest
    RINGFENCE_ASSIGN(const image::StoredImage stored, store.FindByText(digest));
    digest = stored.report.digest;
  }
  RINGFENCE_TRY(store.Remove(digest));
  if (invocation.console.table()) {
    invocation.console.Note("image " + digest + " is removed");
  } else {
    invocation.console.Show(JsonObject{{"removed", digest}});
  }
  return 0;
}

}  // namespace

std::string ImageFolder(const Settings& settings) {
  return settings.state() + "/node/jailer/images";
}

Result<isolate::ImagePlace> ImagePlaceOf(const Settings& settings) {
  isolate::ImagePlace place;
  place.store = ImageFolder(settings);
  RINGFENCE_ASSIGN(place.worker.program, OwnPart("ringfence-unpack"));
  place.worker.walls = os::IsRoot() ? isolate::WorkerWalls::kAll : isolate::WorkerWalls::kSameUser;
  place.worker.uid =
      os::IsRoot()
          ? isolate::ImageUid(static_cast<unsigned>(settings.Number(Setting::kNodeUidBase)))
          : os::UserId();
  place.verifier = settings.Text(Setting::kNodeImageVerifier);
  return place;
}

CommandTable ImageCommands() {
  const ArgumentSpec image{.name = "IMAGE", .help = "a name, a digest, or its first 12 digits"};
  return {
      {.path = "image import",
       .group = Group::kCluster,
       .summary = "Bring an image to this node, for boxes to be made of.",
       .details =
           "REF is oci:DIR[:TAG] (an OCI layout folder), oci-archive:FILE or docker-archive:FILE\n"
           "(a tar, not compressed), containers-storage:REF (what podman has), or a path of such "
           "a\n"
           "folder or tar; with @sha256:HEX behind it, it must be that one. An unprivileged "
           "worker\n"
           "unpacks it; every digest is checked; a program named by node.image_verifier must "
           "vouch\n"
           "for it. Run it as root on the node. The server hears of it within seconds.",
       .options = {{.name = "name",
                    .value = "NAME",
                    .help = "call it this; may be given again",
                    .repeated = true}},
       .arguments = {{.name = "REF",
                      .help = "where the image is, as above",
                      .completes = Completes::kFile}},
       .examples = {{"ringfence image import oci:./train-image --name acme/train:7",
                     "from an OCI layout folder"},
                    {"ringfence image import ./train.tar", "from `docker save` or `podman save`"},
                    {"ringfence image import containers-storage:localhost/train:7",
                     "from podman's own storage"}},
       .handler = Import},
      {.path = "image list",
       .group = Group::kCluster,
       .summary = "List the images of this node.",
       .examples = {{"ringfence image list", "digests and names"}},
       .handler = List},
      {.path = "image show",
       .group = Group::kCluster,
       .summary = "Show one image of this node.",
       .arguments = {image},
       .examples = {{"ringfence image show acme/train:7", "its digest, size, and who vouched"}},
       .handler = Show},
      {.path = "image remove",
       .group = Group::kCluster,
       .summary = "Remove an image from this node, unless a box uses it.",
       .arguments = {image},
       .examples = {{"ringfence image remove acme/train:6", "once no lease needs it"}},
       .handler = Remove},
  };
}

}  // namespace ringfence::cli
