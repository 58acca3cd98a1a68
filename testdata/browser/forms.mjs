// Uses the forms of the page of jobs as an operator does, with the keyboard.
export async function forms({page, open, findings}) {
  await completion({page, open, findings});
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
  await field.fill('queue:mail');
  await page.keyboard.press('Enter');
  await page.waitForURL((url) => url.searchParams.get('find') === 'queue:mail');
}
