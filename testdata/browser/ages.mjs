// Leaves pages open, and looks whether what they say of time goes on: a page follows the ledger, or says of when it is. It
// reads {"program", "ledger", "browser", "follow", "rest"} from stdin, the last two being paths, and prints {"findings": […]}.
import fs from 'node:fs';
import {chromium} from 'playwright-core';
import {login, start} from './served.mjs';

const task = JSON.parse(fs.readFileSync(0, 'utf8'));
const findings = [];
const browser = await chromium.launch({executablePath: task.browser, args: ['--no-sandbox', '--disable-gpu']});
const served = await start(task), {origin} = served;
const {context} = await login(browser, served);

// agesOf are the ages that stand on a page, with where they are.
const agesOf = (page) => page.evaluate(() => [...document.querySelectorAll('main *')]
  .filter((e) => !e.children.length && / ago\b/.test(e.textContent)).map((e) => e.textContent.trim()));

async function left(path, follows) {
  const page = await context.newPage();
  const say = (text) => findings.push(`${path}: ${text}`);
  try {
    await page.goto(origin + path);
    const sign = page.locator('#sign');
    const live = () => sign.filter({hasText: /^● live$/}).waitFor({timeout: 20000}); // after a pause of a busy machine, too
    if (follows) await live();
    const renewed = page.locator('footer time[data-age]').filter({hasText: / ago$/});
    await renewed.waitFor({timeout: 10000});
    const first = await renewed.innerText(), before = await agesOf(page);
    await page.waitForTimeout(follows ? 12000 : 3000);
    if (follows) await live();
    if (await renewed.innerText() === first) say(`its foot stays at ${first}`);
    const after = await agesOf(page);
    if (follows && before.some((age) => after.includes(age) && /\b\d+s ago/.test(age))) say(`these stay: ${before}`);
    if (!follows && !/^◌ as of \d\d:\d\d:\d\d$/.test(await sign.innerText())) say('it does not say of when it is');
    for (const text of await page.locator('main time[data-age]').allInnerTexts()) {
      if (!/ ago$/.test(text)) say(`an age is ${text}`);
    }
  } catch (problem) {
    say(problem.message.split('\n')[0]);
  }
  await page.close();
}

// A browser has six connections to a server, and a page that follows keeps one: few are open at once.
const pages = [...task.follow.map((path) => [path, true]), ...task.rest.map((path) => [path, false])];
while (pages.length) await Promise.all(pages.splice(0, 3).map((of) => left(...of)));
const plain = await (await browser.newContext({javaScriptEnabled: false, storageState: await context.storageState()})).newPage();
for (const path of ['/', '/integrity']) {
  await plain.goto(origin + path);
  const text = await plain.locator(path === '/' ? 'footer' : '.verdict').innerText();
  if (/\bago\b/.test(text)) findings.push(`${path}: without a script there is an age that nothing renews`);
  if (!/^◌ as of /.test(await plain.locator('#sign').innerText())) findings.push(`${path}: without a script it does not say of when it is`);
}
served.server.kill('SIGKILL');
await browser.close();
console.log(JSON.stringify({findings}));
