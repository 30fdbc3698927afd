import { expect, test } from 'vitest';
import { type ComparedFiles, filesInMemory, NO_FILES } from './compared-files.ts';
import {
  fileChanges,
  MAX_CHANGED_FILES_BYTES,
  MAX_COMPARED_FILE_BYTES,
  MAX_COMPARED_FILE_LINES,
  MAX_FILE_PATCH_BYTES,
  MAX_PATCHES_BYTES,
} from './file-diff.ts';

const NOTHING = NO_FILES;

function filesOf(contents: Record<string, string | Buffer>): ComparedFiles {
  return filesInMemory(new Map(Object.entries(contents).map(([path, content]) => [path, Buffer.from(content)])));
}

function truncatedPaths(files: readonly { readonly path: string; readonly truncated?: true }[]): string[] {
  return files.filter(({ truncated }) => truncated).map(({ path }) => path);
}

test('changes have patches; a difference that fits is not truncated', async () => {
  const before = filesOf({ a: '1\n', b: 'old\n', same: 'x\n', bin: Buffer.of(0, 1) });
  const after = filesOf({ b: 'new\n', c: '2\n', same: 'x\n', bin: Buffer.alloc(1000) });
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

test('the list of files is bounded, and the number of omitted files is reported', async () => {
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

test('only files that differ are read, a few at a time, and none that is too large or that the answer has no room for', async () => {
  const batches: string[][] = [];
  const counted = (files: ComparedFiles): ComparedFiles => ({
    files: files.files,
    read: (ids) => {
      batches.push([...ids]);
      return files.read(ids);
    },
  });
  const size = MAX_COMPARED_FILE_BYTES / 2;
  const large = { large: Buffer.alloc(MAX_COMPARED_FILE_BYTES + 1), same: Buffer.alloc(size, 2) };
  const many = Object.fromEntries([...'abcdefghijklmnop'].map((name, at) => [name, Buffer.alloc(size, 0x61 + at)]));
  const changes = await fileChanges(counted(filesOf({ same: large.same })), counted(filesOf({ ...large, ...many })));
  expect(changes.files.map(({ path }) => path)).toEqual([...Object.keys(many).slice(0, 12), 'large', ...'mnop']);
  expect(changes.truncated).toBe(true);
  const read = batches.flat();
  expect(Math.max(...batches.map((ids) => ids.length * size))).toBeLessThanOrEqual(2 * MAX_COMPARED_FILE_BYTES);
  const { files } = filesOf({ ...large, ...many });
  expect(read).not.toContain(files.get('large')?.id);
  expect(read).not.toContain(files.get('same')?.id);
  expect(read).not.toContain(files.get('p')?.id);
});
