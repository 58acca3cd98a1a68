// Finds in the lanes of a bad night what went wrong, with the keyboard too, and takes the picture of it.
import fs from 'node:fs';
import {many} from './many.mjs';

export async function night({page, open, origin, findings, facts, task}) {
  await page.setViewportSize({width: 1280, height: 900});
  await open(page, task.night.path);
  const canvas = page.locator('canvas[data-lanes]');
  const drawn = JSON.parse(await canvas.getAttribute('data-drawn'));
  facts.drawn = drawn;
  // Each must be in the picture, and all of it on one screen.
  for (const [what, n] of Object.entries({failed: 200, reclaimed: 4, refused: 1, silent: 2, pauses: 1, arrows: 3, acts: 5, named: 5})) {
    if (!(drawn[what] >= n)) findings.push(`night: ${drawn[what]} ${what} in the picture, want at least ${n}`);
  }
  // How a claim ended is seen without its color.
  for (const [what, n] of Object.entries({solid: 300, notch: 2, split: 100, gap: 5, wall: 2, hollow: 4, cross: 4, tick: 4,
    soft: 1, joined: 2})) {
    if (!(drawn.shapes?.[what] >= n)) findings.push(`night: ${drawn.shapes?.[what]} shapes ${what}, want at least ${n}`);
  }
  const box = await canvas.boundingBox();
  if (box.y + box.height > 900) findings.push(`night: the lanes end at ${box.y + box.height}, below the screen`);
  // And in words.
  const words = {
    dead_host: 'Host charlie (charlie-mail, charlie-render) fell silent at 00:1',
    frozen: 'bravo-render stopped at 01:04:55',
    twice: 'the work was done twice',
    outage: 'failed with smtp_421 from 01:2',
    pause: 'Queue mail was paused from 01:50:00 to 02:10:00',
  };
  for (const [kind, text] of Object.entries(words)) {
    const found = await page.locator(`[data-finding=${kind}]`).allInnerTexts();
    if (!found.some((f) => f.includes(text))) findings.push(`night: no ${kind} with "${text}": ${found.join(' | ')}`);
  }
  // The keyboard goes to what was lost, and opens the job.
  await canvas.focus();
  await page.keyboard.press('n');
  const said = await page.locator('#said').innerText();
  if (!said.includes('reclaimed')) findings.push(`night: n leads to: ${said}`);
  await page.keyboard.press('Escape');
  if (task.night.picture) {
    await page.evaluate(() => document.activeElement.blur());
    await page.locator('canvas[data-drawn*=wait_p99]').waitFor();
    const line = await page.locator('#summary').boundingBox();
    await page.screenshot({path: task.night.picture, animations: 'disabled',
      clip: {x: 0, y: 0, width: 1280, height: Math.min(900, Math.ceil(line.y + line.height + 8))}});
  }
  await stretches({page, canvas, findings});
  await groups({page, canvas, findings});
  await aloud({page, canvas, findings});
  await map({page, canvas, findings});
  await saves({page, canvas, origin, findings, facts});
  const scripting = await scriptTime(page, origin + task.night.path);
  facts.scripting = scripting;
  await many({page, origin, findings, facts, path: task.night.path});
  await page.goto(origin + task.night.path);
  await canvas.and(page.locator('[data-drawn]')).waitFor();
  await canvas.focus();
  await page.keyboard.press('n');
  await page.keyboard.press('Enter');
  await page.waitForURL((url) => url.pathname.startsWith('/jobs/'));
  await page.setViewportSize({width: 1440, height: 900});
}

// stretches checks what can be done with stretches of time: how many jobs waited, a selection with the mouse and
// one with the keyboard, and idle time that is cut short.
async function stretches({page, canvas, findings}) {
  const drawn = async () => JSON.parse(await canvas.getAttribute('data-drawn') ?? '{}');
  const until = async (what, holds) => {
    for (let i = 0; i < 100; i++) {
      if (holds(await drawn())) return;
      await page.waitForTimeout(50);
    }
    findings.push(`night: ${what}: ${await canvas.getAttribute('data-drawn')}`);
  };
  await until('not what waited, how long, and what failed',
    (d) => d.waiting > 50 && d.wait_p99 > 1100 && d.failed_or_lost > 10);
  const box = await canvas.boundingBox(), begun = page.url();
  await page.mouse.move(box.x + 400, box.y + 100);
  const text = await page.locator('#cross').getAttribute('data-text');
  if (!/^\d\d:\d\d:\d\d · \d+ waiting · wait p99 \d+ (ms|s|min)/.test(text)) findings.push(`night: under the pointer: ${text}`);
  await page.keyboard.down('Shift');
  await page.mouse.down();
  await page.mouse.move(box.x + 700, box.y + 100, {steps: 4});
  await page.mouse.up();
  await page.keyboard.up('Shift');
  const links = page.locator('#said a');
  const hrefs = await links.evaluateAll((all) => all.map((a) => a.pathname));
  if (hrefs.join() !== '/lanes,/diff,/incident') {
    findings.push(`night: a selection offers ${hrefs}`);
  }
  const window = new URL(await links.first().evaluate((a) => a.href)).searchParams;
  const length = (Date.parse(window.get('to')) - Date.parse(window.get('from'))) / 60000;
  if (!(length > 60 && length < 100)) findings.push(`night: 300 of 890 pixels of 4.5 hours are ${length} minutes`);
  await canvas.focus();
  await page.keyboard.press('Escape');
  for (const key of ['ArrowRight', 's', 'ArrowRight', 'ArrowRight', 's']) await page.keyboard.press(key);
  if (await links.count() !== 3) findings.push('night: s does not select');
  await page.keyboard.press('Escape');
  // What operators did, and a new version before the night.
  for (const words of ['paused mail', 'resumed mail', 'retried 54 jobs', 'cancelled 33 jobs']) {
    await page.keyboard.press('o');
    const said = await page.locator('#said').innerText();
    if (!said.includes(`cli:ada@desk: ${words}`) || await page.locator('#said a').count() !== 1) {
      findings.push(`night: o leads to: ${said}, want ${words}`);
    }
  }
  await page.keyboard.press('Escape');
  // Nothing past the moment of the page is shown, however far the picture is moved.
  await page.mouse.move(box.x + 900, box.y + 200);
  await page.mouse.down();
  await page.mouse.move(box.x + 300, box.y + 200, {steps: 4});
  await page.mouse.up();
  const windowEnd = () => new URL(page.url()).searchParams.get('to');
  for (let i = 0; i < 100 && !windowEnd(); i++) await page.waitForTimeout(50);
  const to = windowEnd();
  if (!(Date.parse(to) <= Date.parse('2026-03-15T04:00:00Z'))) findings.push(`night: as of 04:00 the lanes go up to ${to}`);
  await page.goto(begun);
  await until('not drawn', ({bars}) => bars > 0);
  // A day of which the night is a small part.
  const before = page.url();
  const day = new URL(before);
  day.searchParams.set('from', '2026-03-14T04:00:00Z');
  await page.goto(day.href);
  await until('not drawn', ({bars}) => bars > 0); // a canvas that is hidden cannot have the focus
  await canvas.focus();
  const whole = (await drawn()).bars;
  if ((await drawn()).deploys !== 1) findings.push(`night: ${(await drawn()).deploys} new versions on the day, want 1`);
  await page.keyboard.press('c');
  await until('idle time is not cut short', ({cuts}) => cuts > 0);
  if ((await drawn()).bars !== whole) findings.push(`night: ${whole} bars, and cut short ${(await drawn()).bars}`);
  await page.keyboard.press('c');
  await until('idle time stays short', ({cuts}) => cuts === 0);
  await page.goto(before);
  await until('not drawn', ({bars}) => bars > 0);
}

// map checks the map of the whole ledger: it has what waited and what went wrong, and the frame moves the view.
async function map({page, canvas, findings}) {
  const small = page.locator('canvas[data-map][data-shown]');
  await small.waitFor();
  const drawn = JSON.parse(await small.getAttribute('data-shown'));
  if (!(drawn.most > 50 && drawn.moments > 50)) findings.push(`night: the map has ${JSON.stringify(drawn)}`);
  const frame = page.locator('#frame');
  const from = () => new URL(page.url()).searchParams.get('from');
  const moved = async (what, than) => {
    for (let i = 0; i < 100 && from() === than; i++) await page.waitForTimeout(50);
    if (from() === than) findings.push(`night: ${what} does not move the view`);
  };
  const before = page.url();
  const day = new URL(before);
  day.searchParams.set('from', '2026-03-15T00:20:00Z');
  day.searchParams.set('to', '2026-03-15T00:50:00Z');
  await page.goto(day.href);
  await small.waitFor();
  await canvas.and(page.locator('[data-drawn]')).waitFor(); // before that the map has no frame
  let at = from();
  await frame.focus();
  await page.keyboard.press('ArrowRight');
  await moved('an arrow key', at);
  if (!(Date.parse(from()) > Date.parse(at))) findings.push(`night: an arrow key moves ${at} to ${from()}`);
  at = from();
  await page.keyboard.press('Home');
  await moved('Home', at);
  at = from();
  const box = await small.boundingBox();
  await page.mouse.click(box.x + .8 * box.width, box.y + 10);
  await moved('a click', at);
  const text = await frame.getAttribute('aria-valuetext');
  if (!/\d\d:\d\d:\d\d, 30 min$/.test(text)) findings.push(`night: the frame says: ${text}`);
  await page.goto(before);
  await canvas.and(page.locator('[data-drawn]')).waitFor();
}

// aloud checks what is there for those who do not see the picture: a table of what is in view, also after it was
// moved, and words that are not read for each claim that somebody only passes.
async function aloud({page, canvas, findings}) {
  const before = page.url();
  const details = page.locator('#' + await canvas.getAttribute('aria-details'));
  const claims = () => details.locator('tbody tr').evaluateAll((rows) => rows.map((row) => row.innerText));
  const numbers = async () => [(await claims()).length, await page.locator('p.window').innerText(),
    await page.locator('[data-finding]').count()];
  await details.evaluate((e) => { e.open = true; });
  const [all, , found] = await numbers();
  const hour = new URL(before);
  hour.searchParams.set('from', '2026-03-15T00:10:00Z');
  hour.searchParams.set('to', '2026-03-15T00:20:00Z');
  await page.goto(hour.href);
  await canvas.and(page.locator('[data-drawn]')).waitFor();
  await details.evaluate((e) => { e.open = true; });
  const [some, text] = await numbers();
  await canvas.focus();
  await page.keyboard.press('+');
  for (let i = 0; i < 100 && await page.locator('p.window').innerText() === text; i++) await page.waitForTimeout(50);
  const [few, , less] = await numbers();
  const drawn = JSON.parse(await canvas.getAttribute('data-drawn'));
  const summary = await page.locator('#summary').innerText();
  if (!(all > some && some > few && few > 0) || !summary.startsWith(`${few} claim`) || !(less < found)) {
    findings.push(`night: the table has ${all}, ${some} and ${few} claims, ${found} and ${less} findings, ${summary}, ` +
      `${drawn.bars} bars`);
  }
  if (!await details.evaluate((e) => e.open)) findings.push('night: the table closes when the picture is moved');
  await page.evaluate(() => {
    window.spoken = [];
    new MutationObserver(() => window.spoken.push(document.getElementById('spoken').textContent))
      .observe(document.getElementById('spoken'), {childList: true});
  });
  for (let i = 0; i < 4; i++) await page.keyboard.press('ArrowRight');
  await page.waitForTimeout(300);
  const spoken = await page.evaluate(() => window.spoken), said = await page.locator('#said').innerText();
  if (spoken.length !== 1 || spoken[0].trim() !== said.trim()) {
    findings.push(`night: after four claims was read: ${spoken.join(' | ')}, and shown: ${said}`);
  }
  await page.goto(before);
  await canvas.and(page.locator('[data-drawn]')).waitFor();
}

// groups checks the rows by queue, those of workers without claims, and the line of numbers.
async function groups({page, canvas, findings}) {
  const before = page.url();
  const drawn = async () => JSON.parse(await canvas.getAttribute('data-drawn'));
  const summary = await page.locator('#summary').innerText();
  if (!/^950 claims · \d+ joined \(too short to see\) · 6 refused writes · 292 failed · 7 lost/.test(summary)) {
    findings.push(`night: the line below the picture is: ${summary}`);
  }
  await Promise.all([page.waitForURL('**group=queue**'), page.getByLabel('Rows by').selectOption('queue')]);
  await canvas.and(page.locator('[data-drawn]')).waitFor();
  if ((await drawn()).groups !== 2) findings.push(`night: ${(await drawn()).groups} groups of rows by queue, want 2`);
  const pause = new URL(before);
  pause.searchParams.set('from', '2026-03-15T01:56:00Z');
  pause.searchParams.set('to', '2026-03-15T02:04:00Z');
  await page.goto(pause.href);
  await canvas.and(page.locator('[data-drawn]')).waitFor();
  const rows = (await drawn()).rows, button = page.getByRole('button', {name: / without claims/});
  const idle = parseInt(await button.innerText());
  await button.focus();
  await page.keyboard.press('Enter');
  if (!(idle >= 3) || (await drawn()).rows !== rows + idle || !await button.evaluate((b) => b.matches(':focus'))) {
    findings.push(`night: with ${idle} rows opened there are ${(await drawn()).rows}, and ${rows} before`);
  }
  await canvas.focus();
  await page.keyboard.press('w');
  if ((await drawn()).rows !== rows) findings.push('night: w does not fold the rows without claims');
  await page.goto(before);
  await canvas.and(page.locator('[data-drawn]')).waitFor();
}

// saves checks what can be taken away of a window: the table, the picture, the files, the incident. They are those of
// what the picture shows, also after it was moved, and the keyboard is enough.
async function saves({page, canvas, origin, findings, facts}) {
  const before = page.url();
  const claims = page.locator('#claims');
  const table = page.getByRole('link', {name: 'as a table'});
  await table.focus();
  await page.keyboard.press('Enter');
  if (!await claims.evaluate((e) => e.open)) findings.push('night: as a table does not open the table');
  const offers = page.locator('.offers');
  const windows = () => offers.locator('a[data-window]').evaluateAll((all) => all.map((a) => {
    const q = new URL(a.href).searchParams;
    return q.get('from') + ' ' + q.get('to');
  }));
  const old = (await windows())[0];
  await canvas.focus();
  await page.keyboard.press('+');
  for (let i = 0; i < 100 && (await windows())[0] === old; i++) await page.waitForTimeout(50);
  const address = new URL(page.url()).searchParams;
  const want = address.get('from') + ' ' + address.get('to');
  for (const got of await windows()) {
    if (got !== want || got === old) findings.push(`night: the links are about ${got}, and the picture about ${want}`);
  }
  const saved = async (what, start) => {
    const [download] = await Promise.all([page.waitForEvent('download'), start()]);
    const failure = await download.failure();
    if (failure) findings.push(`night: ${what}: ${failure}`);
    return {name: download.suggestedFilename(), bytes: fs.readFileSync(await download.path())};
  };
  const button = page.getByRole('button', {name: 'PNG'});
  const picture = await saved('the picture', async () => {
    await button.focus();
    await page.keyboard.press('Enter');
  });
  const drawn = await canvas.evaluate((c) => [c.width, c.height]);
  const size = [picture.bytes.readUInt32BE(16), picture.bytes.readUInt32BE(20)];
  facts.picture = `${picture.name}, ${size.join(' x ')}`;
  if (picture.bytes.toString('latin1', 1, 4) !== 'PNG' || size[0] !== drawn[0] || !(size[1] > drawn[1] + 40) ||
    !/^lanes-2026-03-15T\d{6}Z-2026-03-15T\d{6}Z\.png$/.test(picture.name)) {
    findings.push(`night: the picture of ${drawn} is ${facts.picture}`);
  }
  await colors({page, picture, findings});
  const trace = await saved('the trace', () => page.getByRole('link', {name: 'Perfetto'}).click());
  const events = JSON.parse(trace.bytes.toString()).traceEvents ?? JSON.parse(trace.bytes.toString());
  if (trace.name !== 'trace.json' || !(events.length > 50)) findings.push(`night: ${trace.name} has ${events.length} events`);
  const csv = await saved('the CSV', () => page.getByRole('link', {name: 'CSV'}).click());
  if (csv.name !== 'attempts.csv' || csv.bytes.toString().split('\n').length < 20) {
    findings.push(`night: ${csv.name} is ${csv.bytes}`);
  }
  await page.getByRole('link', {name: 'as an incident'}).click();
  await page.waitForURL(origin + '/incident?*');
  await page.goto(before);
  await canvas.and(page.locator('[data-drawn]')).waitFor();
}

// colors checks that a saved picture has the paper and the colors of the page, and is nowhere clear. Another page looks
// at it: the policy of this one forbids that.
async function colors({page, picture, findings}) {
  const wanted = await page.evaluate(() => {
    const of = (name) => getComputedStyle(document.querySelector(`.legend .${name} svg`)).color;
    return {paper: getComputedStyle(document.body).backgroundColor, succeeded: of('succeeded'), reclaimed: of('reclaimed')};
  });
  const other = await page.context().newPage();
  const found = await other.evaluate(async (data) => {
    const image = new Image();
    image.src = 'data:image/png;base64,' + data;
    await image.decode();
    const c = Object.assign(document.createElement('canvas'), {width: image.width, height: image.height}).getContext('2d');
    c.drawImage(image, 0, 0);
    const px = c.getImageData(0, 0, image.width, image.height).data, counts = {};
    for (let i = 0; i < px.length; i += 4) {
      const name = px[i + 3] === 255 ? `rgb(${px[i]}, ${px[i + 1]}, ${px[i + 2]})` : 'clear';
      counts[name] = (counts[name] ?? 0) + 1;
    }
    return counts;
  }, picture.bytes.toString('base64'));
  await other.close();
  for (const [what, color] of Object.entries(wanted)) {
    if (!(found[color] > 20)) findings.push(`night: the picture has ${found[color]} points of ${color}, which is ${what}`);
  }
  if (found.clear) findings.push(`night: ${found.clear} points of the picture are clear`);
}

// scriptTime returns how long scripts ran for a page, in milliseconds.
async function scriptTime(page, address) {
  const session = await page.context().newCDPSession(page);
  await session.send('Performance.enable');
  await page.goto(address);
  await page.locator('canvas[data-drawn]').first().waitFor();
  const {metrics} = await session.send('Performance.getMetrics');
  await session.detach();
  return Math.round(metrics.find((m) => m.name === 'ScriptDuration').value * 1000);
}
