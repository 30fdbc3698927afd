import { expect, test } from 'vitest';
import { parseKrmFile, readKrmFile } from './krm.ts';
import { KrmReader } from './krm-reader.ts';

const config = (name: string, more = '') => `apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: ${name}\n${more}`;

test('what a thread has read is what would be read in place, under any path', async () => {
  const texts = {
    'a.yaml': `${config('a', 'data: {port: 0644, day: 2026-01-01}\n')}---\n${config('b')}`,
    'b/c.yml': 'x: [',
    'd.yaml': `base: &base [1, 2]\n${config('d', 'spec: {one: *base, two: *base}')}`,
    'e.yaml': '',
    'notes.txt': config('notes'),
  };
  const files = new Map(Object.entries(texts).map(([path, text]) => [path, Buffer.from(text)]));
  const expected = [...files].map(([path, data]) => parseKrmFile(path, Buffer.from(data)));
  await new KrmReader({ inlineBytes: 0 }).prepare(files);
  expect([...files].map(([path, data]) => readKrmFile(path, data))).toEqual(expected);
  const data = files.get('a.yaml') ?? Buffer.of();
  expect(readKrmFile('a.yaml', data)).toBe(readKrmFile('a.yaml', data));
  expect(readKrmFile('copy.yaml', data)).toEqual(parseKrmFile('copy.yaml', Buffer.from(data)));
});

test('a file that takes too long to read has a problem, and the next one is read', async () => {
  const reader = new KrmReader({ inlineBytes: 0, timeoutMs: 1 });
  const slow = new Map([['slow.yaml', Buffer.from(config('slow', `data:\n${'  - - - -\n'.repeat(100_000)}`))]]);
  await reader.prepare(slow);
  expect(readKrmFile('slow.yaml', slow.get('slow.yaml') ?? Buffer.of())).toEqual({
    objects: [],
    problem: 'slow.yaml cannot be read: it takes more than 1 ms',
  });
  const next = new Map([['next.yaml', Buffer.from(config('next'))]]);
  await new KrmReader({ inlineBytes: 0 }).prepare(next);
  expect(readKrmFile('next.yaml', next.get('next.yaml') ?? Buffer.of()).objects).toMatchObject([{ name: 'next' }]);
});
