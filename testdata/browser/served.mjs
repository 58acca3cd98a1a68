// Starts the real server for tests of pages that lose it, or that are left open.
import {spawn} from 'node:child_process';

// start starts a server, and returns its process, a login link and its origin.
export async function start({program, ledger}) {
  const server = spawn(program, ['serve', '--db', ledger, '--listen', '127.0.0.1:0'], {stdio: ['ignore', 'ignore', 'pipe']});
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

// login opens a page of a new browser session, which is logged in at origin.
export async function login(browser, {link, origin}) {
  const context = await browser.newContext();
  const page = await context.newPage();
  await page.goto(link);
  await page.waitForURL(origin + '/');
  return {context, page};
}
