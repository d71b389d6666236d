"""Goal: what happens on a live system is an event with its lease, once; what rules find is an alert, once, that people
can take, silence and understand, and that a webhook is told of under a signature.

Method: a Ringfence of its own with a folder of rules and a webhook; each thing is caused for real (a job that tries a
mining pool's port, a revoked token, denied requests), with kill -9 of the server in between.
"""

import base64
import http.server
import json
import os
import shutil
import signal
import ssl
import subprocess
import tempfile
import threading

import pytest
from conftest import Api, Ringfence, wait_until

IMAGING = ("-t", "globex/genomics/imaging")
VISION = ("-t", "acme/research/vision")

RULE = """
title: A token was made
id: 5b1f3c1e-7a53-4f0e-9d39-0d1f3e6f0a11
description: Somebody made a token.
logsource: {product: ringfence, service: api}
detection:
    selection: {api.operation: token.create}
    condition: selection
falsepositives: [An administrator at work]
level: low
"""


class Hook(http.server.BaseHTTPRequestHandler):
    """Refuses the first delivery, takes the others."""

    told = []
    refused = 0

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if not Hook.refused:
            Hook.refused += 1
            self.send_response(503)
        else:
            Hook.told.append((dict(self.headers.items()), body))
            self.send_response(204)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *words):
        pass


class Place:
    """The instance, the folder of its rules, and the webhook's address."""

    def __init__(self, folder):
        self.folder = folder
        self.rules = os.path.join(folder, "rules")
        os.mkdir(self.rules)
        certificate, key = os.path.join(folder, "hook.pem"), os.path.join(folder, "hook.key")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                        "-subj", "/CN=hook", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2",
                        "-keyout", key, "-out", certificate], check=True, capture_output=True)
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(certificate, key)
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hook)
        self.server.socket = tls.wrap_socket(self.server.socket, server_side=True)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.ringfence = Ringfence(os.path.join(folder, "state"))
        self.settings = {"RINGFENCE_SERVER_RULES": self.rules,
                         "RINGFENCE_SERVER_ALERT_WEBHOOK": f"https://127.0.0.1:{self.server.server_port}/hook",
                         "RINGFENCE_SERVER_ALERT_WEBHOOK_CA": certificate}
        self.ringfence.ok("up", "--detach", "--listen", "127.0.0.1:0", env=self.settings)

    def events(self, *words, **options):
        return [json.loads(line) for line in
                self.ringfence.ok("event", "search", *words, "-n", "5000", "-o", "json", **options).splitlines()]

    def alerts(self, title):
        return [a for a in self.ringfence.json("alert", "list", "--all") if a["title"] == title]

    def made_by_admin(self):
        """The alert about tokens that the administrator makes; each start of the server makes one of its own."""
        return next((a for a in self.alerts("A token was made") if a["principal"] == "admin"), None)


@pytest.fixture(scope="module")
def place():
    if os.geteuid() != 0:
        pytest.skip("a node needs root for its jailer: run the tests as root")
    folder = tempfile.mkdtemp(prefix="ringfence-e2e-")
    os.chmod(folder, 0o755)
    made = Place(folder)
    if any(node["missing"] for node in made.ringfence.json("node", "list")):
        made.ringfence.down()
        shutil.rmtree(folder)
        pytest.skip("this machine cannot run boxes")
    yield made
    made.ringfence("down")
    made.server.shutdown()
    shutil.rmtree(folder, ignore_errors=True)


def test_a_job_becomes_events_of_its_lease_that_its_tenant_alone_sees(place):
    ringfence = place.ringfence
    ringfence("run", *VISION, "--", "sh", "-c", "kill -SEGV $$")
    lease = ringfence.json("lease", "list", "--all")[0]["id"]

    def of_lease(**options):
        found = place.events("--lease", lease, **options)
        return found if any(e["activity_name"] == "closed" for e in found) else None

    events = wait_until(of_lease, "the events of the lease")
    seen = {(e["metadata"]["log_name"], e["activity_name"]) for e in events}
    assert {("lease", "started"), ("lease", "ended"), ("box", "started"), ("box", "exited"),
            ("lease", "scrubbed"), ("api", "lease.request")} <= seen, seen
    [exited] = [e for e in events if e["activity_name"] == "exited"]
    assert exited["exit"]["signal"] == 11 and exited["class_uid"] == 1007
    assert exited["tenant"]["path"] == "acme/research/vision" and exited["actor"]["user"]["name"] == "admin"
    assert exited["gpu"]["uuid"].startswith("GPU-") and exited["node"]["name"]
    [begun] = [e for e in events if (e["metadata"]["log_name"], e["activity_name"]) == ("box", "started")]
    assert "kill -SEGV" in begun["process"]["cmd_line"]

    # Its developers see it; those of another tenant do not, nor what belongs to no tenant.
    assert of_lease(token=ringfence.token("alice@acme.example"))
    grace = ringfence.token("grace@globex.example")
    assert place.events("--lease", lease, token=grace) == []
    assert all(e["tenant"]["path"].startswith("globex/genomics") for e in place.events(token=grace))
    denied = ringfence("event", "search", "--tenant", "acme/research", token=grace)
    assert denied.returncode == 3, denied.stderr
    counted = ringfence.json("event", "count", "--lease", lease, "--by", "metadata.log_name")
    assert counted["complete"] and counted["count"] == len(events)
    assert "lease" in ringfence.ok("event", "tail", "--log", "lease")


def test_every_entry_is_an_event_once_and_none_is_lost_by_a_kill(place):
    ringfence = place.ringfence
    with open(os.path.join(place.rules, "token.yml"), "w", encoding="utf-8") as file:
        file.write(RULE)

    def has_rule():
        ringfence.token("alice@acme.example")
        return place.made_by_admin()

    first = wait_until(has_rule, "the new rule to be loaded\n" + ringfence.logs())
    api = Api(ringfence)
    for number in range(30):
        api("POST", "/v1/tokens", {"principal": "alice@acme.example"})
        if number in (5, 17):
            for pid in ringfence.pid_of("ringfence", "server"):
                os.kill(pid, signal.SIGKILL)
            wait_until(lambda: ringfence("status").returncode in (0, 1), "the server to be back")
    made = len(ringfence.json("audit", "list", "--action", "token.create", "-n", "5000"))
    entries = {item["index"] for item in ringfence.json("audit", "list", "-n", "50000")}

    def all_there():
        found = [e["metadata"]["audit_index"] for e in place.events("--log", "api")]
        return found if entries <= set(found) else None

    indexes = wait_until(all_there, "an event for each entry")
    assert len(indexes) == len(set(indexes)), "an entry became an event twice"
    assert place.made_by_admin()["id"] == first["id"], "the same rule about the same is one alert"
    # Those that were made before the rule was there do not count; each of the others does, once.
    before = len(place.events("--log", "api", "api.operation=token.create", "--until", first["first"]))

    def counted():
        return sum(a["count"] for a in place.alerts("A token was made"))

    wait_until(lambda: counted() + before >= made, "all of them to be counted")
    assert counted() + before == made


def test_a_bad_rule_does_not_replace_good_ones(place):
    ringfence = place.ringfence
    rules = ringfence.json_any("status")["detection"]["rules"]
    bad = os.path.join(place.rules, "bad.yml")
    with open(bad, "w", encoding="utf-8") as file:
        file.write(RULE.replace("api.operation:", "api.operation|nonsense:").replace("5b1f", "5b1e"))
    wait_until(lambda: any("nonsense" in p["what"] for p in ringfence.json_any("status")["problems"]), "the problem")
    assert ringfence.json_any("status")["detection"]["rules"] == rules
    count = place.made_by_admin()["count"]
    ringfence.token("alice@acme.example")
    wait_until(lambda: place.made_by_admin()["count"] > count, "the old rules to go on")
    os.remove(bad)
    wait_until(lambda: not any("rules" in p["what"] for p in ringfence.json_any("status")["problems"]), "the mending")


def test_a_pools_port_is_an_alert_that_says_whose_it_was(place):
    ringfence = place.ringfence
    ringfence("run", *IMAGING, "--", "python3", "-c",
              "import socket\ns = socket.socket(); s.settimeout(2)\ns.connect(('192.0.2.7', 3333))")
    [alert] = wait_until(lambda: place.alerts("Job tries to reach a mining pool's port"), "the alert\n" + ringfence.logs())
    whole = ringfence.json("alert", "show", alert["id"])
    assert whole["severity"] == "high" and whole["status"] == "open"
    assert whole["tenant"] == "globex/genomics/imaging" and whole["principal"] == "admin"
    assert whole["on_lease"]["principal"] == "admin" and "192.0.2.7" in " ".join(whole["on_lease"]["command"])
    [event] = [e for e in whole["events"] if e["class_uid"] == 4001]
    assert event["dst_endpoint"] == {"ip": "192.0.2.7", "port": 3333} and event["disposition"] == "Blocked"
    assert any(e["activity_name"] == "started" for e in whole["around"])
    assert any(whole["lease"] in step for step in whole["next_steps"])
    text = ringfence.ok("alert", "show", alert["id"])
    assert "What to do next:" in text and "192.0.2.7" in text
    assert ringfence("alert", "show", alert["id"], token=ringfence.token("alice@acme.example")).returncode == 3


def test_matches_count_up_are_taken_and_silenced_on_record(place):
    ringfence = place.ringfence
    made = ringfence.json("token", "create", "--as", "bob@acme.example")
    ringfence.ok("token", "revoke", made["id"])
    title = "Revoked or expired token used"

    def misuse(count):
        for _ in range(count):
            assert Api(ringfence, made["token"])("GET", "/v1/status")[0] == 401

    misuse(3)
    alert = wait_until(lambda: (a := place.alerts(title)) and a[0]["count"] == 3 and a[0], "three matches, one alert")
    assert alert["principal"] == "bob@acme.example" and alert["address"] == "127.0.0.1"
    assert len(place.alerts(title)) == 1

    auditor, guard = ringfence.token("amir@audit.example"), ringfence.token("sam@security.example")
    assert ringfence("alert", "ack", alert["id"], token=auditor).returncode == 3
    ringfence.ok("alert", "ack", alert["id"], "--note", "on it", token=guard)
    assert ringfence("alert", "silence", alert["id"], token=guard).returncode == 2
    assert place.alerts(title)[0]["owner"] == "sam@security.example"
    assert alert["id"] not in [a["id"] for a in ringfence.json("alert", "list")]
    ringfence.ok("alert", "silence", alert["id"], "--for", "1h", "--note", "known script", token=guard)
    misuse(2)
    quiet = wait_until(lambda: (a := place.alerts(title)[0])["count"] == 5 and a, "silent matches")
    assert quiet["status"] == "silenced" and quiet["while_silenced"] == 2 and len(place.alerts(title)) == 1
    for action in ("alert.ack", "alert.silence"):
        [entry] = ringfence.json("audit", "list", "--action", action)
        assert entry["entry"]["actor"]["principal"] == "sam@security.example"
        assert entry["entry"]["detail"]["alert"] == alert["id"]
    ringfence.ok("alert", "silence", alert["id"], "--for", "1s", "--note", "over soon", token=guard)

    def fresh():
        misuse(1)
        return len(place.alerts(title)) == 2

    wait_until(fresh, "a new alert once the silence is over")


def test_the_webhook_is_told_once_under_a_signature(place):
    ringfence = place.ringfence
    wait_until(lambda: Hook.told, "a delivery after the refusal")
    opened = {a["id"] for a in ringfence.json("alert", "list", "--all")}
    wait_until(lambda: opened <= {json.loads(body)["data"]["id"] for _, body in Hook.told}, "all of them to be told")
    assert len(Hook.told) == len({headers["webhook-id"] for headers, _ in Hook.told})
    headers, body = Hook.told[0]
    key = ringfence.json_any("status")["detection"]["webhook_key"]
    assert key.startswith("whpk_")
    prefix = bytes.fromhex("302a300506032b6570032100")
    with tempfile.TemporaryDirectory() as folder:
        for name, data in (("key", prefix + base64.b64decode(key[5:])),
                           ("signature", base64.b64decode(headers["webhook-signature"].removeprefix("v1a,"))),
                           ("message", f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body)):
            with open(os.path.join(folder, name), "wb") as file:
                file.write(data)

        def verify():
            return subprocess.run(["openssl", "pkeyutl", "-verify", "-pubin", "-inkey", "key", "-keyform", "DER", "-rawin",
                                   "-in", "message", "-sigfile", "signature"], cwd=folder, capture_output=True,
                                  check=False).returncode
        assert verify() == 0
        with open(os.path.join(folder, "message"), "ab") as file:
            file.write(b" ")
        assert verify() != 0
    told = json.loads(body)
    assert told["type"] == "alert.opened" and told["data"]["next_steps"]


def test_a_feed_finds_what_was_there_before_it_and_what_comes_after(place):
    def known_bad(value):
        return [a for a in place.ringfence.json("alert", "list", "--all") if a["title"].endswith(": " + value)]

    ringfence = place.ringfence
    api = Api(ringfence)
    assert Api(ringfence, token="rft_wrong")("GET", "/v1/status")[0] == 401
    wait_until(lambda: place.events("src_endpoint.ip=127.0.0.1"), "the failed sign-in to be an event")
    feed = os.path.join(place.folder, "Bad Hosts.txt")
    with open(feed, "w", encoding="utf-8") as file:
        file.write("# nothing but tests\n127.0.0.1\n203.0.113.77\n")
    assert "2 indicators" in ringfence.ok("intel", "import", feed)
    wait_until(lambda: known_bad("127.0.0.1"), "the stored event to be found")
    wait_until(lambda: ringfence.json("intel", "list")[0]["hunted"], "the hunt to end")
    (one,) = ringfence.json("intel", "list")
    assert (one["name"], one["indicators"], one["imported_by"]) == ("bad-hosts", 2, "admin")

    # A job that tries the other address: found as it ends, with its lease.
    ringfence("run", *IMAGING, "--", "bash", "-c", "exec 3<>/dev/tcp/203.0.113.77/443 || true")
    wait_until(lambda: known_bad("203.0.113.77"), "the job's flow to be found")
    (alert,) = known_bad("203.0.113.77")
    assert alert["lease"] and alert["tenant"] == "globex/genomics/imaging"

    # What is wrong is refused whole; who may not, may not; what is removed is gone.
    status, _, text = api("POST", "/v1/intel/feeds/x/parts", {"upload": "u", "part": 0, "indicators": [
        {"id": "1", "kind": "ip", "value": "not an address"}]})
    assert status == 400 and b"indicators[0]" in text
    assert api("POST", "/v1/intel/feeds/x", {"upload": "u", "parts": 1})[0] == 409
    developer = ringfence.token("alice@acme.example")
    assert ringfence("intel", "import", feed, token=developer).returncode == 3
    ringfence.ok("intel", "remove", "bad-hosts")
    assert ringfence.json("intel", "list") == []
    assert ringfence("intel", "remove", "bad-hosts").returncode == 4
