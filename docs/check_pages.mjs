// Look at pages in Chromium: is anything wider than the window, does axe object, is anything fetched from elsewhere,
// does the search find? Called by check_pages.py, which says what is missing where something is.
//
//     node check_pages.mjs SETTINGS      a JSON file: address, pages, variants, chromium, modules, pictures, query

import { createRequire } from "node:module";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const given = JSON.parse(readFileSync(process.argv[2], "utf8"));
const require = createRequire(join(given.modules, "package.json"));
const puppeteer = require("puppeteer-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

const faults = [];
const profile = mkdtempSync(join(tmpdir(), "site-chromium-"));
const browser = await puppeteer.launch({
  executablePath: given.chromium,
  userDataDir: profile,
  args: [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--hide-scrollbars",
  ],
});

// A new tab of one width and one theme, which notes what it asks other machines for.
async function tab(variant) {
  const page = await browser.newPage();
  await page.setViewport({ width: variant.width, height: variant.height, isMobile: variant.width < 600 });
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: variant.theme }]);
  await page.evaluateOnNewDocument((theme) => {
    localStorage.setItem("mode", theme);
    localStorage.setItem("theme", theme);
  }, variant.theme);
  page.on("request", (request) => {
    const url = request.url();
    if (/^(https?|wss?):/.test(url) && !url.startsWith(given.address)) faults.push(`${page.at}: asks for ${url}`);
  });
  page.on("response", (response) => {
    if (response.status() >= 400) faults.push(`${page.at}: ${response.url()} is answered by ${response.status()}`);
  });
  page.on("pageerror", (error) => faults.push(`${page.at}: ${error.message}`));
  return page;
}

for (const variant of given.variants) {
  const page = await tab(variant);
  for (const name of given.pages) {
    page.at = `${name} (${variant.name})`;
    await page.goto(given.address + name, { waitUntil: "load" });
    const wide = await page.evaluate(() => {
      const room = document.documentElement.clientWidth;
      if (document.documentElement.scrollWidth <= room) return [];
      return [...document.querySelectorAll("body *")]
        .filter((e) => e.getBoundingClientRect().right > room + 1)
        .slice(0, 5)
        .map((e) => `${e.tagName.toLowerCase()}.${e.className}`);
    });
    if (wide.length) faults.push(`${page.at}: wider than the window: ${wide.join("; ")}`);
    await page.evaluate(axe);
    const found = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
    for (const one of found.violations) {
      const where = one.nodes.slice(0, 3).map((node) => node.target.join(" ")).join(" | ");
      faults.push(`${page.at}: ${one.id}: ${one.help} (${one.nodes.length}): ${where}`);
    }
    if (given.pictures) {
      const file = `${name.replaceAll("/", "-").replace(".html", "")}-${variant.name}.png`;
      await page.screenshot({ path: join(given.pictures, file) });
    }
  }
  await page.close();
}

const page = await tab(given.variants[0]);
page.at = "search";
await page.goto(`${given.address}search.html?q=${given.query}`, { waitUntil: "load" });
try {
  await page.waitForSelector("#search-results ul.search li a", { timeout: 30000 });
} catch {
  faults.push(`search: nothing is found for ${given.query}`);
}
await browser.close();
rmSync(profile, { recursive: true, force: true });
for (const fault of faults) console.error(fault);
console.log(`${given.pages.length} pages, ${given.variants.length} variants: ${faults.length} faults`);
process.exit(faults.length ? 1 : 0);
