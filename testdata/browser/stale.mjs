// Loses the server in several ways, and measures how long a page that follows it goes on as if it were there. It reads
// {"program", "ledger", "browser"} from stdin, and prints {"findings": […], "seconds": {way: [s, …]}}.
import fs from 'node:fs';
import {spawn} from 'node:child_process';
import {chromium} from 'playwright-core';

const task = JSON.parse(fs.readFileSync(0, 'utf8'));
const findings = [], seconds = {};
const browser = await chromium.launch({executablePath: task.browser, args: ['--no-sandbox', '--disable-gpu']});

// start starts a server, and returns its process and a login link.
async function start() {
  const server = spawn(task.program, ['serve', '--db', task.ledger, '--listen', '127.0.0.1:0'], {stdio: ['ignore', 'ignore', 'pipe']});
  const link = await new Promise((done, fail) => {
    let text = '';
    server.stderr.on('data', (data) => {
      text += data;
      const found = /once: (\S+)/.exec(text);
      if (found) done(found[1]);
    });
    server.on('exit', () => fail(new Error(text)));
  });
  return {server, link, origin: new URL(link).origin};
}

const ways = {
  killed: async ({server}) => server.kill('SIGKILL'),
  stopped: async ({server}) => server.kill('SIGSTOP'),
  ended: async ({server}) => server.kill('SIGTERM'),
  'logged out in another tab': async ({context, origin}) => {
    const other = await context.newPage();
    await other.goto(origin + '/workers');
    await other.getByRole('button', {name: 'Log out'}).click();
    await other.waitForURL('**/login');
  },
};

for (const path of ['/', '/tail']) {
  for (const [way, lose] of Object.entries(ways)) {
    const {server, link, origin} = await start();
    const context = await browser.newContext();
    const page = await context.newPage();
    await page.goto(link);
    await page.waitForURL(origin + '/');
    await page.goto(origin + path);
    const say = (text) => findings.push(`${path}, ${way}: ${text}`);
    try {
      await page.locator('#sign', {hasText: '● live'}).waitFor({timeout: 5000});
      await page.waitForTimeout(5000);
      if (await page.locator('#stale').count()) say('it is taken for old while the server is there');
      await lose({server, context, origin});
      const began = performance.now();
      await page.bringToFront();
      await page.locator('#stale').waitFor({timeout: 15000});
      const took = (performance.now() - began) / 1000;
      (seconds[way] ??= []).push(Math.round(took * 100) / 100);
      if (took > 5) say(`the sign comes after ${took} s`);
      const text = await page.locator('#stale').innerText();
      const want = way.startsWith('logged') ? /^Your session has ended\. .*Log in$/ : /^Not connected since \d\d:\d\d:\d\d\. What you see is of then\. Try now$/;
      if (!want.test(text)) say(`it says ${text}`);
      if (!/^✕ (not connected since|session ended)/.test(await page.locator('#sign').innerText())) say('the sign does not say so');
      const inert = await page.locator('main form[method=post]').evaluateAll((all) => all.every((form) => form.inert));
      if (!inert) say('its forms can be sent');
      if (way === 'stopped') {
        server.kill('SIGCONT');
        await page.locator('#sign', {hasText: '● live'}).waitFor({timeout: 15000});
        if (await page.locator('#stale').count()) say('it stays old when the server is there again');
      }
    } catch (problem) {
      say(problem.message.split('\n')[0]);
    }
    await context.close();
    server.kill('SIGKILL');
  }
}

// Ages go on, also on a page that does not follow.
const {server, link, origin} = await start();
const page = await (await browser.newContext()).newPage();
await page.goto(link);
await page.waitForURL(origin + '/');
await page.goto(origin + '/failures');
const age = () => page.locator('footer time[data-age]').innerText();
await page.locator('footer time[data-age]', {hasText: / ago$/}).waitFor({timeout: 10000}).catch(() => findings.push('no age'));
const first = await age();
await page.waitForTimeout(3000);
if (await age() === first) findings.push(`the age stays ${first}`);
if (!/^◌ as of \d\d:\d\d:\d\d$/.test(await page.locator('#sign').innerText())) findings.push('the page does not say of when it is');
const plain = await (await browser.newContext({javaScriptEnabled: false, storageState: await page.context().storageState()})).newPage();
await plain.goto(origin + '/');
if (/ ago/.test(await plain.locator('footer').innerText())) findings.push('without a script there is an age that nothing renews');
if (!/^◌ as of /.test(await plain.locator('#sign').innerText())) findings.push('without a script the page does not say of when it is');
server.kill('SIGKILL');
await browser.close();
console.log(JSON.stringify({findings, seconds}));
