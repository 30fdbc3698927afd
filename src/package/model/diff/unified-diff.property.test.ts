import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runs } from '../../../../test/support/runs.ts';
import { unifiedDiff } from './unified-diff.ts';

const names = { before: 'a/f', after: 'b/f' };

test('hunks with three lines around each change', async () => {
  const before = Array.from({ length: 30 }, (_unused, index) => `line ${index + 1}\n`);
  const after = [...before];
  after[4] = 'changed\n';
  after.splice(20, 1);
  expect(await unifiedDiff(before.join(''), after.join(''), names)).toBe(
    [
      '--- a/f',
      '+++ b/f',
      '@@ -2,7 +2,7 @@',
      ' line 2',
      ' line 3',
      ' line 4',
      '-line 5',
      '+changed',
      ' line 6',
      ' line 7',
      ' line 8',
      '@@ -18,7 +18,6 @@',
      ' line 18',
      ' line 19',
      ' line 20',
      '-line 21',
      ' line 22',
      ' line 23',
      ' line 24',
      '',
    ].join('\n'),
  );
});

test('equal texts have no difference, a missing last line break is one', async () => {
  expect(await unifiedDiff('a\n', 'a\n', names)).toBe('');
  expect(await unifiedDiff('a', 'a\n', names)).toBe(
    '--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n',
  );
});

test('a new file', async () => {
  expect(await unifiedDiff('', 'a\nb\n', { before: undefined, after: 'b/f' })).toBe(
    '--- /dev/null\n+++ b/f\n@@ -0,0 +1,2 @@\n+a\n+b\n',
  );
});

let folder = '';
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-diff-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test('git applies what was found', async () => {
  const line = fc.constantFrom('a', 'b', 'c', '', '-x', '+y', ' z', '@@');
  const text = fc.tuple(fc.array(line, { maxLength: 40 }), fc.boolean()).map(([lines, closed]) => {
    const joined = lines.join('\n');
    return closed && joined !== '' ? `${joined}\n` : joined;
  });
  await fc.assert(
    fc.asyncProperty(text, text, async (before, after) => {
      fc.pre(before !== after && before !== '' && after !== '');
      writeFileSync(join(folder, 'f'), before);
      writeFileSync(join(folder, 'patch'), await unifiedDiff(before, after, names));
      execFileSync('git', ['apply', '--whitespace=nowarn', 'patch'], { cwd: folder });
      expect(readFileSync(join(folder, 'f'), 'utf8')).toBe(after);
    }),
    { numRuns: runs(60) },
  );
});

test('very different texts are shown as replaced, and their search leaves others their turn', async () => {
  const before = Array.from({ length: 5_000 }, (_unused, index) => `a${index}\n`).join('');
  const after = Array.from({ length: 5_000 }, (_unused, index) => `b${index}\n`).join('');
  let [turns, isOver] = [0, false];
  const others = () => {
    turns += 1;
    if (!isOver) setImmediate(others);
  };
  setImmediate(others);
  const diff = await unifiedDiff(before, after, names);
  isOver = true;
  expect(turns).toBeGreaterThan(2);
  expect(diff.split('\n').filter((line) => line.startsWith('-a'))).toHaveLength(5_000);
  expect(diff.split('\n').filter((line) => line.startsWith('+b'))).toHaveLength(5_000);
});
