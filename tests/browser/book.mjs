// Opens the pages of a rendered book: see run.sh.
import { createReadStream, existsSync, readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { extname, join, normalize } from 'node:path';
import { WIDTHS, launch, report, sideways } from './browser.mjs';
import { WORDS } from './words.mjs';

const BOOK = process.argv[2];
// Code has at most 80 columns, which fit into a page of these widths. On a phone it scrolls.
const WIDE = 1024;
// The smallest letters of a picture, in pixels of the screen.
const SMALLEST_LETTERS = 9;
// The rank at which a reader still sees a result.
const SHOWN_RESULTS = 3;
const PLANTED = 'planted.html';
/** Pages from whose rows a reader goes on to a chapter. */
const INDEXES = ['problems', 'glossary'];
const TYPES = {
    '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml',
    '.json': 'application/json', '.woff2': 'font/woff2', '.png': 'image/png',
};

/** Serves the book on loopback, and returns the address. */
async function serve() {
    const server = createServer((request, response) => {
        const path = normalize(decodeURIComponent(new URL(request.url, 'http://book').pathname));
        const file = join(BOOK, path);
        if (!existsSync(file) || !statSync(file).isFile()) {
            response.writeHead(404).end();
            return;
        }
        response.writeHead(200, { 'content-type': TYPES[extname(file)] ?? 'application/octet-stream' });
        createReadStream(file).pipe(response);
    });
    await new Promise((done) => server.listen(0, '127.0.0.1', done));
    return { server, address: `http://127.0.0.1:${server.address().port}` };
}

/** The pages that are chapters. */
function chapters() {
    const others = new Set(['print.html', '404.html', 'toc.html', 'index.html', PLANTED]);
    return readdirSync(BOOK).filter((file) => file.endsWith('.html') && !others.has(file)).sort();
}

/** Adds a page with one mistake of each kind. */
function plant(from) {
    const mistakes = `
        <div style="width:200px"><pre style="overflow:hidden"><code>${'x'.repeat(200)}</code></pre></div>
        <div style="width:3000px">wider than any screen</div>
        <p><a href="absent.html">a page that is absent</a> <a href="${from}#absent">no such part</a></p>
        <img src="pictures/curves.svg"> <img src="pictures/absent.svg" alt="absent">
        <img src="pictures/curves.svg" alt="small" style="width:60px">`;
    const page = readFileSync(join(BOOK, from), 'utf8');
    const planted = page.replace('<main>', `<main>${mistakes}`);
    if (planted === page) throw new Error(`${from} has no <main>`);
    writeFileSync(join(BOOK, PLANTED), planted);
}

/** What is wrong with the open page, at this width. Runs in the browser. */
function faultsOfPage({ isWide, smallestLetters }) {
    const faults = [];
    const text = (element) => (element.textContent ?? '').trim().slice(0, 60);
    for (const code of document.querySelectorAll('main pre code, main pre:not(:has(code))')) {
        const scrolls = [code, code.parentElement].some((element) =>
            ['auto', 'scroll'].includes(getComputedStyle(element).overflowX));
        const isCut = [code, code.parentElement].some((element) => element.scrollWidth > element.clientWidth + 1);
        if (isCut && (isWide || !scrolls)) faults.push(['cut code', text(code)]);
    }
    // Each picture has a copy that is shown when a reader enlarges it.
    const images = [...document.querySelectorAll('main img')].filter((image) => image.checkVisibility());
    for (const image of images) {
        const source = image.getAttribute('src');
        if (!image.alt.trim()) faults.push(['no text', source]);
        if (!image.naturalWidth) faults.push(['no picture', source]);
        const scale = image.getBoundingClientRect().width / image.naturalWidth;
        // All pictures have letters of at least 11 px.
        if (image.naturalWidth && isWide && 11 * scale < smallestLetters) {
            faults.push(['small picture', `${source}: ${(11 * scale).toFixed(1)} px`]);
        }
    }
    return faults;
}

/** The links and the anchors of the open page. Runs in the browser. */
function linksOfPage() {
    const links = [...document.querySelectorAll('main a[href]')].map((link) => link.href);
    return { links, anchors: [...document.querySelectorAll('[id]')].map((element) => element.id) };
}

/** Opens a page at each width, in light and dark. Returns its faults, links and anchors. */
async function look(tab, address, page) {
    const faults = [];
    for (const scheme of ['light', 'dark']) {
        await tab.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: scheme }]);
        for (const width of WIDTHS) {
            await tab.setViewport({ width, height: 900 });
            await tab.goto(`${address}/${page}`, { waitUntil: 'load' });
            const options = { isWide: width >= WIDE, smallestLetters: SMALLEST_LETTERS };
            const found = [...(await tab.evaluate(faultsOfPage, options)), ...(await tab.evaluate(sideways))];
            faults.push(...found.map(([kind, what]) => ({ kind, what, where: `${page}, ${width} px, ${scheme}` })));
            if (process.env.SCREENSHOTS) {
                await tab.screenshot({ path: join(process.env.SCREENSHOTS, `${page}-${width}-${scheme}.png`) });
            }
        }
    }
    return { faults, ...(await tab.evaluate(linksOfPage)) };
}

/** Links whose page or part is absent. */
function deadLinks(pages, address) {
    const dead = [];
    for (const [page, { links }] of pages) {
        for (const link of links.filter((link) => link.startsWith(`${address}/`))) {
            const url = new URL(link);
            const name = url.pathname.slice(1) || 'index.html';
            const anchor = decodeURIComponent(url.hash.slice(1));
            const target = pages.get(name);
            const isThere = target ? !anchor || target.anchors.includes(anchor) : existsSync(join(BOOK, name));
            if (!isThere) dead.push({ kind: 'dead link', what: name + url.hash, where: page });
        }
    }
    return dead;
}

/** Whether a chapter is the one with this name, or one of its parts. */
const isPart = (chapter, name) => chapter === name || chapter.startsWith(`${name}_`);

/**
 * Whether an index, of problems or of terms, leads from a word to one of these chapters: a row with
 * all words of the search has a link to the chapter.
 */
function leads(index, word, expected) {
    const rows = readFileSync(join(BOOK, `${index}.html`), 'utf8').split('<tr>');
    const parts = word.toLowerCase().split(' ');
    const row = (text) => parts.every((part) => text.toLowerCase().replace(/<[^>]*>/g, '').includes(part));
    const links = (text) => [...text.matchAll(/href="(\w+)\.html/g)].map(([, chapter]) => chapter);
    const isRight = (text) => links(text).some((link) => expected.some((name) => isPart(link, name)));
    return rows.some((text) => row(text) && isRight(text));
}

/** The chapters of the first results for a word that is typed into the search. */
async function search(tab, address, word) {
    await tab.goto(`${address}/introduction.html`, { waitUntil: 'load' });
    await tab.keyboard.press('s');
    await tab.waitForSelector('#mdbook-searchbar, #searchbar', { visible: true });
    await tab.keyboard.type(word);
    const results = '#mdbook-searchresults li a, #searchresults li a';
    await tab.waitForSelector(results, { timeout: 5_000 }).catch(() => {});
    // The results follow the typing by half a second.
    await new Promise((done) => setTimeout(done, 700));
    const found = await tab.$$eval(results, (all) => all.map((link) => new URL(link.href).pathname));
    const names = found.map((path) => path.slice(1).replace(/\.html$/, ''));
    return [...new Set(names)].slice(0, SHOWN_RESULTS);
}

async function searches(tab, address, words) {
    const faults = [];
    for (const [word, expected] of Object.entries(words)) {
        const found = await search(tab, address, word);
        const isRight = (chapter) =>
            expected.some((name) => isPart(chapter, name)) || (INDEXES.includes(chapter) && leads(chapter, word, expected));
        if (!found.some(isRight)) {
            faults.push({ kind: 'search', what: word, where: `found ${found.join(', ') || 'nothing'}` });
        }
    }
    return faults;
}

/** Whether the keyboard alone leads to the next chapter, and from the search to a result. */
async function keyboard(tab, address) {
    const faults = [];
    await tab.goto(`${address}/keys.html`, { waitUntil: 'load' });
    await Promise.all([tab.waitForNavigation({ timeout: 5_000 }), tab.keyboard.press('ArrowRight')])
        .catch(() => faults.push({ kind: 'keyboard', what: 'next chapter', where: 'keys.html' }));
    await search(tab, address, 'leaderboard');
    await tab.keyboard.press('ArrowDown');
    await Promise.all([tab.waitForNavigation({ timeout: 5_000 }), tab.keyboard.press('Enter')])
        .catch(() => faults.push({ kind: 'keyboard', what: 'open a result', where: 'search' }));
    return faults;
}

const { server, address } = await serve();
const browser = await launch();
try {
    const tab = await browser.newPage();
    const names = chapters();
    const pages = new Map();
    for (const page of names) pages.set(page, await look(tab, address, page));
    const faults = [...pages.values()].flatMap((page) => page.faults);
    faults.push(...deadLinks(pages, address), ...(await keyboard(tab, address)));
    const missed = await searches(tab, address, WORDS);

    // The controls: each kind of mistake is found on a page that has it.
    plant('keys.html');
    const planted = await look(tab, address, PLANTED);
    const found = new Set(planted.faults.map((fault) => fault.kind));
    deadLinks(new Map([...pages, [PLANTED, planted]]), address)
        .filter((fault) => fault.where === PLANTED).forEach((fault) => found.add(`dead link ${fault.what}`));
    const wrong = await searches(tab, address, { leaderboard: ['keys'] });
    wrong.forEach((fault) => found.add(fault.kind));
    const kinds = ['cut code', 'sideways', 'no text', 'no picture', 'small picture',
        'dead link absent.html', 'dead link keys.html#absent', 'search'];
    const unseen = kinds.filter((kind) => !found.has(kind));

    const looks = names.length * WIDTHS.length * 2;
    report(`${names.length} pages, ${looks} views, faults`, faults);
    report(`${Object.keys(WORDS).length} words, not found among the first ${SHOWN_RESULTS}`, missed);
    console.log(`controls: ${kinds.length - unseen.length} of ${kinds.length} found ${unseen.join(', ')}`);
    process.exitCode = faults.length + missed.length + unseen.length ? 1 : 0;
} finally {
    await browser.close();
    server.close();
}
