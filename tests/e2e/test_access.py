"""Goal: policy decides, at every door, and each denial is on record.

Method: act as members of different departments through tokens.
"""

import json
import ssl
import subprocess
import urllib.error
import urllib.request

import yaml

from conftest import ROOT, Api, wait_until


def denied(done):
    assert done.returncode == 3, (done.returncode, done.stdout, done.stderr)
    return done.stderr


def test_another_departments_tenant_is_denied_and_audited(ringfence, developer):
    text = denied(ringfence("run", "-t", "globex/genomics/folding", "--", "true", token=developer))
    assert "globex/genomics/folding" in text and "lease.request" in text
    entries = ringfence.json("audit", "list", "--action", "lease.request")
    last = entries[-1]["entry"] if entries[0]["index"] < entries[-1]["index"] else entries[0]["entry"]
    assert last["decision"] == "deny" and last["actor"]["principal"] == "alice@acme.example"
    assert last["tenant"] == "globex/genomics/folding"


def test_leases_of_others_are_neither_listed_nor_readable(ringfence, developer):
    grace = ringfence.token("grace@globex.example")
    ringfence.ok("run", "-t", "globex/genomics/folding", "--", "true", token=grace)
    lease = ringfence.json("lease", "list", "--all", token=grace)[0]
    assert lease["id"] not in [one["id"] for one in ringfence.json("lease", "list", "--all", token=developer)]
    for words in (["lease", "show"], ["lease", "logs"], ["lease", "end"]):
        denied(ringfence(*words, lease["id"], token=developer))


def test_a_developer_cannot_administer(ringfence, developer):
    for words in (["token", "create", "--as", "admin"], ["token", "list"], ["audit", "list"],
                  ["policy", "reload"], ["node", "token", "create", "n2"]):
        denied(ringfence(*words, token=developer))


def test_an_auditor_reads_and_changes_nothing(ringfence):
    amir = ringfence.token("amir@audit.example")
    assert ringfence.json("audit", "list", token=amir)
    assert ringfence.json("lease", "list", "--all", token=amir) is not None
    denied(ringfence("run", "-t", "acme/research/vision", "--", "true", token=amir))
    denied(ringfence("token", "create", "--as", "admin", token=amir))


def test_a_revoked_token_opens_nothing(ringfence):
    made = ringfence.json("token", "create", "--as", "alice@acme.example")
    ringfence.ok("whoami", token=made["token"])
    ringfence.ok("token", "revoke", made["id"])
    assert "revoked" in denied(ringfence("whoami", token=made["token"]))


def test_a_damaged_token_opens_nothing(ringfence, developer):
    damaged = developer[:-2] + ("AA" if developer[-2:] != "AA" else "BB")
    denied(ringfence("whoami", token=damaged))


def test_reading_the_log_is_on_record(ringfence):
    amir = ringfence.token("amir@audit.example")
    ringfence.ok("audit", "show", "0", token=amir)
    reads = [item["entry"] for item in ringfence.json("audit", "list", "--action", "audit.read")]
    assert any(entry["actor"]["principal"] == "amir@audit.example" and entry["detail"]["what"] == "entry 0"
               for entry in reads)


def test_what_was_allowed_is_on_record_with_its_rules(ringfence, developer):
    version = ringfence.json("policy", "show")["version"]
    made = ringfence.json("token", "create", "--as", "amir@audit.example")
    ringfence.ok("token", "revoke", made["id"])
    ringfence.ok("node", "token", "create", "node-of-a-test")
    ringfence.ok("audit", "list", token=ringfence.token("amir@audit.example"))
    ringfence.ok("run", "-t", "acme/research", "--", "true", token=developer)
    expected = {"token.create": "admin@/", "token.revoke": "admin@/", "node.token_create": "admin@/", "audit.read": "auditor@/",
                "lease.request": "developer@acme/research"}
    for action, rule in expected.items():
        entries = [item["entry"] for item in ringfence.json("audit", "list", "--action", action)]
        by_people = [entry for entry in entries if entry["actor"]["kind"] != "system" and entry["decision"] == "allow"]
        assert by_people, action
        for entry in by_people:
            assert entry["detail"]["rules"] and entry["decision_reason"] and entry["policy"], entry
            assert 1 <= entry["detail"]["policy_version"] <= version, entry
        assert any(rule in entry["detail"]["rules"] for entry in by_people), (rule, by_people)
    for item in ringfence.json("audit", "list", "-n", "1000"):
        entry = item["entry"]
        if entry["actor"]["kind"] in ("user", "service") and entry["decision"]:
            assert entry["decision"] == "deny" or entry["detail"].get("rules"), entry


def test_a_cedar_file_decides_at_the_server(ringfence, developer):
    extra = ringfence.state / "policy" / "extra.cedar"
    extra.write_text('@description("no probes from here")\n'
                     'forbid(principal is User, action == Action::"node.read", resource)\n'
                     'when { context has network && context.network.isLoopback() }\n'
                     'unless { principal in Holders::"admin@/" };\n')
    try:
        ringfence.ok("policy", "reload")
        assert "no probes from here (extra.cedar:1)" in denied(ringfence("node", "list", token=developer))
        entry = ringfence.json("audit", "list", "--action", "node.read")[0]["entry"]
        assert entry["decision"] == "deny" and entry["detail"]["rules"] == ["extra.cedar#policy0"], entry
        assert entry["policy"] == ringfence.json("policy", "show")["digest"]
        ringfence.ok("node", "list")
    finally:
        extra.unlink()
        ringfence.ok("policy", "reload")
    ringfence.ok("node", "list", token=developer)


def test_a_bad_policy_changes_nothing(ringfence):
    before = ringfence.json("policy", "show")["digest"]
    bad = ringfence.state / "policy" / "bad.yaml"
    bad.write_text("kind: Tenant\nmetadata: {name: acme/research/vision/too/deep}\n")
    try:
        done = ringfence("policy", "reload")
        assert done.returncode == 2 and "bad.yaml:" in done.stderr, done.stderr
        assert ringfence("policy", "check", ringfence.state / "policy").returncode == 1
    finally:
        bad.unlink()
    assert ringfence.json("policy", "show")["digest"] == before


def test_problem_documents(ringfence):
    api = Api(ringfence)
    for method, path, body, status, code in [
        ("GET", "/v1/nothing", None, 404, "not_found"),
        ("PUT", "/v1/leases", {}, 405, "invalid_argument"),
        ("POST", "/v1/leases", {"tenant": "acme/research/vision"}, 400, "invalid_argument"),
        ("POST", "/v1/leases", {"tenant": "acme/research/vision", "command": ["x"], "gpu": 1}, 400, "invalid_argument"),
        ("POST", "/v1/leases", [], 400, "invalid_argument"),
        ("GET", "/v1/leases?limit=0", None, 400, "invalid_argument"),
        ("GET", "/v1/audit/log/..%2f..%2fkeys%2flog.key", None, 400, None),
        ("GET", "/v1/audit/log/keys", None, 404, "not_found"),
        ("POST", "/v1/agent/report", {}, 401, "unauthenticated"),
        ("POST", "/v1/agent/join", {"secret": "AAAA", "request": "", "receipt_key": "", "key_proof": "", "witness": ""}, 400, None),
    ]:
        got, headers, text = api(method, path, body)
        assert got == status, (method, path, got, text)
        assert headers["Content-Type"].startswith("application/problem+json"), (path, headers)
        problem = json.loads(text)
        assert problem["status"] == got and problem["detail"]
        if code:
            assert problem["code"] == code, (path, problem)
    assert Api(ringfence, token="rf_x_y")("GET", "/v1/status")[0] == 401


def test_garbage_and_oversized_requests(ringfence):
    api = Api(ringfence)
    assert api("POST", "/v1/leases", raw=b"\xff\xfe{")[0] == 400
    assert api("POST", "/v1/leases", raw=b'{"tenant":"a","tenant":"b"}')[0] == 400
    assert api("POST", "/v1/leases", raw=b"[" * 5000)[0] == 400
    try:
        assert api("POST", "/v1/leases", raw=b"x" * (3 << 20))[0] == 413
    except (urllib.error.URLError, ConnectionError, BrokenPipeError):
        pass  # cut off while still sending: refused all the same
    assert api("GET", "/v1/status")[0] == 200


def test_idempotency(ringfence):
    api = Api(ringfence)
    body = {"tenant": "acme/research/vision", "command": ["true"]}
    key = {"Idempotency-Key": "the-same-key-1"}
    first = api("POST", "/v1/leases", body, key)
    again = api("POST", "/v1/leases", body, key)
    assert first[0] == again[0] == 201
    assert json.loads(first[2])["id"] == json.loads(again[2])["id"]
    other = api("POST", "/v1/leases", {**body, "command": ["false"]}, key)
    assert other[0] == 409
    token = {"Idempotency-Key": "the-same-key-2"}
    one = json.loads(api("POST", "/v1/tokens", {"principal": "alice@acme.example"}, token)[2])
    two = json.loads(api("POST", "/v1/tokens", {"principal": "alice@acme.example"}, token)[2])
    assert one == two and one["token"]


def test_paging_gives_everything_once(ringfence):
    api = Api(ringfence)
    whole = [item["id"] for item in json.loads(api("GET", "/v1/leases?limit=1000")[2])["items"]]
    paged, cursor = [], ""
    while True:
        page = json.loads(api("GET", "/v1/leases?limit=2" + (f"&cursor={cursor}" if cursor else ""))[2])
        paged += [item["id"] for item in page["items"]]
        cursor = page.get("next_cursor")
        if not cursor:
            break
    assert paged == whole and len(set(whole)) == len(whole)


def test_answers_are_what_the_contract_says(ringfence):
    """Every GET without parameters, validated against api/openapi.yaml."""
    import jsonschema

    contract = yaml.safe_load((ROOT / "api" / "openapi.yaml").read_text())

    def resolve(node):
        if isinstance(node, dict):
            if "$ref" in node:
                target = contract
                for part in node["$ref"][2:].split("/"):
                    target = target[part]
                return resolve(target)
            return {key: resolve(value) for key, value in node.items()}
        return [resolve(value) for value in node] if isinstance(node, list) else node

    api = Api(ringfence)
    lease = json.loads(api("GET", "/v1/leases?limit=1")[2])["items"][0]["id"]
    node = json.loads(api("GET", "/v1/nodes")[2])["items"][0]["name"]
    ringfence.ok("assess", "send")  # the node has to have been
    made = ringfence.json("token", "create", "--as", "bob@acme.example")
    ringfence.ok("token", "revoke", made["id"])
    assert Api(ringfence, made["token"])("GET", "/v1/status")[0] == 401  # which is an alert
    alert = wait_until(lambda: json.loads(api("GET", "/v1/alerts")[2])["items"], "the alert")[0]["id"]
    gpu = json.loads(api("GET", "/v1/gpus")[2])["items"][0]["uuid"]
    values = {"{lease}": lease, "{node}": node, "{gpu}": gpu, "{version}": "1", "{index}": "0", "{file}": "checkpoint", "{alert}": alert}
    checked = 0
    for path, operations in contract["paths"].items():
        if "get" not in operations or path.startswith("/v1/agent"):
            continue
        url = path
        for name, value in values.items():
            url = url.replace(name, value)
        url += {"/v1/boundary": "?a=acme&b=globex"}.get(path, "")  # what a query must have
        status, headers, text = api("GET", url)
        assert status == 200, (url, status, text)
        content = operations["get"]["responses"]["200"]["content"]
        kind = headers["Content-Type"].split(";")[0]
        assert kind in content, (url, kind)
        if kind == "application/json":
            jsonschema.Draft202012Validator(resolve(content[kind]["schema"])).validate(json.loads(text))
        checked += 1
    assert checked >= 20


def test_metrics_and_health(ringfence):
    api = Api(ringfence)
    assert api("GET", "/healthz")[2] == b"ok\n"
    assert api("GET", "/readyz")[0] == 200
    text = api("GET", "/metrics")[2].decode()
    assert "ringfence_gpus_free" in text and "ringfence_decisions_denied_total" in text

def test_certificates_renew_and_the_old_one_ends_with_its_life(ringfence, tmp_path):
    """As the agent does it, with its own credentials: a new key, a new certificate, both accepted."""
    credentials = json.loads((ringfence.state / "node" / "agent" / "credentials.json").read_text())
    for name in ("certificate", "key"):
        (tmp_path / name).write_text(credentials[name])

    def post(certificate, key, path, body):
        tls = ssl.create_default_context(cadata=credentials["ca"])
        tls.load_cert_chain(certificate, key)
        request = urllib.request.Request("https://" + Api(ringfence).base[8:] + path, method="POST",
                                         data=json.dumps(body).encode())
        try:
            with urllib.request.urlopen(request, context=tls, timeout=30) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read())

    subprocess.run(["openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                    "-subj", "/CN=anything", "-keyout", tmp_path / "new-key", "-out", tmp_path / "request"],
                   check=True, capture_output=True)
    status, answer = post(tmp_path / "certificate", tmp_path / "key", "/v1/agent/renew",
                          {"request": (tmp_path / "request").read_text()})
    assert status == 200, answer
    (tmp_path / "new-certificate").write_text(answer["certificate"])
    # What the new one may do is what the node may do: a report of nothing in particular is refused
    # for its fields, not for who sends it; and so it is with the one before.
    for certificate, key in (("new-certificate", "new-key"), ("certificate", "key")):
        assert post(tmp_path / certificate, tmp_path / key, "/v1/agent/report", {})[0] == 400
    assert post(tmp_path / "new-certificate", tmp_path / "new-key", "/v1/agent/renew", {"request": "x"})[0] == 400
    wait_until(lambda: ringfence("status").returncode == 0, "the node, with its old certificate, to go on")


def test_an_old_receipt_frees_nothing(ringfence, tmp_path):
    """A taken-over agent says that a job has ended and offers another lease's receipt for its GPU."""
    credentials = json.loads((ringfence.state / "node" / "agent" / "credentials.json").read_text())
    for name in ("certificate", "key"):
        (tmp_path / name).write_text(credentials[name])
    tls = ssl.create_default_context(cadata=credentials["ca"])
    tls.load_cert_chain(tmp_path / "certificate", tmp_path / "key")
    base = Api(ringfence).base

    def post(path, body):
        request = urllib.request.Request(base + path, method="POST", data=json.dumps(body).encode())
        with urllib.request.urlopen(request, context=tls, timeout=30) as answer:
            return json.loads(answer.read())

    def closed(lease):
        found = ringfence.json("lease", "show", lease)
        return found if found["state"] == "closed" else None

    wait_until(lambda: ringfence.json("status")["gpus"]["free"] == 8, "all GPUs to be free")
    first = ringfence.ok("run", "-t", "acme/research/vision", "--detach", "--", "true").strip()
    done = wait_until(lambda: closed(first), "the first lease")
    status, _, text = Api(ringfence)("GET", f"/v1/leases/{first}/receipts")
    assert status == 200
    old = json.dumps(json.loads(text)["items"][0]["envelope"])
    wait_until(lambda: ringfence.json("status")["gpus"]["free"] == 8, "all GPUs to be free")
    second = ringfence.ok("run", "-t", "acme/research/vision", "--detach", "--", "sleep", "600").strip()
    wait_until(lambda: ringfence.json("lease", "show", second)["state"] == "active", "the second lease")
    assert ringfence.json("lease", "show", second)["gpus"] == done["gpus"]
    post(f"/v1/agent/leases/{second}/step", {"step": "ended", "ending": "exited 0"})
    post("/v1/agent/receipts", {"lease": second, "gpus": done["gpus"], "envelope": old})
    # Not freed: quarantined, until an operator has it scrubbed, which ends what still runs on it.
    wait_until(lambda: ringfence.json("lease", "show", second)["state"] == "quarantined", "the quarantine")
    ringfence.ok("gpu", "scrub", done["gpus"][0])
    final = wait_until(lambda: closed(second), "the second lease, by a scrub of its own")
    assert len(final["receipts"]) == 1 and final["receipts"] != done["receipts"]
    scrubs = [item["entry"] for item in ringfence.json("audit", "list", "--lease", second)
              if item["entry"]["action"] == "gpu.scrub"]
    assert [one["detail"]["receipt"] for one in scrubs] == final["receipts"]
