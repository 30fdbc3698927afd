import { spawnSync } from 'node:child_process';
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readPackageFolder, writeNewFolder, writePackageFolder } from './package-folder.ts';

let top = '';
let count = 0;
beforeAll(async () => {
  top = await mkdtemp(join(tmpdir(), 'sluice-fn-'));
});
afterAll(() => rm(top, { recursive: true, force: true }));

async function folder(files: Readonly<Record<string, string | Uint8Array>>): Promise<string> {
  const path = join(top, `f${count++}`);
  for (const [name, data] of Object.entries(files)) {
    await mkdir(join(path, name, '..'), { recursive: true });
    await writeFile(join(path, name), data);
  }
  return path;
}

describe('files of a package folder for functions', () => {
  test('YAML files and Kptfiles are read, and nothing that a link leads to', async () => {
    const path = await folder({
      Kptfile: 'a',
      'sub/x.yml': 'b',
      'sub/Kptfile': 'c',
      'README.md': 'no',
      '.git/config.yaml': 'no',
      'bytes.yaml': new Uint8Array([0xff, 0xfe]),
    });
    const outside = await folder({ 'secret.yaml': 'secret' });
    await symlink(join(outside, 'secret.yaml'), join(path, 'link.yaml'));
    await symlink(outside, join(path, 'linked'));
    const read = await readPackageFolder(path);
    expect([...read.files.keys()]).toEqual(['Kptfile', 'sub/Kptfile', 'sub/x.yml']);
    expect(read.notes).toEqual([
      expect.stringContaining('bytes.yaml: not UTF-8'),
      expect.stringContaining('link.yaml: not a regular file'),
    ]);
    await expect(readPackageFolder(join(path, 'Kptfile'))).rejects.toMatchObject({ code: 'InvalidInput' });
    await expect(readPackageFolder(join(path, 'none'))).rejects.toMatchObject({ code: 'InvalidInput' });
  });

  test('edits make, change and remove files; what is there keeps its access bits', async () => {
    const path = await folder({ 'a.yaml': 'a', 'b.yaml': 'b' });
    await chmod(join(path, 'a.yaml'), 0o640);
    const edits = new Map([
      ['a.yaml', 'a2'],
      ['b.yaml', null],
      ['new/c.yaml', 'c'],
      ['gone.yaml', null],
    ]);
    await writePackageFolder(path, edits);
    expect(await readFile(join(path, 'a.yaml'), 'utf8')).toBe('a2');
    expect((await stat(join(path, 'a.yaml'))).mode & 0o777).toBe(0o640);
    expect((await readdir(path)).sort()).toEqual(['a.yaml', 'new']);
    expect(await readdir(join(path, 'new'))).toEqual(['c.yaml']);
  });

  test('leftovers of a killed process are removed by the next write, also by one that changes nothing', async () => {
    const { pid: gone } = spawnSync('true');
    const path = await folder({ 'a.yaml': 'a', [`.sluice-write-${gone}-abcdef/0`]: 'half' });
    await writePackageFolder(path, new Map());
    expect(await readdir(path)).toEqual(['a.yaml']);
  });

  test('nothing is written if one path leaves the folder or leads through a link', async () => {
    const outside = await folder({ 'x.yaml': 'outside' });
    for (const bad of [
      '../evil.yaml',
      '/etc/evil.yaml',
      '.git/evil.yaml',
      'linked/x.yaml',
      'link.yaml',
      'sub',
      'a.yaml/b.yaml',
    ]) {
      const path = await folder({ 'a.yaml': 'a', 'sub/b.yaml': 'b' });
      await symlink(outside, join(path, 'linked'));
      await symlink(join(outside, 'x.yaml'), join(path, 'link.yaml'));
      const edits = new Map([
        ['a.yaml', 'changed'],
        [bad, 'evil'],
      ]);
      await expect(writePackageFolder(path, edits), bad).rejects.toMatchObject({
        code: expect.stringMatching(/^(Refused|InvalidInput)$/),
      });
      expect(await readFile(join(path, 'a.yaml'), 'utf8')).toBe('a');
      expect((await readdir(path)).sort()).toEqual(['a.yaml', 'link.yaml', 'linked', 'sub']);
    }
    expect(await readFile(join(outside, 'x.yaml'), 'utf8')).toBe('outside');
    expect(await readdir(outside)).toEqual(['x.yaml']);
  });

  test('a new folder is never one that is there', async () => {
    const path = await folder({ 'a.yaml': 'a' });
    await expect(writeNewFolder(path, new Map())).rejects.toMatchObject({ code: 'AlreadyExists' });
    await expect(writeNewFolder(join(path, 'b'), new Map([['../x', 'y']]))).rejects.toMatchObject({
      code: 'InvalidInput',
    });
    await writeNewFolder(join(path, 'b', 'c'), new Map([['d/e.yaml', 'e']]));
    expect(await readFile(join(path, 'b', 'c', 'd', 'e.yaml'), 'utf8')).toBe('e');
    expect(await readdir(path)).toEqual(['a.yaml', 'b']);
  });
});
