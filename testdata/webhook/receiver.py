"""Receives the webhooks of 'jobledger serve' and prints what happened. Needs Python 3 alone.

    jobledger webhook add demo --url http://127.0.0.1:9000/ --allow 127.0.0.0/8 >secret && chmod 600 secret
    python3 receiver.py secret 9000 &
    jobledger serve
"""
import base64, hashlib, hmac, json, sys, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TOLERANCE = 5 * 60  # seconds: an older request was recorded by another program and is sent again


def verify(secret, headers, body, now):
    """Returns the id of the request if it is signed with the secret, and None otherwise."""
    id, sent = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not sent.isdigit() or abs(now - int(sent)) > TOLERANCE:
        return None
    key = base64.b64decode(secret.removeprefix("whsec_"))
    expected = hmac.new(key, f"{id}.{sent}.".encode() + body, hashlib.sha256).digest()
    for one in headers.get("webhook-signature", "").split():  # two while the secret is rotated
        version, _, signature = one.partition(",")
        if version == "v1" and hmac.compare_digest(base64.b64encode(expected).decode(), signature):
            return id
    return None


class Receiver(BaseHTTPRequestHandler):
    secret, seen = "", set()  # a real receiver keeps the ids it has seen in its database

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        id = verify(self.secret, self.headers, body, time.time())
        if id is None:
            return self.answer(401)
        if id not in self.seen:  # a request may come twice
            self.seen.add(id)
            event = json.loads(body)
            print(id, event["type"], event.get("subject", "-"), event.get("queue", "-"), flush=True)
        self.answer(204)  # at once: the work is done later

    def answer(self, status):
        self.send_response(status)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    with open(sys.argv[1]) as file:
        Receiver.secret = file.read().strip()
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), Receiver)
    print("listens at", server.server_address[1], flush=True)
    server.serve_forever()
