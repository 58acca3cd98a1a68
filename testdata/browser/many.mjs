// Measures how long scripts run for a picture of lanes with some 16,000 bars, as a browser counts it.

const workers = 48, bars = 16000;

// day returns lanes of a day with so many bars, of which one in 25 failed and one in 500 was lost.
function day(night) {
  const long = 86400000, from = Date.parse(night.to) - long, each = Math.floor(bars / workers), step = long / each;
  const many = {...night, from: new Date(from).toISOString(), claims: 16 * bars, joined: 15 * bars, lanes: [], idle: [],
    marks: [], pauses: [], acts: [], deploys: [], sign: [], lease: [], gone: [], row: [], slot: [], start: [], end: [],
    how: [], count: [], event: []};
  const [succeeded, failed, reclaimed] = ['succeeded', 'failed', 'reclaimed'].map((how) => night.outcomes.indexOf(how));
  for (let w = 0; w < workers; w++) {
    many.lanes.push({group: 'host' + (w >> 3), worker: 'w' + w, host: 'host' + (w >> 3), version: 'v7', slots: 1, claims: each,
      starts: [], versions: [], processes: 1, silent: []});
    for (let i = 0; i < each; i++) {
      const n = many.row.length, start = Math.round(i * step + w * 37), end = Math.round(start + step * (.5 + (n * 7 % 40) / 100));
      many.row.push(w);
      many.slot.push(0);
      many.start.push(start);
      many.end.push(end);
      many.how.push(n % 500 === 7 ? reclaimed : n % 25 === 3 ? failed : succeeded);
      many.count.push(1);
      many.event.push(n + 1);
      if (n % 500 === 7) {
        many.sign.push([n, Math.round(start + (end - start) * .3)]);
        many.lease.push([n, Math.round(start + (end - start) * .6)]);
      }
    }
  }
  return many;
}

// scriptIn returns how long the thread that ran most scripts did so, in milliseconds, of the events of a trace: what
// follows a promise counts too, unlike in the metric ScriptDuration.
function scriptIn(trace) {
  const names = new Set(['EvaluateScript', 'FunctionCall', 'RunMicrotasks', 'v8.evaluateModule', 'v8.compile',
    'v8.compileModule']);
  const threads = new Map();
  for (const e of JSON.parse(trace).traceEvents) {
    if (e.ph !== 'X' || !names.has(e.name)) continue;
    const key = e.pid + ' ' + e.tid;
    if (!threads.has(key)) threads.set(key, []);
    threads.get(key).push([e.ts, e.ts + e.dur]);
  }
  let most = 0;
  for (const spans of threads.values()) {
    let sum = 0, end = 0;
    for (const [from, to] of spans.sort((a, b) => a[0] - b[0])) {
      sum += Math.max(to - Math.max(from, end), 0);
      end = Math.max(end, to);
    }
    most = Math.max(most, sum / 1000);
  }
  return most;
}

// many adds to facts how long scripts ran, in milliseconds: until the picture was there with all that is below it, and
// for each of ten that follow as it is moved.
export async function many({page, origin, findings, facts, path}) {
  const night = await page.evaluate(async (address) => (await fetch(address)).json(),
    path.replace('/lanes?', '/api/v1/lanes?') + '&px=1200');
  const body = JSON.stringify(day(night));
  await page.route('**/api/v1/lanes?*', (route) => route.fulfill({contentType: 'application/json', body}));
  const session = await page.context().newCDPSession(page);
  await session.send('Performance.enable');
  const metric = async () => {
    const {metrics} = await session.send('Performance.getMetrics');
    return Object.fromEntries(metrics.map((m) => [m.name, m.value * 1000]));
  };
  await page.goto('about:blank');
  const browser = page.context().browser();
  await browser.startTracing(page, {categories: ['devtools.timeline', 'v8', 'disabled-by-default-v8.compile']});
  await page.goto(origin + path);
  const canvas = page.locator('canvas[data-drawn*=wait_p99]');
  await canvas.waitFor();
  const first = scriptIn((await browser.stopTracing()).toString());
  const box = await canvas.boundingBox();
  await page.mouse.move(box.x + 500, box.y + 200);
  await page.mouse.down();
  await page.mouse.move(box.x + 506, box.y + 200);
  const before = await metric();
  for (let i = 1; i <= 10; i++) await page.mouse.move(box.x + 506 + 4 * i, box.y + 200);
  const after = await metric();
  await page.mouse.up();
  const drawn = JSON.parse(await canvas.getAttribute('data-drawn'));
  if (!(drawn.bars > 15000)) findings.push(`many: ${drawn.bars} bars are drawn, want some ${bars}`);
  const round = (ms) => Math.round(ms * 10) / 10;
  facts.many = {bars: drawn.bars, bytes: body.length, firstScript: round(first),
    eachMoveScript: round((after.ScriptDuration - before.ScriptDuration) / 10),
    eachMoveTask: round((after.TaskDuration - before.TaskDuration) / 10)};
  await session.detach();
  await page.unroute('**/api/v1/lanes?*');
}
