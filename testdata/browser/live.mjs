// Checks that pages about now follow the ledger, and leave alone what their reader does; and the crosshair.
export async function live({page, open, origin, findings}) {
  const loads = [];
  const operator = await page.context().newPage(); // another one, at the same time
  await operator.goto(origin + '/workers');
  page.on('request', (r) => { if (r.resourceType() === 'xhr') loads.push(Date.now()); });
  const post = async (path, form) => {
    const status = await operator.evaluate(async ({path, form}) =>
      (await fetch(path, {method: 'POST', body: new URLSearchParams(form)})).status, {path, form});
    if (status !== 200) findings.push(`live: POST ${path}: ${status}`);
  };
  const pause = (queue, reason) => post(`/queues/${queue}/pause`, {reason});
  const resume = (queue) => post(`/queues/${queue}/resume`, {reason: 'back'});
  const pos = async () => Number(/pos (\d+)/.exec(await page.locator('#when').textContent())[1]);
  const until = async (what, holds) => {
    for (let i = 0; i < 120; i++) {
      if (await holds()) return true;
      await page.waitForTimeout(50);
    }
    findings.push(`live: ${what}`);
    return false;
  };
  const cell = (title) => page.evaluate((title) => {
    const table = document.querySelector('.scroll[aria-label="jobs by state"] table');
    const i = [...table.tHead.rows[0].cells].findIndex((c) => c.textContent === title);
    return table.tBodies[0].rows[0].cells[i].textContent;
  }, title);

  await open(page, '/queues/mail');
  await crosshair({page, findings});
  const ready = Number(await cell('READY'));
  const job = await operator.evaluate(async () =>
    (await (await fetch('/api/v1/jobs?queue=mail&state=queued')).json()).items[0]);
  // A reader is in the middle of something.
  await page.setViewportSize({width: 700, height: 500});
  await page.locator('details.acts > summary').click();
  await page.locator('details.acts input[name=reason]').fill('half a rea');
  await page.locator('.chart details > summary').first().focus();
  await page.keyboard.press('Enter');
  await page.evaluate(() => {
    window.scrollTo(0, 300);
    window.kept = [document.activeElement, document.querySelector('.chart'), document.querySelector('.chart .scroll')];
  });
  const before = await page.evaluate(() => [scrollY, document.querySelectorAll('details[open]').length]);
  const at = await pos();
  await post(`/jobs/${job.id}/cancel`, {reason: 'twice', seq: String(job.seq)});
  await until('an event does not change the page', async () => await pos() === at + 1);
  if (Number(await cell('READY')) !== ready - 1) findings.push(`live: ${await cell('READY')} ready, want ${ready - 1}`);
  const [same, after, typed] = await page.evaluate(() => [
    window.kept.every((e) => e.isConnected) && window.kept[0] === document.activeElement,
    [scrollY, document.querySelectorAll('details[open]').length],
    document.querySelector('details.acts input[name=reason]').value]);
  if (!same) findings.push('live: the focus or an element is lost');
  if (String(before) !== String(after)) findings.push(`live: scrolled and opened ${before}, and then ${after}`);
  if (typed !== 'half a rea') findings.push(`live: of the reason there is left: ${typed}`);
  if (!await page.locator('.chart .cross').count()) findings.push('live: the crosshair is gone');
  // Two events, of which the second shows and hides a paragraph.
  await pause('mail', 'smtp is down');
  await until('a pause is not shown', async () => await page.locator('p.warning', {hasText: 'smtp is down'}).count() === 1);
  await resume('mail');
  await until('a pause stays', async () => await page.locator('p.warning', {hasText: 'smtp is down'}).count() === 0);
  if (await page.evaluate(() => document.activeElement !== window.kept[0])) findings.push('live: a pause takes the focus');
  await page.setViewportSize({width: 1440, height: 900});

  // Many events are few loads, and a page that nobody sees makes none.
  loads.length = 0;
  for (let i = 0; i < 10; i++) {
    await pause('render', String(i));
    await resume('render');
  }
  const last = at + 23;
  await until('it does not follow many events', async () => await pos() === last);
  const quick = loads.filter((t, i) => i > 0 && t - loads[i - 1] < 900).length;
  if (quick) findings.push(`live: ${quick} loads within 0.9 s of one before`);
  const hide = (hidden) => page.evaluate((hidden) => {
    Object.defineProperty(document, 'hidden', {value: hidden, configurable: true});
    document.dispatchEvent(new Event('visibilitychange'));
  }, hidden);
  await page.waitForTimeout(300);
  await hide(true);
  loads.length = 0;
  await pause('render', 'unseen');
  await page.waitForTimeout(1500);
  if (loads.length || await pos() !== last) findings.push(`live: a page that is hidden makes ${loads.length} loads`);
  await hide(false);
  await until('a page that is seen again stays old', async () => await pos() === last + 1);

  // The overview does so too.
  await open(page, '/');
  await resume('render');
  await until('the overview does not follow', async () => await pos() === last + 2 &&
    (await page.locator('#main').innerText()).includes('The last event: queue_resumed'));
  await operator.close();
  // The past does not change.
  await open(page, `/queues/mail?at=pos:${last}`);
  if (await page.locator('[data-stream]').count()) findings.push('live: a page about the past follows');
}

// crosshair checks that a pointer and the keyboard show the numbers of one step of all charts, those of the tables.
async function crosshair({page, findings}) {
  const shown = () => page.evaluate(() => [...document.querySelectorAll('figure.chart')].map((f) => {
    const text = f.querySelector('.at')?.textContent ?? '';
    const row = [...f.querySelectorAll('tbody tr')].find((r) => text.startsWith(r.cells[0].textContent + ': '));
    const unit = f.dataset.unit;
    const want = row && [...row.cells].slice(1).every((c) =>
      text.includes(' ' + (c.textContent === '-' ? 'unknown' : c.textContent + unit)));
    return {text, want: Boolean(want), x: f.querySelector('.cross')?.getAttribute('x1')};
  }));
  const check = async (how) => {
    const all = await shown();
    if (all.length !== 4 || !all.every((one) => one.want && one.x === all[0].x)) {
      findings.push(`crosshair: ${how}: ${JSON.stringify(all)}`);
    }
    return all[0].text;
  };
  const box = await page.locator('.chart svg').nth(1).boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + 40);
  const middle = await check('a pointer');
  const slider = page.getByLabel('Time in the charts');
  await slider.focus();
  await page.keyboard.press('ArrowRight');
  const next = await check('an arrow key');
  if (next === middle) findings.push(`crosshair: an arrow key stays at ${middle}`);
  await page.keyboard.press('End');
  const end = await check('End');
  const said = await slider.getAttribute('aria-valuetext');
  if (!said.startsWith(end.slice(0, 8)) || !said.includes('Depth: ready ') || !said.includes('Run time: ')) {
    findings.push(`crosshair: the slider says ${said}`);
  }
  if (!/ready [1-9]/.test(end)) findings.push(`crosshair: at the end of the window there is ${end}`);
}
