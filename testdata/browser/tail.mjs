// Uses the tail as somebody does who watches: events come, a click on a row pauses, what came meanwhile is counted,
// and kinds are chosen with the keyboard, also without a script.
export async function tail({page, open, context, origin, findings}) {
  const operator = await page.context().newPage();
  await operator.goto(origin + '/workers');
  const pauses = async (n) => { // two events each
    for (let i = 0; i < n; i++) {
      for (const verb of ['pause', 'resume']) {
        await operator.evaluate(async ({verb, i}) => fetch('/queues/mail/' + verb,
          {method: 'POST', body: new URLSearchParams({reason: String(i)})}), {verb, i});
      }
    }
  };
  await open(page, '/tail');
  const rows = page.locator('#events tr');
  const status = page.locator('#follow');
  const says = async (what, text) => {
    await page.waitForFunction((text) => document.getElementById('follow').textContent.includes(text), text, {timeout: 6000})
      .catch(async () => findings.push(`/tail: ${what}: ${await status.innerText()}`));
  };
  if ((await rows.allInnerTexts()).some((row) => row.includes('heartbeat'))) findings.push('/tail: there is a heartbeat');
  await says('it does not follow', 'Following');
  const before = await rows.count();
  await pauses(1);
  await page.waitForFunction((n) => document.querySelectorAll('#events tr').length === n, before + 2, {timeout: 6000})
    .catch(async () => findings.push(`/tail: ${await rows.count()} rows, want ${before + 2}`));
  const link = await rows.last().locator('a').first().getAttribute('href');
  const pos = await rows.last().locator('td').first().innerText();
  if (link !== '/events/' + pos) findings.push(`/tail: the link of a row is ${link}, want /events/${pos}`);

  await rows.nth(1).locator('td').nth(2).click();
  await says('a click on a row does not pause', 'Paused, 0 new');
  if (await page.locator('#events .frozen').count() !== 1) findings.push('/tail: the row is not marked');
  await pauses(3);
  await says('what came is not counted', 'Paused, 6 new');
  if (await rows.count() !== before + 2) findings.push('/tail: while it is paused there are new rows');
  const button = page.locator('#pause');
  if (await button.innerText() !== 'Go on, 6 new') findings.push(`/tail: the button is ${await button.innerText()}`);
  await button.focus();
  await page.keyboard.press('Enter');
  if (await rows.count() !== before + 8) findings.push(`/tail: after the pause ${await rows.count()} rows, want ${before + 8}`);
  if (await page.locator('#events .frozen').count()) findings.push('/tail: after the pause a row is marked');

  const choose = async (page, path, how) => {
    await open(page, path, false);
    await page.locator('details.kinds > summary').focus();
    await page.keyboard.press('Enter');
    await page.locator('input[name=kind][value=queue_paused]').focus();
    await page.keyboard.press('Space');
    await page.locator('input[name=kind][value=heartbeat]').focus();
    await page.keyboard.press('Space');
    await page.keyboard.press('Enter');
    await page.waitForURL((url) => url.searchParams.has('kind') && !url.searchParams.has('kinds'));
    const kinds = new URL(page.url()).searchParams.getAll('kind').join(' ');
    if (kinds !== '-queue_paused') findings.push(`${path}, ${how}: the address has ${kinds}`);
    const shown = (await page.locator('#events tr').allInnerTexts()).join(' ');
    if (shown.includes('queue_paused') || !shown.includes('heartbeat') || !shown.includes('queue_resumed')) {
      findings.push(`${path}, ${how}: the rows are ${shown}`);
    }
  };
  await choose(page, '/tail', 'with a script');
  const plain = await context({javaScriptEnabled: false, viewport: {width: 320, height: 640}});
  await choose(await plain.newPage(), '/tail', 'without a script');
  await plain.close();
  await operator.close();
}
