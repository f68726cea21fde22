// Clicks through the views of `keyloom explore`, and compares them with the command: see run.sh.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { WIDTHS, launch, report, sideways } from './browser.mjs';

const [KEYLOOM, STORE] = process.argv.slice(2);
const SCRIPT = '<script>window.harmed = true</script>';
const HOSTILE = `<img src=x onerror="window.harmed = true">${SCRIPT}`;

/** The lines that the command prints as JSON. */
function keyloom(...args) {
    const printed = execFileSync(KEYLOOM, [...args, '--json'], { encoding: 'utf8', maxBuffer: 1 << 26 });
    return printed.split('\n').filter(Boolean).map((line) => JSON.parse(line));
}

/** Starts the explorer. Returns its URL, and the process. */
async function start() {
    const explorer = spawn(KEYLOOM, ['explore', STORE, '--open', 'no', '--json'], { stdio: ['ignore', 'pipe', 'inherit'] });
    const line = await new Promise((done, failed) => {
        explorer.stdout.once('data', (bytes) => done(bytes.toString()));
        explorer.once('exit', (status) => failed(new Error(`the explorer ended with status ${status}`)));
    });
    return { explorer, url: JSON.parse(line).url };
}

/** Waits until the page shows a heading with this text. */
const heading = (tab, text) => tab.waitForFunction(
    (text) => document.querySelector('main h1')?.textContent.includes(text), { timeout: 10_000 }, text);

const texts = (tab, selector) => tab.$$eval(selector, (all) => all.map((one) => one.textContent));

/** Clicks the first link in the content with this text. */
async function follow(tab, text, within = 'main') {
    const link = await tab.evaluateHandle((text, within) =>
        [...document.querySelectorAll(`${within} a`)].find((link) => link.textContent === text), text, within);
    assert.ok(link.asElement(), `there is no link ${text}`);
    await link.asElement().click();
}

/** Opens the view of a part from the overview. */
async function open(tab, part) {
    await follow(tab, 'Overview', 'header');
    await heading(tab, 'What the store holds');
    await follow(tab, part);
    await heading(tab, part);
}

/** Goes to the next page, and waits until it is shown. */
async function turn(tab) {
    const first = () => document.querySelector('main tbody td')?.textContent;
    const before = await tab.evaluate(first);
    await follow(tab, 'Next page');
    await tab.waitForFunction(
        (before) => ![undefined, before].includes(document.querySelector('main tbody td')?.textContent),
        { timeout: 10_000 }, before);
}

/** The views, each with the way to it by clicks, and what it must show. */
const VIEWS = {
    async overview(tab, url) {
        await tab.goto(url, { waitUntil: 'networkidle0' });
        await heading(tab, 'What the store holds');
        await tab.waitForFunction(() => !document.querySelector('main').textContent.includes('…'), { timeout: 60_000 });
        const expected = keyloom('ls', STORE).filter((row) => row.kind);
        const names = await texts(tab, 'main section:first-of-type tbody tr td:first-child');
        assert.deepEqual(names.sort(), expected.map((row) => `${row.schema}/${row.name}`).sort());
        assert.ok((await tab.$$('svg.map a')).length > 5, 'the map has few cells');
        // An estimate of the largest table, beside the count of the command.
        const [cities] = expected.filter((row) => row.name === 'cities');
        const row = await tab.$$eval('main tbody tr', (rows) =>
            rows.find((row) => row.children[0].textContent === 'tour/cities').children[4].textContent);
        const [, entries, error] = row.match(/^about ([\d,]+) ±(\d+) %$/);
        const off = Math.abs(Number(entries.replaceAll(',', '')) / cities.entries - 1) * 100;
        assert.ok(off <= 2 * Number(error) && Number(error) < 60, `${row} of ${cities.entries}`);
    },
    async 'a table'(tab) {
        await follow(tab, 'tour/nations');
        await heading(tab, 'tour/nations');
        const keys = await texts(tab, 'main tbody tr td:first-child');
        const expected = keyloom('scan', STORE, 'nations', '--limit', String(keys.length)).map((row) => row.key);
        assert.equal(keys.length, 50, 'the keys of a page');
        assert.deepEqual(keys, expected.slice(0, keys.length));
    },
    async 'a record beside its index'(tab) {
        await tab.click('main tbody tr td:first-child a');
        await tab.waitForSelector('main dl');
        const sections = await texts(tab, 'main section h2');
        assert.ok(sections.some((text) => text.startsWith('tour/nations.by_continent (index')), sections.join());
    },
    async 'an index beside its records'(tab) {
        await follow(tab, 'tour/nations.by_continent');
        await heading(tab, 'nations.by_continent');
        const rows = [];
        for (let more = true; more;) {
            rows.push(...await tab.$$eval('main tbody tr', (rows) =>
                rows.map((row) => [row.className, row.children[0].textContent])));
            more = (await texts(tab, 'main .bar a')).includes('Next page');
            if (more) await turn(tab);
        }
        const orphaned = rows.filter(([mark]) => mark === 'orphaned').map(([, entry]) => entry);
        assert.equal(new Set(rows.map(([, entry]) => entry)).size, rows.length, 'an entry is listed twice');
        assert.deepEqual(orphaned, orphans('nations.by_continent').map((fault) => fault.key));
        assert.equal(orphaned.length, 1, 'the record that was removed');
    },
    async 'places on a map'(tab) {
        await open(tab, 'tour/cities.by_position');
        const dots = await tab.$$eval('svg.world circle', (all) => all.length);
        assert.ok(dots > 50 && dots <= 90, `${dots} points`);
        assert.equal((await tab.$$('main tbody tr')).length, dots);
        // The entry of a point leads to the city.
        await tab.click('main tbody tr td:first-child a');
        await tab.waitForSelector('main dl');
        assert.ok((await texts(tab, 'main h2')).includes('The record'));
        await tab.goBack();
        await heading(tab, 'tour/cities.by_position');
    },
    async 'a box on the map'(tab) {
        await tab.$eval('svg.world', (map) => map.scrollIntoView({ block: 'center' }));
        const { x, y, width, height } = await (await tab.$('svg.world')).boundingBox();
        await tab.mouse.move(x + width * 0.49, y + height * 0.2);
        await tab.mouse.down();
        await tab.mouse.move(x + width * 0.53, y + height * 0.28, { steps: 3 });
        await tab.mouse.up();
        await tab.waitForSelector('svg.world rect.cell');
        const edges = await tab.$$eval('.edges input', (all) => all.map((one) => Number(one.value)));
        assert.ok(Math.abs(edges[0] - 39.6) < 1 && Math.abs(edges[3] - 10.8) < 1, edges.join());
        // Typed coordinates, compared with the records.
        const typed = { south: 46.9, west: 7.3, north: 47, east: 7.6 };
        for (const [name, value] of Object.entries(typed)) {
            await tab.$eval(`.edges [name=${name}]`, (input, value) => { input.value = value; }, value);
        }
        await tab.click('.edges button');
        await tab.waitForFunction(() => document.querySelector('svg.world rect.box')?.getAttribute('x') === '7.3');
        const rows = await tab.$$eval('main tbody tr', (rows) => rows.map((row) =>
            [...row.children].map((cell) => cell.textContent)));
        const { south, west, north, east } = typed;
        for (const [, position, record] of rows) {
            const [latitude, longitude] = position.split(', ').map(Number);
            assert.ok(latitude >= south && latitude <= north && longitude >= west && longitude <= east, position);
            assert.ok(record.includes('"country":"CH"'), record);
        }
        assert.ok(rows.some(([, , record]) => record.includes('Bern')), 'Bern is missing');
    },
    async 'a vertex of a graph'(tab) {
        await open(tab, 'tour/flights edges.incoming');
        await tab.$eval('form input', (input) => { input.value = 'ABE'; });
        await tab.click('form button');
        await tab.waitForFunction(() => document.querySelector('svg.graph .centre text')?.textContent === '"ABE"');
        const others = async (section) => (await texts(tab, `main section:nth-of-type(${section}) tbody td:nth-child(2)`)).sort();
        const end = (at) => (row) => JSON.parse(`[${row.key.slice(1, -1)}]`)[at];
        const all = keyloom('scan', STORE, 'flights edges', '--limit', '10000');
        const [sources, targets] = [all.filter((row) => end(3)(row) === 'ABE').map(end(1)), all.filter((row) => end(1)(row) === 'ABE').map(end(3))];
        assert.deepEqual(await others(1), targets.map((one) => `"${one}"`).sort());
        assert.deepEqual(await others(2), sources.map((one) => `"${one}"`).sort());
        // A click on a neighbour recentres the drawing.
        const linked = await tab.$('svg.graph .out a:last-of-type circle');
        await linked.click();
        await tab.waitForFunction((name) => document.querySelector('svg.graph .centre text')?.textContent === name, {}, `"${targets.at(-1)}"`);
    },
    async 'a text index'(tab) {
        await open(tab, 'tour/paragraphs.by_text');
        await tab.$eval('form input', (input) => { input.value = 'rabbit'; });
        await tab.click('form button');
        await tab.waitForSelector('main .documents');
        const counts = Object.fromEntries(await tab.$$eval('main > .scroll tbody tr', (rows) =>
            rows.map((row) => [...row.children].map((cell) => cell.textContent))));
        const texts = keyloom('scan', STORE, 'paragraphs', '--limit', '2000', '--full').map((row) => JSON.parse(row.value).text);
        assert.equal(Number(counts.rabbit), texts.filter((text) => /\brabbits?\b/i.test(text)).length);
        const shown = await tab.$$eval('main .documents tbody tr', (rows) => rows.map((row) => row.children[2].textContent));
        assert.ok(shown.length === 20 && shown.some((text) => /rabbit/i.test(text)), shown.join());
    },
    async 'a tree'(tab) {
        await open(tab, 'tour/directories.tree');
        const [{ prefix_hex: space }] = keyloom('ls', STORE).filter((row) => row.name === 'directories.tree');
        const names = () => texts(tab, 'main > ul.tree > li > details > summary code');
        while (await tab.$('main > ul.tree > li > button')) {
            const before = (await names()).length;
            await tab.click('main > ul.tree > li > button');
            await tab.waitForFunction((before) => document.querySelectorAll('main > ul.tree > li').length > before + 1
                || !document.querySelector('main > ul.tree > li > button'), {}, before);
        }
        // The keys of the tree are paths of names.
        const paths = keyloom('scan', STORE, 'directories.tree', '--limit', '20000').map((row) => row.key)
            .filter((key) => key.includes('"path"')).map((key) => JSON.parse(`[${key.slice(1, -1)}]`).slice(2));
        assert.ok(space && paths.length > 1000);
        assert.deepEqual((await names()).sort(), paths.filter((path) => path.length === 1).map(([name]) => name).sort());
        // Enter expands a node.
        const [inner] = paths.filter((path) => path.length === 3);
        const root = await tab.evaluateHandle((name) => [...document.querySelectorAll('.tree summary')]
            .find((one) => one.querySelector('code').textContent === name), inner[0]);
        await root.focus();
        await tab.keyboard.press('Enter');
        await tab.waitForSelector('.tree details[open] ul.tree > li details');
        const below = await texts(tab, '.tree details[open] ul.tree > li > details > summary code');
        const expected = new Set(paths.filter((path) => path[0] === inner[0] && path.length === 2).map(([, name]) => name));
        assert.ok(below.length > 0 && below.every((name) => expected.has(name)), below.join());
        await follow(tab, 'Begin here', '.tree details[open]');
        await tab.waitForFunction((name) => document.querySelector('.crumbs [aria-current]')?.textContent === name, {}, inner[0]);
    },
    async 'an index query, explained'(tab) {
        await open(tab, 'tour/nations.by_continent');
        await follow(tab, 'Explain a query');
        await heading(tab, 'What a query of tour/nations.by_continent reads');
        // The parts in the language of the command, which lists the same entries.
        const parts = JSON.stringify(keyloom('scan', STORE, 'nations.by_continent', '--limit', '1')[0].key).match(/, (\d+),/)[1];
        await submit(tab, `(${parts},)`);
        const listed = keyloom('query', STORE, 'nations.by_continent', `(${parts},)`, '--limit', '1000').length;
        const counts = await explained(tab);
        const orphaned = orphans('nations.by_continent').filter(({ key }) => key.includes(`, ${parts},`)).length;
        const entries = Math.min(21, listed + orphaned);
        assert.deepEqual(counts.ranges, [entries], `${listed} records`);
        assert.equal(counts.cells, entries + Math.min(20, entries));
        assert.equal(counts.rows, counts.cells);
    },
    async 'a box, explained'(tab) {
        await open(tab, 'tour/cities.by_position');
        for (const [name, value] of Object.entries({ south: 46.9, west: 7.3, north: 47, east: 7.6 })) {
            await tab.$eval(`.edges [name=${name}]`, (input, value) => { input.value = value; }, value);
        }
        await tab.click('.edges button');
        await tab.waitForSelector('svg.world rect.box');
        const inBox = (await tab.$$('main tbody tr')).length;
        await follow(tab, 'Explain the query');
        await heading(tab, 'What a query of tour/cities.by_position reads');
        const counts = await explained(tab);
        assert.equal(counts.returned, 2 * inBox, 'the entries of the box and their records');
        assert.equal(counts.cells, counts.ranges.reduce((a, b) => a + b) + inBox);
    },
    async 'a term, explained'(tab) {
        await open(tab, 'tour/paragraphs.by_text');
        await tab.$eval('form input', (input) => { input.value = 'rabbit'; });
        await tab.click('form button');
        await tab.waitForSelector('main .documents');
        await follow(tab, 'Explain the search');
        await heading(tab, 'What a query of tour/paragraphs.by_text reads');
        const { cells, rows } = await explained(tab);
        assert.ok(cells === rows && cells > 20 && cells < 40, `${cells} keys, ${rows} rows`);
    },
    async 'bitmaps of a text index'(tab) {
        await open(tab, 'tour/paragraphs.by_text');
        await follow(tab, 'Bitmaps of its records');
        await tab.waitForSelector('svg.strip');
        const records = keyloom('scan', STORE, 'paragraphs', '--limit', '2000', '--full').map((row) => JSON.parse(row.value));
        assert.deepEqual(await texts(tab, 'main .containers tbody td:nth-child(4)'), [String(records.length)]);
        await follow(tab, 'chapter');
        await tab.waitForSelector('main .values tbody a');
        const rows = () => tab.$$eval('main .values tbody tr', (rows) => rows.map((row) => [...row.children].map((cell) => cell.textContent)));
        const counts = await rows();
        while (await tab.evaluate(() => [...document.querySelectorAll('.values a')].some((one) => one.textContent === 'Next values'))) {
            const first = (await rows())[0][0];
            await follow(tab, 'Next values', 'main .values');
            await tab.waitForFunction((first) => ![undefined, first].includes(document.querySelector('.values tbody td')?.textContent), {}, first);
            counts.push(...await rows());
        }
        const chapters = new Map();
        for (const { chapter } of records) chapters.set(JSON.stringify(chapter), (chapters.get(JSON.stringify(chapter)) || 0) + 1);
        assert.deepEqual(new Map(counts.map(([value, ids]) => [value, Number(ids)])), chapters);
        await tab.click('main .values tbody a');
        await tab.waitForFunction(() => document.querySelectorAll('svg.strip rect').length > 30);
    },
    async 'locks and queues'(tab) {
        await follow(tab, 'Locks and queues', 'header');
        await heading(tab, 'Locks and queues');
        assert.ok((await texts(tab, 'main h2')).some((text) => text === 'Locks tour/locks'));
    },
    async 'hostile content'(tab, url) {
        await tab.goto(`${url}#/browse?select=${encodeURIComponent('("hostile", _)')}`, { waitUntil: 'networkidle0' });
        await tab.reload({ waitUntil: 'networkidle0' });
        const shown = await tab.$eval('main', (main) => main.textContent);
        assert.ok(shown.includes('<img src=x onerror='), shown.slice(0, 200));
        await tab.click('main tbody tr td:first-child a');
        await tab.waitForSelector('main dl');
        assert.ok((await tab.$eval('main', (main) => main.textContent)).includes('<script>'));
    },
};

/** Types into the form of a view. */
async function submit(tab, text) {
    await tab.$eval('form input', (input, text) => { input.value = text; }, text);
    await tab.click('form button');
    await tab.waitForFunction((text) => new URLSearchParams(location.hash.split('?')[1]).get('parts') === text
        && document.querySelector('svg.explain'), {}, text);
}

/** The counts of an explained query: keys of each range, cells of the drawing, rows of the table. */
async function explained(tab) {
    await tab.waitForSelector('svg.explain');
    const steps = await tab.$$eval('main > .scroll:nth-of-type(1) tbody tr', (rows) =>
        rows.map((row) => [...row.children].map((cell) => cell.textContent)));
    return {
        ranges: steps.filter((row) => row[1].includes('range')).map((row) => Number(row[4])),
        cells: (await tab.$$('svg.explain a')).length,
        returned: (await tab.$$('svg.explain rect.returned')).length,
        rows: await tab.$$eval('main > .scroll:last-of-type tbody tr', (rows) => rows.length),
    };
}

/** The entries of an index whose record is gone, as the command finds them. */
function orphans(index) {
    try {
        keyloom('check', STORE, index);
        return [];
    } catch (failed) {
        return failed.stdout.split('\n').filter(Boolean).map((line) => JSON.parse(line));
    }
}

/** Tab and Enter alone lead from the first focus to the keys of a table. */
async function keyboard(tab, url) {
    await tab.goto(url, { waitUntil: 'networkidle0' });
    const focused = () => tab.evaluate(() => document.activeElement.textContent);
    for (let step = 0; step < 200 && (await focused()) !== 'tour/nations'; step += 1) {
        await tab.keyboard.press('Tab');
    }
    assert.equal(await focused(), 'tour/nations', 'the focus does not reach the table');
    const outline = await tab.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
    assert.notEqual(outline, 'none', 'the focus is not visible');
    await tab.keyboard.press('Enter');
    await heading(tab, 'tour/nations');
}

/**
 * Saves the drawing of a view with the keyboard, and opens the file alone. It must look like the
 * drawing without the page, and execute nothing.
 */
async function saved(tab, viewer, name) {
    const button = await tab.$('button.save');
    if (!button) return null;
    await button.focus();
    await tab.keyboard.press('Enter');
    const file = await downloaded();
    const text = readFileSync(file, 'utf8');
    rmSync(file);
    const shapes = await tab.$$eval('main svg :is(rect, circle, line, path, text)', (all) => all.length);
    const alone = await looks(viewer, file, text);
    assert.deepEqual(alone.foreign, [], 'the file has more than shapes and texts');
    assert.ok(!alone.harmed && alone.colors > 2 && alone.width > 250, JSON.stringify(alone));
    if (shapes > 0) assert.equal(alone.shapes, shapes + 1, 'the shapes and the ground');
    if (name === 'overview') assert.ok(alone.texts.includes(SCRIPT), 'the hostile name is missing');
    if (process.env.SCREENSHOTS) await viewer.screenshot({ path: join(process.env.SCREENSHOTS, `saved-${name.replaceAll(' ', '-')}.png`) });
    return alone;
}

/** The file that the browser has saved. */
async function downloaded() {
    for (let wait = 0; wait < 200; wait += 1) {
        const [file] = readdirSync(SAVED).filter((name) => name.endsWith('.svg'));
        if (file) return join(SAVED, file);
        await new Promise((done) => setTimeout(done, 50));
    }
    throw new Error('no file was saved');
}

/** Opens a file of this text in a tab of its own. */
async function looks(viewer, file, text) {
    writeFileSync(file, text);
    await viewer.goto(pathToFileURL(file).href);
    await new Promise((done) => setTimeout(done, 100));
    const alone = await viewer.evaluate(() => {
        const all = [...document.querySelectorAll('rect, circle, line, path, text')];
        const names = [...document.querySelectorAll('*')].flatMap((one) => [one.localName, ...[...one.attributes].map((own) => `@${own.name}`)]);
        return {
            foreign: [...new Set(names)].filter((name) => /^(a|script|style|image|foreignObject|use|iframe)$|^@(on.*|class|style|.*href|src)$/i.test(name)),
            harmed: window.harmed === true, shapes: all.length, width: document.documentElement.getBoundingClientRect().width,
            colors: new Set(all.flatMap((one) => { const { fill, stroke } = getComputedStyle(one); return [fill, stroke]; })).size,
            texts: document.documentElement.textContent,
        };
    });
    rmSync(file);
    return alone;
}

const SAVED = mkdtempSync(join(tmpdir(), 'keyloom-saved-'));
process.on('exit', () => rmSync(SAVED, { recursive: true }));
keyloom('put', STORE, `(${JSON.stringify(SCRIPT)}, 1)`, HOSTILE, '--as', 'utf8', '--write');
keyloom('put', STORE, `("hostile", ${JSON.stringify(HOSTILE)})`, HOSTILE, '--as', 'utf8', '--write');
const [gone] = keyloom('scan', STORE, 'nations', '--limit', '1');
keyloom('rm', STORE, gone.key, '--write', '--bypass-schema');

// A second tab of one browser would take the focus.
const [browser, other] = [await launch(), await launch()];
const { explorer, url } = await start().catch(async (error) => {
    await Promise.all([browser.close(), other.close()]);
    throw error;
});
process.on('exit', () => explorer.kill());
const faults = [];
try {
    const tab = await browser.newPage();
    tab.on('dialog', (dialog) => { faults.push({ kind: 'dialog', what: dialog.message(), where: tab.url() }); dialog.dismiss(); });
    tab.on('pageerror', (error) => faults.push({ kind: 'error', what: error.message, where: tab.url() }));
    const viewer = await other.newPage();
    const session = await browser.target().createCDPSession();
    await session.send('Browser.setDownloadBehavior', { behavior: 'allow', downloadPath: SAVED });
    const drawings = new Set();
    let count = 0;
    for (const scheme of ['light', 'dark']) {
        await tab.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: scheme }]);
        for (const width of WIDTHS) {
            await tab.setViewport({ width, height: 900 });
            for (const [name, view] of Object.entries(VIEWS)) {
                const where = `${name}, ${width} px, ${scheme}`;
                await view(tab, url).catch((error) => faults.push({ kind: 'view', what: error.message, where }));
                const found = await tab.evaluate(sideways);
                faults.push(...found.map(([kind, what]) => ({ kind, what, where })));
                const file = await saved(tab, viewer, name).catch((error) => { faults.push({ kind: 'saved', what: error.message, where }); });
                if (file) drawings.add(name);
                if (await tab.evaluate(() => window.harmed)) faults.push({ kind: 'executed', what: 'content', where });
                count += 1;
                if (process.env.SCREENSHOTS) {
                    const file = `${name.replaceAll(' ', '-')}-${width}-${scheme}.png`;
                    await tab.screenshot({ path: join(process.env.SCREENSHOTS, file) });
                }
            }
        }
    }
    await keyboard(tab, url).catch((error) => faults.push({ kind: 'keyboard', what: error.message, where: url }));

    // The controls: a wide page is found, and the content would do harm in a page without the
    // explorer's headers.
    const wide = await tab.evaluate(() => { document.querySelector('main').style.minWidth = '3000px'; })
        .then(() => tab.evaluate(sideways));
    await tab.goto('about:blank');
    await tab.evaluate((content) => { document.body.innerHTML = content; }, HOSTILE);
    await new Promise((done) => setTimeout(done, 300));
    const harmful = await looks(viewer, join(SAVED, 'control.svg'), `<svg xmlns="http://www.w3.org/2000/svg"><text>${SCRIPT}</text></svg>`);
    const controls = [harmful.harmed, wide.length > 0, (await tab.evaluate(() => window.harmed)) === true];

    const expected = ['overview', 'places on a map', 'a vertex of a graph', 'a tree', 'a box, explained', 'bitmaps of a text index'];
    for (const name of expected) if (!drawings.has(name)) faults.push({ kind: 'saved', what: 'has no drawing to save', where: name });
    report(`${Object.keys(VIEWS).length} views, ${count} looks, ${drawings.size} of them saved, faults`, faults);
    console.log(`controls: ${controls.filter(Boolean).length} of ${controls.length} found`);
    process.exitCode = faults.length || controls.includes(false) ? 1 : 0;
} finally {
    await Promise.all([browser.close(), other.close()]);
    explorer.kill();
}
