import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readLocalPackage, readPulledFrom, writePackage } from './local-package.ts';

let top = '';
let count = 0;
beforeAll(async () => {
  top = await mkdtemp(join(tmpdir(), 'sluice-pull-'));
});
afterAll(() => rm(top, { recursive: true, force: true }));
const fresh = () => join(top, `f${count++}`);

describe('files of a package in a folder', () => {
  test('a folder that does not exist, is a file or was not pulled is named, with the command', async () => {
    const [empty, missing, file] = [fresh(), fresh(), fresh()];
    await mkdir(empty);
    await writeFile(file, '');
    const next = 'name the folder that "sluice rpkg pull" wrote, as in "sluice rpkg push <revision> <folder>"';
    for (const [folder, code, problem] of [
      [missing, 'NotFound', `there is no folder ${missing}`],
      [file, 'InvalidInput', `${file} is not a folder`],
      [empty, 'InvalidInput', `${empty} was not pulled: it has no .KptRevisionMetadata`],
    ])
      await expect(readPulledFrom(folder ?? '')).rejects.toMatchObject({ code, message: `${problem}; ${next}` });
    for (const folder of [file, join(file, 'below')])
      await expect(writePackage(folder, new Map())).rejects.toMatchObject({
        code: 'AlreadyExists',
        message: `${folder} is no folder; name one that does not exist yet`,
      });
  });

  test('no path leaves the folder or touches what is Git\u2019s; then nothing at all is written', async () => {
    for (const path of [
      '../evil',
      'a/../../evil',
      '/etc/evil',
      '.git/config',
      'a/.GIT/hooks/x',
      'git~1/config',
      '.git\u200c/config',
      'a//b',
      './a',
      'a\\..\\b',
      'a\0b',
      '',
    ]) {
      const folder = fresh();
      const files = new Map([
        ['Kptfile', Buffer.from('x')],
        [path, Buffer.from('evil')],
      ]);
      await expect(writePackage(folder, files)).rejects.toMatchObject({ code: 'Refused' });
      await expect(readdir(folder)).rejects.toThrow('ENOENT');
    }
  });

  test('a link in the way is not followed', async () => {
    const folder = fresh();
    await mkdir(folder);
    await symlink('/etc', join(folder, 'sub'));
    const files = new Map([['sub/evil', Buffer.from('x')]]);
    await expect(writePackage(folder, files)).rejects.toMatchObject({ code: 'AlreadyExists' });
  });

  test('what was written is read again, with names of any kind', async () => {
    const folder = fresh();
    const files = new Map([
      ['Kptfile', Buffer.from('a')],
      ['sub folder/n\u00e4me\n.yaml', Buffer.from([0, 255])],
      ['.gitignore', Buffer.from('b')],
    ]);
    await writePackage(folder, files);
    await mkdir(join(folder, '.git'));
    await writeFile(join(folder, '.git', 'config'), 'x');
    await writeFile(join(folder, '.KptRevisionMetadata'), 'x');
    expect(new Map([...(await readLocalPackage(folder))].sort())).toEqual(new Map([...files].sort()));
    expect(await readFile(join(folder, 'Kptfile'), 'utf8')).toBe('a');
  });

  test('links and other things in a folder are refused, not followed', async () => {
    const folder = fresh();
    await mkdir(folder);
    await symlink('/etc/passwd', join(folder, 'passwd'));
    await expect(readLocalPackage(folder)).rejects.toMatchObject({ code: 'InvalidInput' });
    await expect(readLocalPackage(fresh())).rejects.toMatchObject({ code: 'NotFound' });
  });
});
