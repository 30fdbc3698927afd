import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { temporaryFolder } from './git/git-cli.ts';

const run = promisify(execFile);
const VITEST = fileURLToPath(new URL('../../node_modules/vitest/vitest.mjs', import.meta.url));
const REPORTER = fileURLToPath(new URL('suite-reporter.ts', import.meta.url));
const SUITE = `
describe('without a program', { skip: true, meta: { skipReason: 'go is not installed' } }, () => {
  test('a', () => undefined);
});
describe('a server', () => {
  beforeAll(() => { throw new Error('it did not start\\nin time'); });
  describe('once it runs', () => {
    test('b', () => undefined);
    test('c', () => undefined);
  });
});
test('d', ({ skip }) => skip('root may do all'));
test('e', () => expect('an output').toBe('another'));
test('f', () => undefined);
`;

test('a run ends with the reason of each skipped test, failed hooks too, and notes what failed', async () => {
  const folder = temporaryFolder();
  onTestFinished(() => folder.remove());
  const notes = join(folder.path, 'notes');
  writeFileSync(join(folder.path, 'some.test.js'), SUITE);
  const options = { globals: true, reporters: [REPORTER] };
  writeFileSync(join(folder.path, 'vitest.config.js'), `export default { test: ${JSON.stringify(options)} };`);
  const { VITEST: _, ...env } = process.env;
  const { stdout } = await run(process.execPath, [VITEST, 'run', '--root', folder.path], {
    env: { ...env, SLUICE_SUITE_NOTES: notes },
  }).catch((error: { stdout: string }) => error);
  const skipped = [
    'skipped: some.test.js > without a program > a - go is not installed',
    'skipped: some.test.js > 2 tests - a hook failed: it did not start ⏎ in time',
    'skipped: some.test.js > d - root may do all',
  ];
  expect(stdout).toContain(`${skipped.join('\n')}\n1 passed, 1 failed, 4 skipped in `);
  expect(readFileSync(notes, 'utf8').trim().split('\n')).toEqual([
    'failed: some.test.js > a server - a hook failed: it did not start ⏎ in time',
    expect.stringMatching(/^failed: some.test.js > e - expected .* ⏎ Expected: "another" ⏎ Received: "an output"$/),
    ...skipped,
  ]);
});
