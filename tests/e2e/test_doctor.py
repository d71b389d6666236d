"""`ringfence doctor` beside a Ringfence that runs: what it holds itself is no fault, and nothing else is excused by it."""

import json
import socket


def port_check(ringfence, listen):
    done = ringfence("doctor", "--role", "server", "--listen", listen, "--output", "json")
    check = next(one for one in json.loads(done.stdout)["checks"] if one["id"] == "port.listen")
    return check["result"], check["evidence"], done.returncode


def test_an_address_is_excused_only_when_we_hold_it(ringfence):
    server = json.loads((ringfence.state / "cli" / "context.json").read_text())["server"]
    port = server.rsplit(":", 1)[1]
    for listen in (server, f"0.0.0.0:{port}"):
        result, evidence, code = port_check(ringfence, listen)
        assert (result, code) == ("ok", 0) and "held by the Ringfence that runs here" in evidence
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        result, evidence, code = port_check(ringfence, f"127.0.0.1:{other.getsockname()[1]}")
        assert (result, code) == ("fail", 1) and "in use" in evidence
    for nowhere in (f"999.1.1.1:{port}", f"192.0.2.1:{port}"):
        assert port_check(ringfence, nowhere)[0] == "fail", nowhere
