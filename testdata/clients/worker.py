#!/usr/bin/env python3
"""A worker over HTTP, standard library only: python3 worker.py QUEUE [JOBS]. It answers with the payload in capitals.

JOBLEDGER_URL and JOBLEDGER_API_TOKEN say where and who. Each request may be sent again: a job that was claimed is claimed
once, since the token is made here, and an outcome belongs to that token.
"""
import json, os, secrets, socket, sys, threading, time, urllib.error, urllib.request

URL, TOKEN = os.environ["JOBLEDGER_URL"] + "/api/v1", os.environ["JOBLEDGER_API_TOKEN"]
LEASE = 60


def ulid():
    n, letters = int(time.time() * 1000) << 80 | secrets.randbits(80), "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
    return "".join(letters[n >> shift & 31] for shift in range(125, -1, -5))


def send(method, path, body=None, patience=30):
    """Returns the status and the answer; a lost answer or a busy server is a reason to send it again."""
    end = time.monotonic() + patience
    while True:
        request = urllib.request.Request(URL + path, method=method, data=None if body is None else json.dumps(body).encode(),
                                         headers={"Authorization": "Bearer " + TOKEN, "Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=90) as answer:
                return answer.status, json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as e:
            if e.code not in (429, 502, 503, 504, 507) or time.monotonic() > end:
                return e.code, json.loads(e.read() or b"null")
        except OSError:
            if time.monotonic() > end:
                raise
        time.sleep(0.2 + secrets.randbelow(300) / 1000)


def work(job, boot):
    lost = threading.Event()  # the job is not ours any more: stop
    done = threading.Event()

    def beat():
        asked = time.monotonic()
        while not done.wait(LEASE / 3):
            now = time.monotonic()
            status, answer = send("POST", "/heartbeats", {"boot": boot, "lease": LEASE, "claims": [
                {"job": job["id"], "token": job["lease_token"]}]}, patience=LEASE / 6)
            if status == 200 and not answer["lost"]:
                asked = now
            elif status == 200 or time.monotonic() > asked + LEASE * 2 / 3:
                return lost.set()

    threading.Thread(target=beat, daemon=True).start()
    try:
        outcome = {"outcome": "succeeded", "result": job["payload"].upper()}  # the work; a long one looks at lost
    except Exception as e:
        outcome = {"outcome": "failed", "code": type(e).__name__, "detail": str(e)}
    done.set()
    if not lost.is_set():
        send("PUT", "/jobs/%s/claims/%s" % (job["id"], job["lease_token"]), outcome)


boot, left = ulid(), int(sys.argv[2]) if len(sys.argv) > 2 else 1 << 62
me = {"worker": "python-" + str(os.getpid()), "boot": boot, "host": socket.gethostname(), "pid": os.getpid()}
send("PUT", "/workers/" + boot, {**me, "queues": [sys.argv[1]]})
while left > 0:
    status, answer = send("POST", "/claims", {**me, "queues": [sys.argv[1]], "tokens": [ulid()], "lease": LEASE, "wait": 30})
    if status not in (200, 204):
        sys.exit("claim: %s %s" % (status, answer))
    for job in answer["claims"] if answer else []:
        work(job, boot)
        left -= 1
send("DELETE", "/workers/" + boot)
