// Looks at pages of jobledger serve in a real browser. It reads one JSON object from stdin:
//
//   {"link": "http://…/login#…", "browser": "/usr/bin/chromium", "profile": "/tmp/…", "pages": ["/"],
//    "aria": [{"path": "/", "part": "main"}], "night": null, "forms": false, "pictures": "" }
//
// and prints one: {"findings": ["…"], "facts": {…}}. A finding is something that is wrong.
import fs from 'node:fs';
import {chromium} from 'playwright-core';
import {forms} from './forms.mjs';
import {frame} from './frame.mjs';
import {live} from './live.mjs';
import {night} from './night.mjs';
import {tail} from './tail.mjs';

const task = JSON.parse(fs.readFileSync(0, 'utf8'));
const findings = [];
const facts = {};
const origin = new URL(task.link).origin;
const axeSource = fs.readFileSync(new URL('./node_modules/axe-core/axe.min.js', import.meta.url), 'utf8');

// One process for everything: the first context logs in, the others get its cookie.
const first = await chromium.launchPersistentContext(task.profile, {
  executablePath: task.browser, headless: true, viewport: {width: 1440, height: 900}, reducedMotion: 'reduce',
  timezoneId: 'UTC', locale: 'en-GB',
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
    '--disable-component-update', '--disable-sync'],
});
const browser = first.browser();

function watch(page, name) {
  page.on('console', (m) => {
    if (['error', 'warning'].includes(m.type())) findings.push(`${name()}: console: ${m.text()}`);
  });
  page.on('pageerror', (e) => findings.push(`${name()}: error: ${e.message}`));
  page.on('requestfailed', (r) => {
    if (r.failure()?.errorText !== 'net::ERR_ABORTED') findings.push(`${name()}: ${r.url()} failed`);
  });
}

async function context(options) {
  const c = await browser.newContext({reducedMotion: 'reduce', viewport: {width: 1440, height: 900},
    timezoneId: 'UTC', locale: 'en-GB', storageState: state, ...options});
  return c;
}

async function open(page, path, scripts = true) {
  const answer = await page.goto(origin + path, {waitUntil: 'load'});
  if (!answer || answer.status() !== 200) findings.push(`${path}: status ${answer?.status()}`);
  if (scripts && await page.locator('canvas[data-lanes]').count()) {
    await page.locator('canvas[data-drawn]').first().waitFor();
  }
}

// fits checks that a page is not wider than its screen, and says what is.
async function fits(page, path, how) {
  const {width, screen, wide} = await page.evaluate(() => {
    const screen = document.documentElement.clientWidth;
    const inBox = (e) => e.closest('.scroll, .stage, .skip, pre') && !e.matches('.scroll, .stage, pre');
    const wide = [...document.querySelectorAll('body *')].filter((e) =>
      e.getBoundingClientRect().right > screen + 1 && !inBox(e)).map((e) => e.tagName.toLowerCase() +
      (e.className && typeof e.className === 'string' ? '.' + e.className : ''));
    return {width: document.documentElement.scrollWidth, screen, wide: wide.slice(0, 5).join(' ')};
  });
  if (width > screen) findings.push(`${path}: ${width} pixels wide on a screen of ${screen}, ${how}: ${wide}`);
}

const page = await first.newPage();
page.setDefaultTimeout(15000);
let current = '/login';
watch(page, () => current);
await page.goto(task.link);
await page.waitForURL(origin + '/').catch(async () => { throw new Error('no login: ' + await page.locator('body').innerText()); });
const state = await first.storageState();

// Each page: no error, nothing that the policy forbids, and the keyboard reaches its content.
for (const path of task.pages) {
  current = path;
  await open(page, path);
  const inline = await page.evaluate(() => document.querySelectorAll('[style], style, script:not([src])').length);
  if (inline) findings.push(`${path}: ${inline} inline styles or scripts`);
  if (await page.locator('h1').count() !== 1) findings.push(`${path}: not one h1`);
  await page.evaluate(() => document.activeElement?.blur());
  await page.keyboard.press('Tab');
  const skip = await page.evaluate(() => document.activeElement?.getAttribute('href'));
  if (skip !== '#main') findings.push(`${path}: the first stop of the keyboard is ${skip}, want the way to the content`);
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => document.activeElement?.id === 'main', null, {timeout: 10000})
    .catch(() => findings.push(`${path}: the way to the content does not lead there`));
  await page.keyboard.press('?');
  const help = await page.evaluate(() => {
    const list = document.getElementById('help');
    const shown = list.open && list.contains(document.activeElement) && list.querySelector('kbd');
    list.close();
    document.getElementById('main').focus();
    return Boolean(shown);
  });
  if (!help) findings.push(`${path}: the key ? does not show the keys`);
  await page.keyboard.press('Tab');
  const inMain = await page.evaluate(() => {
    const e = document.activeElement;
    return Boolean(e && e.closest('main')) || document.querySelectorAll('main a, main button, main input').length === 0;
  });
  if (!inMain) findings.push(`${path}: from the way to the content the keyboard does not get there`);
}

// What a program that reads a page aloud gets of some parts.
facts.aria = [];
for (const {path, part} of task.aria ?? []) {
  current = path;
  await open(page, path);
  facts.aria.push(`# ${part} of ${path}\n${await page.locator(part).first().ariaSnapshot()}\n`);
}

if (task.forms) {
  await forms({page, open, context, findings});
  await frame({page, open, context, findings});
  await live({page, open, origin, findings});
  await tail({page, open, context, origin, findings});
}
if (task.night) await night({page, open, origin, findings, facts, task});

// Accessibility, in light and dark. The checker is a script of its own, which the policy forbids: it is off here.
const checked = await context({bypassCSP: true});
const checkedPage = await checked.newPage();
for (const path of task.pages) {
  await open(checkedPage, path);
  await checkedPage.evaluate(axeSource);
  for (const colorScheme of ['light', 'dark']) {
    await checkedPage.emulateMedia({colorScheme});
    const result = await checkedPage.evaluate(() => window.axe.run(document,
      {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'],
        resultTypes: ['violations'], elementRef: false}));
    for (const v of result.violations) {
      findings.push(`${path} (${colorScheme}): axe ${v.id}: ${v.nodes.slice(0, 3).map((n) =>
        n.target + ' ' + (n.failureSummary ?? '').replaceAll('\n', ' ')).join('; ')}`);
    }
  }
}
await checked.close();

// Without a script each page says the same, and 320 pixels are enough.
const narrow = await context({javaScriptEnabled: false, viewport: {width: 320, height: 640}});
const narrowPage = await narrow.newPage();
for (const path of task.pages) {
  current = path;
  await open(narrowPage, path, false);
  const text = await narrowPage.locator('main').innerText();
  if (text.length < 40) findings.push(`${path}: without a script there is only: ${text}`);
  await fits(narrowPage, path, 'with its own fonts');
}
await narrow.close();

// Nor does that depend on the fonts that are installed: with the spacing of WCAG 1.4.12 and larger letters of each
// kind it is the same. The policy forbids such a style, so it is off here.
const spaced = await context({bypassCSP: true, viewport: {width: 320, height: 640}});
const spacedPage = await spaced.newPage();
for (const path of task.pages) {
  await open(spacedPage, path);
  for (const font of ['serif', 'sans-serif', 'monospace']) {
    const style = await spacedPage.addStyleTag({content: `* { font-family: ${font} !important;
      letter-spacing: .12em !important; word-spacing: .16em !important; } html, body { font-size: 20px !important; }`});
    await fits(spacedPage, path, `with ${font} letters`);
    await style.evaluate((e) => e.remove());
  }
}
await spaced.close();

// On paper there is neither navigation nor a form.
await page.emulateMedia({media: 'print', colorScheme: 'light'});
for (const path of task.pages) {
  current = path;
  await open(page, path);
  const forms = await page.locator('form:visible, nav:visible').count();
  if (forms) findings.push(`${path}: ${forms} forms and navigations on paper`);
}
const paper = await page.pdf();
if (paper.length < 2000) findings.push(`a page on paper has ${paper.length} bytes`);
await page.emulateMedia({media: 'screen'});

// Pictures for people who change a page.
if (task.pictures) {
  const wide = {width: 1280, height: 800}, phone = {width: 390, height: 800};
  for (const [name, options] of [['light', {viewport: wide}], ['dark', {viewport: wide, colorScheme: 'dark'}],
    ['phone', {viewport: phone}], ['phone-dark', {viewport: phone, colorScheme: 'dark'}],
    ['narrow', {viewport: {width: 320, height: 800}}]]) {
    const c = await context(options);
    const p = await c.newPage();
    for (const path of task.pages) {
      await open(p, path);
      if (await p.locator('canvas[data-lanes]').count()) await p.locator('canvas[data-drawn*=wait_p99]').waitFor();
      const file = (path.replaceAll(/[^a-z0-9]+/gi, '-').slice(0, 60) || '-') + '.' + name + '.png';
      await p.screenshot({path: `${task.pictures}/${file}`, fullPage: true});
    }
    await c.close();
  }
}
await first.close();
console.log(JSON.stringify({findings, facts}));
