import { expect, test } from 'vitest';
import { lintInThread } from './lint-in-thread.ts';

const NO_SIGNAL = new AbortController().signal;
const KPTFILE = 'apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: web\n';
const PADDING = `# ${'x'.repeat(300 * 1024)}\n`;
const filesOf = (texts: Record<string, string>) =>
  new Map(Object.entries(texts).map(([path, text]) => [path, Buffer.from(text)]));

test('finds the mistakes in large files, each by itself, and none in valid ones', async () => {
  const files = filesOf({
    'a.yaml': `${PADDING}a: [\n`,
    'b.yaml': `${PADDING}a: 1\n`,
    'sub/Kptfile': KPTFILE + PADDING,
    'c.yaml': `${PADDING}b: [\n`,
  });
  const found = await lintInThread(files, NO_SIGNAL);
  expect(found.map(({ file, line, severity, code }) => `${severity} ${code} ${file}:${line}`)).toEqual([
    'error InvalidYaml a.yaml:2',
    'error TooLarge sub/Kptfile:1',
    'error InvalidYaml c.yaml:2',
  ]);
});

test('a file that takes too long or too much memory is a mistake', async () => {
  const slow = await lintInThread(filesOf({ 'a.yaml': 'a: 1\n' }), NO_SIGNAL, { timeoutMs: 0 });
  expect(slow).toMatchObject([
    { severity: 'error', code: 'Timeout', message: expect.stringContaining('may take 0 ms') },
  ]);
  const files = filesOf({ 'a.yaml': `a: [${'[],'.repeat(800_000)}]`, 'b.yaml': 'a: [' });
  const large = await lintInThread(files, NO_SIGNAL, { memoryMb: 32 });
  expect(large.map(({ file, code }) => `${file} ${code}`)).toEqual(['a.yaml TooLarge', 'b.yaml InvalidYaml']);
});

test('ends with its signal', async () => {
  const end = new AbortController();
  const found = lintInThread(filesOf({ 'a.yaml': PADDING }), end.signal);
  end.abort(new Error('over'));
  await expect(found).rejects.toThrow('over');
});
