// Uses what is around each page: the slider and the links to other moments keep what the page is about.
export async function frame({page, open, context, findings}) {
  await open(page, '/workers?at=pos:3');
  await page.locator('h1').click();
  await page.keyboard.press('/');
  if (await page.evaluate(() => document.activeElement.id) !== 'search') findings.push('/workers: the key / does not lead to the search');
  await page.keyboard.type('queue:mail');
  await page.keyboard.press('Enter');
  await page.waitForURL((url) => url.pathname === '/jobs' && url.searchParams.get('find') === 'queue:mail' &&
    url.searchParams.get('at') === 'pos:3');
  const foot = await page.locator('footer p').first().locator('a').evaluateAll((all) => all.map((a) => a.getAttribute('href')));
  if (foot.join(' ') !== '/events/3 /integrity /api/v1/ledger /api') findings.push(`the foot leads to ${foot}`);
  if (!(await page.locator('nav#pages').innerText()).includes('@')) findings.push('the head does not say who is logged in');
  for (const path of ['/failures?queue=mail&from=pos:1&to=pos:6', '/lanes?worker=alpha&from=2026-01-02T03:00:00Z&to=2026-01-02T03:30:00Z',
    '/jobs?state=queued&find=queue:mail']) {
    const given = new URL(path, 'http://h').searchParams;
    const keeps = (how) => {
      const now = new URL(page.url()).searchParams;
      for (const [name, value] of given) {
        if (now.get(name) !== value) findings.push(`${path}: ${how} leads to ${page.url()}, without ${name}`);
      }
    };
    await open(page, path);
    await page.locator('#asof > summary').click();
    const slider = page.getByLabel('Position in the ledger');
    const tail = Number(await slider.getAttribute('max'));
    await slider.focus();
    await page.keyboard.press('ArrowLeft');
    await page.waitForURL((url) => url.searchParams.get('at') === 'pos:' + (tail - 1));
    keeps('the slider');
    await page.locator('h1').click();
    await page.keyboard.press('[');
    await page.waitForURL((url) => url.searchParams.get('at') === 'pos:' + (tail - 2));
    keeps('the key [');
    await page.locator('h1').click();
    await page.keyboard.press(']');
    await page.waitForURL((url) => url.searchParams.get('at') === 'pos:' + (tail - 1));
    await page.locator('a.now:not(.button)').click();
    await page.waitForURL((url) => !url.searchParams.has('at'));
    keeps('Now');
  }
  await keys({page, open, context, findings});
  await pin({page, open, findings});
  await play({page, open, findings});
  const moving = await context({reducedMotion: 'no-preference'});
  await play({page: await moving.newPage(), open, findings, smooth: true});
  await moving.close();
}

// Keys go through rows and pages, and what is around a page can be folded, chosen and read.
async function keys({page, open, context, findings}) {
  const say = (text) => findings.push(`keys: ${text}`);
  const focused = () => page.evaluate(() => document.activeElement.textContent.trim());
  await open(page, '/jobs?state=queued');
  const rows = await page.locator('tbody tr a').allInnerTexts();
  await page.keyboard.press('j');
  await page.keyboard.press('j');
  if (await focused() !== rows[1]) say(`j j leads to ${await focused()}, want ${rows[1]}`);
  await page.keyboard.press('k');
  await page.keyboard.press('x');
  if (await page.locator('tbody input:checked').count() !== 1) say('x does not tick the row');
  await page.keyboard.press('a');
  if (!await page.locator('#act').evaluate((e) => e.open && e.contains(document.activeElement))) say('a does not unfold the acts');
  await page.keyboard.press('g');
  await page.keyboard.press('o');
  await page.waitForURL((url) => url.pathname === '/').catch(() => say('g o does not lead to the overview'));
  await page.keyboard.press('?');
  await page.getByRole('button', {name: 'Turn keys off'}).click();
  await page.keyboard.press('Escape');
  await page.keyboard.press('?');
  if (await page.locator('#help').evaluate((e) => e.open)) say('a key does something though keys are off');
  await page.getByRole('button', {name: 'Keys', exact: true}).click();
  await page.getByRole('button', {name: 'Turn keys on'}).click();
  await page.keyboard.press('Escape');

  await page.locator('#asof > summary').focus();
  await page.keyboard.press('Enter');
  if (!await page.getByLabel('As of', {exact: true}).isVisible()) say('Enter does not unfold As of…');
  await page.getByLabel('As of', {exact: true}).focus();
  await page.keyboard.press('Escape');
  if (await page.getByLabel('As of', {exact: true}).isVisible()) say('Escape does not fold As of…');

  // The theme is in the first byte, so it needs no script; so does the menu of a phone.
  const phone = await context({javaScriptEnabled: false, viewport: {width: 390, height: 800}});
  const small = await phone.newPage();
  await open(small, '/workers', false);
  const overview = small.locator('.side').getByRole('link', {name: 'Overview'});
  if (await overview.isVisible()) say('the menu of a phone is not folded');
  await small.getByRole('link', {name: 'Menu'}).click();
  await overview.waitFor().catch(() => say('the menu of a phone does not unfold'));
  await small.getByRole('button', {name: 'dark'}).click();
  await small.waitForURL((url) => url.pathname === '/workers');
  if (await small.locator('html').getAttribute('data-theme') !== 'dark') say('the theme is not kept');
  const dark = await small.evaluate(() => getComputedStyle(document.body).backgroundColor);
  if (!/^rgb\((\d|[123]\d), /.test(dark)) say(`the dark theme is ${dark}`);
  await phone.close();
}

// A pinned moment is compared with another one, on any page, until it is no longer pinned.
async function pin({page, open, findings}) {
  const compare = page.getByRole('link', {name: 'Compare with pos 2'});
  await open(page, '/?at=pos:2');
  await page.getByRole('button', {name: 'Pin', exact: true}).click();
  if (await compare.isVisible()) findings.push('pin: the moment is compared with itself');
  await open(page, '/jobs?at=pos:4');
  if (await page.locator('.marks line.pin').count() !== 1) findings.push('pin: the bar has no mark of it');
  await compare.click();
  await page.waitForURL((url) => url.pathname === '/diff' && url.search === '?from=pos:2&to=pos:4');
  if (await page.locator('h1').innerText() !== 'Diff') findings.push(`pin: it leads to ${await page.title()}`);
  await open(page, '/workers?at=pos:2');
  await page.getByRole('button', {name: 'Unpin'}).click();
  await open(page, '/jobs?at=pos:4');
  if (await compare.isVisible()) findings.push('pin: it is there after Unpin');
}

// The moment is played: it goes from event to event, skips what is quiet, and stops at keys and at the end.
async function play({page, open, findings, smooth = false}) {
  const say = (text) => findings.push(`play${smooth ? '' : ' with reduced motion'}: ${text}`);
  page.on('console', (m) => { if (smooth && m.type() === 'error') say(`console: ${m.text()}`); });
  page.on('pageerror', (e) => { if (smooth) say(e.message); });
  const at = () => page.evaluate(() => document.querySelector('.slider').valueAsNumber);
  const label = () => page.locator('#when').textContent();
  const pressed = () => page.locator('.play [aria-pressed=true]').count();
  // watch waits until the moment has moved so often, and returns the milliseconds between.
  const watch = (moves) => page.evaluate((moves) => new Promise((done) => {
    const label = document.getElementById('when'), times = [];
    new MutationObserver((_, self) => {
      if (times.push(performance.now()) > moves) {
        self.disconnect();
        done(times.slice(1).map((time, i) => time - times[i]));
      }
    }).observe(label, {childList: true});
  }), moves);
  const stopped = async (how, act) => {
    const loaded = page.waitForEvent('load');
    await act();
    await loaded.catch(() => say(`${how} does not load the page`));
    if (await pressed()) say(`${how} does not stop it`);
    if (await page.evaluate(() => document.documentElement.dataset.playing !== undefined)) say(`${how} leaves it on`);
  };

  await open(page, '/?at=pos:1');
  const tail = Number(await page.getByLabel('Position in the ledger').getAttribute('max'));
  const group = page.getByRole('group', {name: 'Play what was recorded'});
  await group.getByRole('button', {name: 'Play 10×', exact: true}).click();
  if (await pressed() !== 1) say('its button is not pressed');
  const steps = (await watch(3)).sort((a, b) => a - b);
  if (smooth ? steps[0] > 900 : steps[0] < 900) say(`the moment moves after ${steps} ms`);
  await page.waitForFunction(() => document.querySelector('.slider').valueAsNumber > 1)
    .catch(() => say('the moment does not move'));
  if (!(await label()).startsWith('Playing 10×: pos ')) say(`the label is ${await label()}`);
  const here = await page.evaluate(() => Number(document.querySelector('.marks .here').getAttribute('x1')));
  if (here !== Math.trunc(1000 * await at() / tail)) say(`the mark is at ${here}, the moment ${await at()} of ${tail}`);
  // The content follows: the link to the event before is of a moment that was played.
  await page.waitForFunction(() => Number(document.getElementById('moment').dataset.pos) > 1)
    .catch(() => say('the content does not follow'));
  if (await page.evaluate(() => document.activeElement?.ariaLabel) !== 'Play 10×') say('the focus is lost');
  await stopped('Escape', () => page.keyboard.press('Escape'));
  const there = new URL(page.url()).searchParams.get('at');
  if (there !== 'pos:' + await at() || await at() >= tail) say(`it stops at ${there}, the slider says ${await at()}`);
  if (await page.evaluate(() => document.activeElement?.ariaLabel) !== 'Play 10×') say('the focus is lost as it stops');

  if (!await page.locator('dialog kbd', {hasText: /^\.$/}).count()) say('the list of keys is without .');

  // The key plays at the last speed, and another key stops it and does nothing else.
  await page.locator('h1').click();
  await page.keyboard.press('.');
  await page.waitForFunction(() => document.querySelector('.play [aria-pressed=true]')?.ariaLabel === 'Play 10×')
    .catch(() => say('the key . does not play at the last speed'));
  await stopped('the key [', () => page.keyboard.press('['));
  // A step of the slider stops it, and leads to the event after the one that was played.
  await page.getByLabel('Position in the ledger').focus();
  await page.keyboard.press('.');
  await page.waitForFunction(() => document.getElementById('when').textContent.startsWith('Playing'))
    .catch(() => say('the key . does not play from the slider'));
  await stopped('the slider', () => page.keyboard.press('ArrowLeft'));
  // At the end it begins again; a quiet stretch is skipped and named; at the end it stops, at now. Each text
  // is kept, since a busy machine shows some for one frame only.
  await open(page, '/');
  await page.locator('#asof > summary').click();
  await page.evaluate(() => {
    const label = document.getElementById('when'), texts = [];
    new MutationObserver(() => {
      texts.push(label.textContent);
      sessionStorage.setItem('played', JSON.stringify(texts));
    }).observe(label, {childList: true, characterData: true, subtree: true});
  });
  await stopped('the end', () => group.getByRole('button', {name: 'Play 100×', exact: true}).click());
  const texts = JSON.parse(await page.evaluate(() => sessionStorage.getItem('played') ?? '[]'));
  const first = Number(/^Playing 100×: pos (\d+) /.exec(texts.find((t) => t.startsWith('Playing')))?.[1] ?? tail);
  if (first >= tail) say(`it does not begin anew: ${texts.slice(0, 5)}`);
  if (!texts.some((t) => / min in which nothing was recorded/.test(t))) say(`a quiet stretch is not skipped: ${texts}`);
  if (new URL(page.url()).searchParams.has('at')) say(`the end is at ${page.url()}`);
}
