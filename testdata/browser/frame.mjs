// Uses what is around each page: the slider and the links to other moments keep what the page is about.
export async function frame({page, open, findings}) {
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
    await page.locator('a.now').click();
    await page.waitForURL((url) => !url.searchParams.has('at'));
    keeps('Now');
  }
}
