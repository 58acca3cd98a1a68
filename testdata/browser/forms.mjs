// Uses the forms of the page of jobs as an operator does, with the keyboard.
export async function forms({page, open, context, findings}) {
  await completion({page, open, findings});
  await ticks({page, open, context, findings});
}

// ticks acts on two jobs of a list with the keyboard, without a script and with one.
async function ticks({page, open, context, findings}) {
  const act = async (page, path, scripts) => {
    const where = scripts ? 'with a script' : 'without a script';
    await open(page, path, scripts);
    const boxes = page.locator('input[name=job]');
    const names = await boxes.evaluateAll((all) => all.map((e) => e.labels.length + ' ' +
      document.getElementById(e.getAttribute('aria-labelledby')).textContent + ' ' + e.value));
    if (names.length < 3 || names.some((n) => n.split(' ')[1] !== n.split(' ')[2])) findings.push(`${path}: boxes ${names}`);
    for (const i of [0, 2]) {
      await boxes.nth(i).focus();
      await page.keyboard.press('Space');
    }
    const summary = page.locator('#act > summary');
    if (scripts) {
      if (!await page.locator('#act').evaluate((e) => e.open)) findings.push(`${path}: a box does not open the form`);
      const said = await page.locator('.ticked').innerText();
      if (!said.startsWith('2 of ')) findings.push(`${path}: two boxes are ticked, and it says ${said}`);
      if (!await page.locator('input[name=which][value=these]').isChecked()) findings.push(`${path}: a box does not choose these`);
    } else {
      await summary.focus();
      await page.keyboard.press('Enter');
      await page.locator('input[name=which][value=these]').focus();
      await page.keyboard.press('Space');
    }
    await page.locator('select[name=act]').selectOption('cancel');
    await page.locator('#many button.main').focus();
    await page.keyboard.press('Enter');
    const verdict = page.locator('p.verdict strong');
    await verdict.waitFor();
    if (await verdict.innerText() !== '2') findings.push(`${path}, ${where}: ${await verdict.innerText()} can be changed, want 2`);
    await page.locator('input[name=reason]').fill('wrong');
    await page.keyboard.press('Enter');
    await page.locator('main').getByText('done', {exact: false}).first().waitFor();
    if (await verdict.innerText() !== '2') findings.push(`${path}, ${where}: ${await verdict.innerText()} done, want 2`);
    const cancelled = page.locator('main a', {hasText: 'Its jobs'});
    await cancelled.click();
    const states = await page.locator('.state.cancelled').count();
    if (states !== 2) findings.push(`${path}, ${where}: ${states} jobs are cancelled, want 2`);
  };
  const plain = await context({javaScriptEnabled: false, viewport: {width: 320, height: 640}});
  await act(await plain.newPage(), '/jobs?find=-state:cancelled', false);
  await plain.close();
  await act(page, '/jobs?queue=mail&state=queued', true);
  await open(page, '/jobs');
  await page.locator('#act > summary').click();
  const all = page.getByRole('button', {name: 'Tick all of this page'});
  await all.click();
  const unticked = await page.locator('input[name=job]:not(:checked)').count();
  if (unticked) findings.push(`/jobs: ${unticked} boxes are not ticked`);
}

// completion checks that the field of the search offers what may follow, whatever was typed before.
async function completion({page, open, findings}) {
  await open(page, '/jobs');
  await page.locator('h1').click(); // keys are for the page while no field has the focus
  await page.keyboard.press('/');
  const field = page.locator('form.filter input[name=find]');
  if (!await field.evaluate((e) => e === document.activeElement)) findings.push('/jobs: the key / does not lead to the search');
  const offered = () => field.evaluate((e) => [...e.list.options].map((o) => o.value));
  for (const [typed, want] of [
    ['', ['queue:mail', 'state:queued', 'worker:alpha', 'kind:reclaimed', 'since:']],
    ['que', ['queue:mail', 'queue:render']],
    ['-state:f', ['-state:failed']],
    ['tag:"a b" -queue:R', ['tag:"a b" -queue:render']],
    ['tag:"a queue:', []],
  ]) {
    await field.fill('');
    await page.keyboard.type(typed);
    const got = await offered();
    for (const one of want) {
      if (!got.includes(one)) findings.push(`/jobs: after ${typed} there is no ${one}, but ${got}`);
    }
    if (typed && got.some((one) => !one.toLowerCase().startsWith(typed.toLowerCase()))) findings.push(`/jobs: after ${typed} it offers ${got}`);
    if (!want.length && got.length) findings.push(`/jobs: after ${typed} it offers ${got}`);
  }
  // In the middle the term at the cursor is completed, and what stands after it stays.
  const rest = ' tag:"a b" since:-2h';
  for (const [typed, back, want] of [['que' + rest, rest.length, ['queue:mail' + rest, 'queue:render' + rest]],
    ['state:q -queue:mail' + rest, rest.length + 2, ['state:q -queue:mail' + rest]],
    ['-queue:rend' + rest, rest.length + 3, ['-queue:render' + rest]],
    ['que' + rest, 12, []]]) {
    await field.fill(typed);
    for (let i = 0; i < back; i++) await page.keyboard.press('ArrowLeft');
    const of = () => field.evaluate((e) => [...e.list.options].map((o) => [o.value, o.label]));
    let got = [];
    for (let i = 0; i < 20; i++) {
      got = await of();
      if (String(got.map(([value]) => value)) === String(want)) break;
      await page.waitForTimeout(50);
    }
    if (String(got.map(([value]) => value)) !== String(want)) findings.push(`/jobs: in ${typed}, ${back} before its end, it offers ${got}, want ${want}`);
    if (got.some(([, label]) => !label.includes(typed))) findings.push(`/jobs: a browser does not show ${got} for ${typed}`);
  }
  await field.fill('queue:mail');
  await page.keyboard.press('Enter');
  await page.waitForURL((url) => url.searchParams.get('find') === 'queue:mail');
}
