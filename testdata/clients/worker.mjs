#!/usr/bin/env node
// A worker over HTTP: node worker.mjs QUEUE [JOBS]. It answers with the payload in capitals. See worker.py.
import { randomBytes } from "node:crypto";
import { hostname } from "node:os";

const URL = process.env.JOBLEDGER_URL + "/api/v1", LEASE = 60;
const sleep = (ms) => new Promise((end) => setTimeout(end, ms));

function ulid() {
  let n = (BigInt(Date.now()) << 80n) | BigInt("0x" + randomBytes(10).toString("hex")), text = "";
  for (let i = 0; i < 26; i++, n >>= 5n) text = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"[Number(n & 31n)] + text;
  return text;
}

// send sends a request until there is an answer: a lost one, or a busy server, is a reason to send it again.
async function send(method, path, body, patience = 30_000) {
  for (const end = Date.now() + patience; ; await sleep(200 + Math.random() * 300)) {
    try {
      const answer = await fetch(URL + path, {
        method, body: body && JSON.stringify(body), signal: AbortSignal.timeout(90_000),
        headers: { Authorization: "Bearer " + process.env.JOBLEDGER_API_TOKEN, "Content-Type": "application/json" },
      });
      const text = await answer.text();
      if (![429, 502, 503, 504, 507].includes(answer.status) || Date.now() > end)
        return [answer.status, text ? JSON.parse(text) : null];
    } catch (e) {
      if (Date.now() > end) throw e;
    }
  }
}

async function work(job) {
  const lost = new AbortController(); // the job is not ours any more: stop
  let asked = performance.now();
  const beat = setInterval(async () => {
    const now = performance.now();
    const [status, answer] = await send("POST", "/heartbeats",
      { boot, lease: LEASE, claims: [{ job: job.id, token: job.lease_token }] }, LEASE * 1000 / 6).catch(() => [0]);
    if (status === 200 && answer.lost.length === 0) asked = now;
    else if (status === 200 || performance.now() > asked + LEASE * 1000 * 2 / 3) lost.abort();
  }, LEASE * 1000 / 3);
  let outcome;
  try {
    outcome = { outcome: "succeeded", result: job.payload.toUpperCase() }; // the work; a long one takes lost.signal
  } catch (e) {
    outcome = { outcome: "failed", code: e.name, detail: String(e) };
  }
  clearInterval(beat);
  if (!lost.signal.aborted) await send("PUT", `/jobs/${job.id}/claims/${job.lease_token}`, outcome);
}

const boot = ulid(), [queue, jobs] = process.argv.slice(2);
const me = { worker: "node-" + process.pid, boot, host: hostname(), pid: process.pid };
await send("PUT", "/workers/" + boot, { ...me, queues: [queue] });
for (let left = jobs ? Number(jobs) : Infinity; left > 0;) {
  const [status, answer] = await send("POST", "/claims", { ...me, queues: [queue], tokens: [ulid()], lease: LEASE, wait: 30 });
  if (status !== 200 && status !== 204) throw new Error(`claim: ${status} ${JSON.stringify(answer)}`);
  for (const job of answer?.claims ?? []) { await work(job); left--; }
}
await send("DELETE", "/workers/" + boot);
