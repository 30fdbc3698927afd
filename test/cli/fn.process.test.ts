import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { runCli } from '../../src/cli/testing.ts';
import { sluice } from '../support/cli.ts';
import { DEPLOYMENT, KPTFILE, NESTED, read, scratch } from './fn-packages.ts';

// Each of these starts several workers or programs.
const { newPath, folder } = scratch();

describe('sluice fn render', () => {
  test('status.renderStatus is written where it exists, and with --render-status', async () => {
    const path = await folder({ Kptfile: KPTFILE, 'web.yaml': DEPLOYMENT });
    expect((await runCli(['fn', 'render', path, '--render-status'])).code).toBe(0);
    const kept = await read(path, 'Kptfile');
    expect(kept).toContain('renderStatus:');
    await writeFile(join(path, 'Kptfile'), kept.replace('set-namespace:v0.4.1', 'set-namespace:v0.4.5'));
    expect((await runCli(['fn', 'render', path])).code).toBe(0);
    expect((await read(path, 'Kptfile')).split('set-namespace:v0.4.5')).toHaveLength(3);
  });

  test('-o writes resources to stdout or a new folder, and does not change the package', async () => {
    const path = await folder({ Kptfile: KPTFILE, 'web.yaml': DEPLOYMENT });
    const list = await runCli(['fn', 'render', path, '-o', 'stdout']);
    expect(list.code, list.stderr).toBe(0);
    expect(list.stdout).toMatch(/^apiVersion: config\.kubernetes\.io\/v1\nkind: ResourceList\n/);
    expect(list.stdout).toContain('namespace: blog');
    expect(list.stderr).not.toContain('Successfully');
    const plain = await runCli(['fn', 'render', path, '-o', 'unwrap']);
    expect(plain.stdout).toBe(`${KPTFILE}---\n${DEPLOYMENT.replace('before', 'blog')}`);
    const out = join(path, '..', 'out');
    expect((await runCli(['fn', 'render', path, '-o', out])).code).toBe(0);
    expect(await read(out, 'web.yaml')).toBe(DEPLOYMENT.replace('before', 'blog'));
    expect((await runCli(['fn', 'render', path, '-o', out])).stderr).toContain('exists already');
    expect(await read(path, 'web.yaml')).toBe(DEPLOYMENT);
    expect(await read(path, 'Kptfile')).toBe(KPTFILE);
  });
});

describe('sluice fn eval', () => {
  test('runs one function on the selected resources, and no pipelines', async () => {
    const second = DEPLOYMENT.replace('name: web\n', 'name: api\n');
    const path = await folder({ Kptfile: KPTFILE, 'web.yaml': DEPLOYMENT, 'api.yaml': second });
    const words = ['fn', 'eval', path, '-i', 'set-annotations', '--match-name', 'api', '--', 'team=blog'];
    const { code, stderr } = await runCli(words);
    expect(code, stderr).toBe(0);
    expect(stderr).toMatch(/^\[RUNNING\] "[^"]*set-annotations[^"]*" on 1 resource\(s\)\n\[PASS\] /);
    expect(await read(path, 'web.yaml')).toBe(DEPLOYMENT);
    expect(await read(path, 'api.yaml')).toContain('team: blog');
    expect(await read(path, 'Kptfile')).toBe(KPTFILE);
  });

  test('--save adds the function to the Kptfile, once', async () => {
    const path = await folder({ Kptfile: KPTFILE, 'web.yaml': DEPLOYMENT });
    const save = (value: string) =>
      runCli(['fn', 'eval', path, '-s', '-i', 'set-annotations:v0.1', '--', `team=${value}`]);
    const image = 'ghcr.io/kptdev/krm-functions-catalog/set-annotations:v0.1';
    expect((await save('a')).stderr).toContain(`Added "${image}" as mutator in the Kptfile.`);
    expect((await save('b')).stderr).toContain(`Updated "${image}" as mutator in the Kptfile.`);
    const kptfile = await read(path, 'Kptfile');
    expect(kptfile.match(/image:/g)).toHaveLength(2);
    expect(kptfile).toContain('team: b');
    expect(kptfile).not.toContain('team: a');
    expect(kptfile).toContain('# what is done to it');
    const outside = await runCli([
      'fn',
      'eval',
      path,
      '-s',
      '-i',
      'starlark',
      '--fn-config',
      join(path, '..', 'c.yaml'),
    ]);
    expect(outside.code).toBe(2);
  });
});

describe('sluice fn source and sink', () => {
  test('resources pass through pipes unchanged', async () => {
    const path = await folder({ Kptfile: KPTFILE, 'web.yaml': DEPLOYMENT, 'db/Kptfile': NESTED });
    const sourced = await sluice(['fn', 'source', path]);
    expect(sourced.code, sourced.stderr).toBe(0);
    expect(sourced.stdout).toContain("config.kubernetes.io/path: 'db/Kptfile'");
    const labelled = await sluice(['fn', 'eval', '-', '-i', 'set-labels', '--', 'tier=web'], { input: sourced.stdout });
    expect(labelled.code, labelled.stderr).toBe(0);
    const out = join(path, '..', 'out');
    const sunk = await sluice(['fn', 'sink', out], { input: labelled.stdout });
    expect(sunk.code, sunk.stderr).toBe(0);
    expect((await readdir(out, { recursive: true })).sort()).toEqual(['Kptfile', 'db', 'db/Kptfile', 'web.yaml']);
    expect(await read(out, 'web.yaml')).toContain('tier: web');
    expect(await read(out, 'web.yaml')).not.toContain('config.kubernetes.io');
    expect((await sluice(['fn', 'sink', out], { input: sourced.stdout })).code).toBe(1);
  });

  test('YAML documents are accepted too, and nothing else', async () => {
    const out = newPath();
    const input = `${DEPLOYMENT}---\napiVersion: v1\nkind: ConfigMap\nmetadata: { name: c, annotations: { config.kubernetes.io/path: a/b.yaml } }\n`;
    const sunk = await sluice(['fn', 'sink', out], { input });
    expect(sunk.code, sunk.stderr).toBe(0);
    expect((await readdir(out, { recursive: true })).sort()).toEqual([
      'a',
      'a/b.yaml',
      'before',
      'before/deployment_web.yaml',
    ]);
    for (const bad of ['', 'just text', 'a: b\n', '{{ x }}', 'kind: ResourceList\nitems: 1\n']) {
      const refused = await sluice(['fn', 'sink', newPath()], { input: bad });
      expect([bad, refused.code, refused.stdout]).toEqual([bad, 2, '']);
    }
    const outside =
      'apiVersion: v1\nkind: C\nmetadata: { name: c, annotations: { config.kubernetes.io/path: ../x.yaml } }\n';
    expect((await sluice(['fn', 'sink', newPath()], { input: outside })).code).toBe(2);
  });
});
