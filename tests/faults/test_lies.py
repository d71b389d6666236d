"""Goal: a node that lies to the server with its own good certificate gains nothing and breaks nothing:
no server error, no GPU freed or taken, no lease ended, nothing of it believed.

Method: the test takes the agent's credentials and sends, by dice from FAULT_SEED, wrong values, wrong shapes
and plain garbage to every route that agents have, while a job runs; then everything is checked.
"""

import http.client
import json
import random
import ssl

from conftest import ALL, SEED
from world import wait_until

ROUTES = ["/v1/agent/join", "/v1/agent/renew", "/v1/agent/report", "/v1/agent/cosignatures", "/v1/agent/incidents",
          "/v1/agent/receipts", "/v1/agent/leases/{}/step", "/v1/agent/leases/{}/output"]


class Liar:
    """Speaks with the node's own certificate."""

    def __init__(self, world, folder):
        made = json.loads((world.state / "node" / "agent" / "credentials.json").read_text())
        (folder / "ca").write_text(made["ca"])
        (folder / "pair").write_text(made["certificate"] + made["key"])
        self.context = ssl.create_default_context(cafile=folder / "ca")
        self.context.load_cert_chain(folder / "pair")
        self.address = json.loads((world.state / "cli" / "context.json").read_text())["server"]

    def post(self, target, body):
        line = http.client.HTTPSConnection(self.address, context=self.context, timeout=60)
        try:
            line.request("POST", target, body=body, headers={"Content-Type": "application/json"})
            answer = line.getresponse()
            return answer.status, answer.read()
        finally:
            line.close()


def nonsense(dice, lease, gpus):
    """A body: sometimes nearly right, sometimes nothing of the kind."""
    values = [None, True, -1, 1 << 62, "", "x" * 300, "\u0000", lease, gpus, [], {}, [[[[]]]], "exited 0", "started", "ended",
              {"payloadType": "x", "payload": "AA==", "signatures": []}, 0.5]
    fields = ["step", "ending", "first", "chunks", "lease", "gpus", "envelope", "error", "line", "refusal", "size",
              "incidents", "version", "missing", "boxes", "witnessed", "request", "secret"]
    kind = dice.randrange(4)
    if kind == 0:
        return bytes(dice.randrange(256) for _ in range(dice.randrange(1, 200)))
    if kind == 1:
        return json.dumps(dice.choice(values)).encode()
    body = {field: dice.choice(values) for field in dice.sample(fields, dice.randrange(6))}
    body.pop("refusal", None)  # a witness that cries wolf is heard, and that is right
    return json.dumps(body).encode()


def test_nothing_is_believed(world, tmp_path):
    thread, job = world.start_job()
    thread.join()
    lease = job["lease"]
    wait_until(lambda: world.is_ready(lease), "the job")
    before = {one["uuid"]: one["state"] for one in world.rf.json("gpu", "list")}
    liar = Liar(world, tmp_path)
    dice = random.Random(SEED)
    forged = json.dumps({"lease": lease, "gpus": list(before), "envelope": json.dumps(
        {"payloadType": "application/vnd.in-toto+json", "payload": "e30=", "signatures": [{"keyid": "", "sig": "AA=="}]})})
    for number in range(2000 if ALL else 150):
        route = dice.choice(ROUTES).format(dice.choice([lease, "lease-000000000000", "..", "x"]))
        body = forged if dice.random() < 0.05 else nonsense(dice, lease, list(before))
        if route.endswith("/step") and b'"ended"' in (body if isinstance(body, bytes) else body.encode()):
            continue  # that its own job has ended, a node may say
        status, answer = liar.post(route, body)
        assert status < 500, (number, route, body, answer)
    assert {one["uuid"]: one["state"] for one in world.rf.json("gpu", "list")} == before
    assert world.lease(lease)["state"] == "active"
    world.settle()
    world.check()
    world.passed = True
