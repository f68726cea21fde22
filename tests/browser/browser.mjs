// What the checks in a browser share: see run.sh.
import { createRequire } from 'node:module';
import { join } from 'node:path';

const puppeteer = createRequire(join(process.env.TOOLS, 'package.json'))('puppeteer-core');

/** A desktop, a tablet, a phone. */
export const WIDTHS = [1440, 1024, 390];

export const launch = () => puppeteer.launch({
    executablePath: process.env.CHROMIUM, headless: true,
    args: ['--no-sandbox', '--disable-dev-shm-usage'],
});

/**
 * Whether the page scrolls sideways, or what of it scrolls in its place. A table scrolls within its
 * own box. Runs in the browser.
 */
export function sideways() {
    const faults = [];
    for (let box = document.querySelector('main'); box; box = box.parentElement) {
        if (box.scrollWidth > box.clientWidth + 1) faults.push(['sideways', `${box.tagName} ${box.scrollWidth} px`]);
    }
    return faults;
}

export function report(title, faults) {
    console.log(`${title}: ${faults.length}`);
    for (const { kind, what, where } of faults) console.log(`  ${kind}: ${what} (${where})`);
}
