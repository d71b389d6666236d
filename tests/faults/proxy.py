"""A line that can be cut, slowed, plugged and garbled: a TCP proxy in threads of the test."""

import random
import socket
import threading
import time

CHUNK = 16384


class Proxy:
    """Forwards to `target` as `mode` says: "pass", "cut", "slow", "hole", "garble"."""

    def __init__(self, target, seed):
        self.target = target
        self.mode = "pass"
        self.dice = random.Random(seed)
        self.harmed = 0  # connections that were cut, garbled or swallowed
        self.pairs = set()
        self.lock = threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def set(self, mode):
        """Those who are connected are cut off, so that the new mode is everybody's."""
        self.mode = mode
        with self.lock:
            pairs, self.pairs = self.pairs, set()
        for pair in pairs:
            self._close(pair)

    def close(self):
        self.set("hole")
        self.listener.close()

    def _accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            mode = self.mode
            try:
                far = socket.create_connection(self.target) if mode != "hole" else socket.socket()
            except OSError:
                near.close()
                continue
            pair = (near, far)
            with self.lock:
                self.pairs.add(pair)
                budget = self.dice.randrange(1, 12000)
            if mode == "hole":
                self.harmed += 1
                continue  # taken, and never answered
            left = [budget]  # bytes, of both directions together, until it goes wrong
            for source, sink in (pair, pair[::-1]):
                threading.Thread(target=self._pump, args=(pair, source, sink, mode, left), daemon=True).start()

    def _pump(self, pair, source, sink, mode, left):
        try:
            while True:
                data = source.recv(64 if mode == "slow" else CHUNK)
                if not data:
                    break
                if mode == "slow":
                    time.sleep(0.002)
                if mode in ("cut", "garble"):
                    left[0] -= len(data)
                    if left[0] <= 0:
                        self.harmed += 1
                        if mode == "cut":
                            break
                        data = bytes([data[0] ^ 0x40]) + data[1:] if len(data) < 3 else data[:-1] + bytes([data[-1] ^ 1])
                        left[0] = 4000
                sink.sendall(data)
        except OSError:
            pass
        self._close(pair)
        with self.lock:
            self.pairs.discard(pair)

    @staticmethod
    def _close(pair):
        for one in pair:
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            one.close()
