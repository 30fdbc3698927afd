import { expect, test } from 'vitest';
import { blobIdOf } from '../../../src/delivery/tree/desired-file.ts';
import { manifestsOf } from '../../../src/delivery/tree/manifests.ts';
import { type BuildResult, BuiltFolders } from './built-folders.ts';

function built(name: string, size = 1000): BuildResult {
  const text = `apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: ${name}\ndata:\n  x: ${'y'.repeat(size)}\n`;
  return { outcome: manifestsOf(new Map([['cm.yaml', Buffer.from(text)]])), content: `digest of ${name}` };
}

test('manifests beyond their budget are kept as ids, and ids beyond theirs are evicted, the least recently used first', () => {
  const folders = new BuiltFolders(5000, 2000);
  const all = Array.from({ length: 40 }, (_, number) => built(`p${number}`));
  for (const [number, one] of all.entries()) folders.put(`t${number}`, one);
  const { bytes, thinBytes } = folders.size;
  expect(bytes).toBeLessThanOrEqual(5000);
  expect(thinBytes).toBeLessThanOrEqual(2000);
  expect(folders.get('t39')).toBe(all[39]);
  expect(folders.get('t0')).toBeUndefined();
  const thin = all.findIndex(
    (one, number) => folders.get(`t${number}`) !== undefined && folders.get(`t${number}`) !== one,
  );
  expect(thin).toBeGreaterThan(0);
  const [full, kept] = [all[thin], folders.get(`t${thin}`)];
  const data = full?.outcome.manifests?.files.get('cm.yaml');
  if (data === undefined) throw new Error('no file');
  expect(kept?.outcome.manifests?.files.get('cm.yaml')).toEqual({ oid: blobIdOf(data) });
  expect(kept).toMatchObject({ content: full?.content, outcome: { manifests: { objects: 1 } } });
});

test('a package that is larger than the budget is kept as its ids only', () => {
  const folders = new BuiltFolders(100, 10_000);
  folders.put('t', built('large', 100_000));
  expect(folders.size).toMatchObject({ bytes: 0 });
  expect(folders.get('t')?.outcome.manifests?.files.get('cm.yaml')).toEqual({ oid: expect.any(String) });
  // Built again, it replaces the entry.
  for (let round = 0; round < 100; round += 1) folders.put('t', built('large'));
  expect(folders.size.thinBytes).toBeLessThan(1000);
});
