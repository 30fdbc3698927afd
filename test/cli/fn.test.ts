import { chmod, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { runCli } from '../../src/cli/testing.ts';
import { DEPLOYMENT, KPTFILE, NESTED, read, scratch } from './fn-packages.ts';

const { newPath, folder } = scratch();

async function program(text: string): Promise<string> {
  const path = newPath();
  await writeFile(path, text);
  await chmod(path, 0o755);
  return path;
}

describe('sluice fn render', () => {
  test('writes only changes by functions, and reports them in the format of kpt', async () => {
    const path = await folder({ Kptfile: KPTFILE, 'web.yaml': DEPLOYMENT, 'db/Kptfile': NESTED, 'notes.md': 'x' });
    const { code, stdout, stderr } = await runCli(['fn', 'render', path]);
    expect([code, stdout], stderr).toEqual([0, '']);
    expect(stderr).toMatch(
      /^Package "shop\/db":\n\[RUNNING\] ".*set-labels:v0\.2"\n\[PASS\] ".*set-labels:v0\.2" in [\d.]+m?s\n/,
    );
    expect(stderr).toMatch(/\n\nPackage "shop":\n\[RUNNING\] "gcr\.io\/kpt-fn\/set-namespace:v0\.4\.1"\n\[PASS\] /);
    expect(stderr).toMatch(/\n\nSuccessfully executed 2 function\(s\) in 2 package\(s\)\.\n$/);
    expect(await read(path, 'web.yaml')).toBe(DEPLOYMENT.replace('before', 'blog'));
    const kptfile = await read(path, 'Kptfile');
    expect(kptfile.startsWith(KPTFILE)).toBe(true);
    expect(kptfile).toMatch(/ {4}- type: Rendered\n {6}status: "True"\n {6}reason: RenderSuccess\n/);
    expect(kptfile).not.toContain('renderStatus:');
    expect((await readdir(path)).sort()).toEqual(['Kptfile', 'db', 'notes.md', 'web.yaml']);
    const again = await runCli(['fn', 'render', path]);
    expect(again.code, again.stderr).toBe(0);
    expect(await read(path, 'Kptfile')).toBe(kptfile);
    expect(await read(path, 'web.yaml')).toBe(DEPLOYMENT.replace('before', 'blog'));
  });

  test('programs run only where permitted, without the environment of the caller', async () => {
    const exec = await program(
      '#!/bin/sh\n[ -z "$SLUICE_USER$HOSTNAME_SECRET" ] || exit 3\nexec sed s/before/after/\n',
    );
    const kptfile = KPTFILE.replace(/ {4}- image[\s\S]*/, `    - exec: ${exec}\n`);
    const path = await folder({ Kptfile: kptfile, 'web.yaml': DEPLOYMENT });
    const refused = await runCli(['fn', 'render', path]);
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain('--allow-exec');
    expect(await read(path, 'web.yaml')).toBe(DEPLOYMENT);
    const allowed = await runCli(['fn', 'render', path, '--allow-exec']);
    expect(allowed.code, allowed.stderr).toBe(0);
    expect(await read(path, 'web.yaml')).toBe(DEPLOYMENT.replace('before', 'after'));
  });

  test('a folder without a Kptfile is no package', async () => {
    const path = await folder({ 'web.yaml': DEPLOYMENT });
    expect(await runCli(['fn', 'render', path])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('no Kptfile'),
    });
    expect((await runCli(['fn', 'render', join(path, 'nowhere')])).code).toBe(2);
  });
});

describe('sluice fn eval', () => {
  test('conflicting options are refused before anything runs', async () => {
    const path = await folder({ Kptfile: KPTFILE, 'web.yaml': DEPLOYMENT });
    for (const words of [
      [path],
      [path, '-i', 'set-labels', '--exec', './x'],
      [path, path, '-i', 'set-labels'],
      [path, '-i', 'set-labels', '--match-labels', 'nothing'],
      [path, '-i', 'set-labels', '--', 'ConfigMap', 'a=b', 'c'],
      [path, '-i', 'set-labels', '--fn-config', join(path, 'web.yaml'), '--', 'a=b'],
      [path, '-i', 'set-labels', '--', '__proto__=x'],
      ['-', '-s', '-i', 'set-labels', '--', 'a=b'],
    ])
      expect(await runCli(['fn', 'eval', ...words]), words.join(' ')).toMatchObject({
        code: 2,
        stdout: '',
        stderr: expect.not.stringContaining('RUNNING'),
      });
    expect(await read(path, 'web.yaml')).toBe(DEPLOYMENT);
  });
});

describe('sluice fn doc', () => {
  test('lists and explains functions, by name and by image', async () => {
    const list = await runCli(['fn', 'doc']);
    expect(list.code).toBe(0);
    expect(list.stdout).toMatch(/^FUNCTION +DOES$/m);
    expect(list.stdout).toMatch(/^set-namespace +\S/m);
    const one = await runCli(['fn', 'doc', 'set-namespace']);
    expect(one.stdout).toMatch(/^set-namespace: /);
    expect(one.stdout).toContain('Examples');
    const image = await runCli(['fn', 'doc', '--image', 'gcr.io/kpt-fn/set-namespace:v0.4@sha256:0']);
    expect(image.stdout).toBe(one.stdout);
  });

  test('for an unknown name the error suggests the nearest one', async () => {
    const { code, stderr } = await runCli(['fn', 'doc', 'set-namespaces']);
    expect(code).toBe(1);
    expect(stderr).toContain('did you mean set-namespace');
  });
});
