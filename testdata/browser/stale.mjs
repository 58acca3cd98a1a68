// Loses the server in several ways, and measures how long a page that follows it goes on as if it were there. It reads
// {"program", "ledger", "browser", "rounds"} from stdin, and prints {"findings": […], "seconds": {way: [s, …]}}.
import fs from 'node:fs';
import net from 'node:net';
import {chromium} from 'playwright-core';
import {login, start} from './served.mjs';

const task = JSON.parse(fs.readFileSync(0, 'utf8'));
const findings = [], seconds = {};
const browser = await chromium.launch({executablePath: task.browser, args: ['--no-sandbox', '--disable-gpu']});

// between puts a proxy before a server, whose cable can be cut: it takes what comes and hands on nothing, either way. The
// server answers under its own name only, so requests get that.
async function between({origin, link}) {
  const target = new URL(origin), sockets = [];
  let cut = false, outside = '';
  const proxy = net.createServer((client) => {
    client.on('error', () => {});
    if (cut) return client.resume();
    const upstream = net.connect(Number(target.port), '127.0.0.1');
    upstream.on('error', () => {});
    client.on('data', (data) => cut || upstream.write(data.toString('latin1').replaceAll(outside, target.host), 'latin1'));
    upstream.on('data', (data) => cut || client.write(data));
    client.on('close', () => upstream.destroy());
    upstream.on('end', () => cut || client.end());
    sockets.push(client, upstream);
  });
  await new Promise((done) => proxy.listen(0, '127.0.0.1', done));
  outside = `127.0.0.1:${proxy.address().port}`;
  return {origin: 'http://' + outside, link: link.replace(target.host, outside), cut: () => { cut = true; }, close: () => {
    proxy.close();
    for (const socket of sockets) socket.destroy();
  }};
}

const ways = {
  killed: async ({server}) => server.kill('SIGKILL'),
  stopped: async ({server}) => server.kill('SIGSTOP'),
  ended: async ({server}) => server.kill('SIGTERM'),
  cut: async ({proxy}) => proxy.cut(),
  'logged out in another tab': async ({context, origin}) => {
    const other = await context.newPage();
    await other.goto(origin + '/workers');
    await other.getByRole('button', {name: 'Log out'}).click();
    await other.waitForURL('**/login');
  },
};

async function run(path, way) {
  const served = await start(task), {server} = served;
  const proxy = way === 'cut' ? await between(served) : null;
  const origin = proxy?.origin ?? served.origin;
  const {context, page} = await login(browser, proxy ?? served);
  const say = (text) => findings.push(`${path}, ${way}: ${text}`);
  try {
    await page.goto(origin + path);
    await page.locator('#sign', {hasText: '● live'}).waitFor({timeout: 10000});
    await page.waitForTimeout(5000 + 2000 * Math.random());
    if (await page.locator('#stale').count()) say('it is taken for old while the server is there');
    await ways[way]({server, proxy, context, origin});
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
  proxy?.close();
  await context.close();
  server.kill('SIGKILL');
}

for (let round = 0; round < task.rounds; round++) {
  for (const path of ['/', '/tail']) await Promise.all(Object.keys(ways).map((way) => run(path, way)));
}
await browser.close();
console.log(JSON.stringify({findings, seconds}));
