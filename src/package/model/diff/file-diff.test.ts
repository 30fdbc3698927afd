import { expect, test } from 'vitest';
import {
  fileChanges,
  MAX_CHANGED_FILES_BYTES,
  MAX_COMPARED_FILE_BYTES,
  MAX_COMPARED_FILE_LINES,
  MAX_FILE_PATCH_BYTES,
  MAX_PATCHES_BYTES,
} from './file-diff.ts';

const NOTHING = new Map<string, Buffer>();

function filesOf(contents: Record<string, string | Buffer>): Map<string, Buffer> {
  return new Map(Object.entries(contents).map(([path, content]) => [path, Buffer.from(content)]));
}

function truncatedPaths(files: readonly { readonly path: string; readonly truncated?: true }[]): string[] {
  return files.filter(({ truncated }) => truncated).map(({ path }) => path);
}

test('changes have patches; a difference that fits is not truncated', async () => {
  const before = filesOf({ a: '1\n', b: 'old\n', same: 'x\n', bin: Buffer.of(0, 1) });
  const after = filesOf({ b: 'new\n', c: '2\n', same: 'x\n', bin: Buffer.alloc(2 * MAX_COMPARED_FILE_BYTES) });
  const patchOf = (path: string, rest: string) => `diff --git a/${path} b/${path}\n${rest}`;
  expect(await fileChanges(before, after)).toEqual({
    files: [
      {
        path: 'a',
        change: 'Removed',
        patch: patchOf('a', 'deleted file mode 100644\n--- a/a\n+++ /dev/null\n@@ -1 +0,0 @@\n-1\n'),
      },
      { path: 'b', change: 'Modified', patch: patchOf('b', '--- a/b\n+++ b/b\n@@ -1 +1 @@\n-old\n+new\n') },
      { path: 'bin', change: 'Modified', binary: true, patch: patchOf('bin', 'Binary files a/bin and b/bin differ\n') },
      {
        path: 'c',
        change: 'Added',
        patch: patchOf('c', 'new file mode 100644\n--- /dev/null\n+++ b/c\n@@ -0,0 +1 @@\n+2\n'),
      },
    ],
  });
});

test('the patch of a large file is left out, also of one that is large as JSON only', async () => {
  const after = filesOf({
    control: Buffer.alloc(MAX_FILE_PATCH_BYTES / 4, 1),
    fits: 'x\n'.repeat(1000),
    large: Buffer.alloc(MAX_COMPARED_FILE_BYTES + 1, 0x61),
    lines: '\n'.repeat(MAX_COMPARED_FILE_LINES + 1),
  });
  const changes = await fileChanges(NOTHING, after);
  expect(changes.truncated).toBe(true);
  expect(truncatedPaths(changes.files)).toEqual(['control', 'large', 'lines']);
  expect(changes.files[2]).toEqual({ path: 'large', change: 'Added', truncated: true, patch: '' });
});

test('all patches together are bounded', async () => {
  const names = [...'abcdefgh'];
  const after = filesOf(
    Object.fromEntries(names.map((name) => [name, Buffer.alloc(MAX_FILE_PATCH_BYTES * 0.8, 0x61)])),
  );
  const changes = await fileChanges(NOTHING, after);
  expect(truncatedPaths(changes.files)).toEqual(names.slice(3));
  expect(changes.truncated).toBe(true);
  expect(JSON.stringify(changes).length).toBeLessThan(MAX_PATCHES_BYTES + MAX_CHANGED_FILES_BYTES);
});

test('the list of files is bounded, and says how many are missing', async () => {
  const names = Array.from({ length: 3000 }, (_, number) => `${'\x01'.repeat(100)}${number}`);
  const {
    files,
    truncated,
    omittedFiles = 0,
  } = await fileChanges(NOTHING, filesOf(Object.fromEntries(names.map((name) => [name, '']))));
  expect([truncated, files.length + omittedFiles]).toEqual([true, names.length]);
  expect(omittedFiles).toBeGreaterThan(0);
  expect(JSON.stringify(files).length).toBeLessThan(MAX_PATCHES_BYTES + MAX_CHANGED_FILES_BYTES);
});

test('a reader who has left ends the search', async () => {
  await expect(fileChanges(NOTHING, filesOf({ a: '1\n' }), AbortSignal.abort())).rejects.toThrow(/abort/);
});
