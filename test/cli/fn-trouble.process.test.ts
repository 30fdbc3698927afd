import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { runCli } from '../../src/cli/testing.ts';
import { DEPLOYMENT, FAILING, KPTFILE, NESTED, read, scratch } from './fn-packages.ts';

const { folder } = scratch();

describe('sluice fn render', () => {
  test('a Kptfile that kpt rejects, also a nested one, leads to exit code 2 before anything runs', async () => {
    const nested = NESTED.replace('pipeline:', 'pipelin:');
    for (const files of [
      { Kptfile: KPTFILE.replace('pipeline:', 'pipelin:'), 'web.yaml': DEPLOYMENT },
      { Kptfile: KPTFILE, 'db/Kptfile': nested, 'web.yaml': DEPLOYMENT },
    ]) {
      const path = await folder(files);
      const { code, stdout, stderr } = await runCli(['fn', 'render', path]);
      expect([code, stdout]).toEqual([2, '']);
      expect(stderr).toMatch(/Kptfile:\d+:1: .*pipelin/);
      expect(await read(path, 'web.yaml')).toBe(DEPLOYMENT);
      expect(await read(path, 'Kptfile')).toBe(files.Kptfile);
    }
  });

  test('a failure changes only the status, names function and package, and leads to exit code 1', async () => {
    const path = await folder({ Kptfile: FAILING, 'web.yaml': DEPLOYMENT });
    const { code, stderr } = await runCli(['fn', 'render', path]);
    expect(code, stderr).toBe(1);
    expect(stderr.trimEnd().split('\n').at(-1)).toMatch(/^error: .*missing\.yaml/);
    expect(await read(path, 'web.yaml')).toBe(DEPLOYMENT);
    const kptfile = await read(path, 'Kptfile');
    expect(kptfile.startsWith(FAILING)).toBe(true);
    expect(kptfile).toMatch(/status: "False"\n +reason: RenderFailed\n/);
    expect(kptfile).not.toContain(path);
    const fixed = KPTFILE + kptfile.slice(FAILING.length);
    await writeFile(join(path, 'Kptfile'), fixed);
    expect((await runCli(['fn', 'render', path])).code).toBe(0);
    expect(await read(path, 'Kptfile')).not.toContain('RenderFailed');
  });

  test('--results-dir stores the results of functions', async () => {
    const path = await folder({ Kptfile: KPTFILE, 'web.yaml': DEPLOYMENT });
    const results = join(path, '..', 'results');
    const { stderr } = await runCli(['fn', 'render', path, '--results-dir', results]);
    expect(stderr).toContain(`For complete results, see ${join(results, 'results.yaml')}`);
    const text = await read(results, 'results.yaml');
    expect(text).toMatch(
      /^apiVersion: kpt\.dev\/v1\nkind: FunctionResultList\nmetadata:\n {2}name: fnresults\nexitCode: 0\n/,
    );
    expect(text).toContain('set-namespace');
  });

  test('a validator with its own condition reports in the Kptfile, and the package renders', async () => {
    const check = `apiVersion: fn.kpt.dev/v1alpha1
kind: StarlarkRun
metadata:
  name: check
  annotations:
    config.kubernetes.io/local-config: "true"
    sluice.dev/validator-condition: Checked
source: |
  fail("one replica is not enough")
`;
    const kptfile = `${KPTFILE}  validators:\n    - image: starlark:v0.5.0\n      configPath: check.yaml\n`;
    const path = await folder({ Kptfile: kptfile, 'web.yaml': DEPLOYMENT, 'check.yaml': check });
    const { code, stderr } = await runCli(['fn', 'render', path, '--truncate-output=false']);
    expect(code, stderr).toBe(0);
    expect(stderr).toContain('Condition "Checked" records it');
    expect(await read(path, 'web.yaml')).toContain('namespace: blog');
    const gates = await runCli(['kptfile', 'gates', path]);
    expect(gates.stdout).toMatch(/Checked +False +ValidationFailed +.*one replica is not enough/);
    expect(gates.stdout).toMatch(/Rendered +True +RenderSuccess/);
  });
});

describe('sluice fn eval', () => {
  test('fn eval of the function removes the Kptfile, which a pipeline keeps', async () => {
    const local = 'metadata:\n  name: shop\n  annotations:\n    config.kubernetes.io/local-config: "true"\n';
    const kptfile = `apiVersion: kpt.dev/v1\nkind: Kptfile\n${local}pipeline:\n  mutators:\n    - image: remove-local-config-resources\n`;
    const path = await folder({ Kptfile: kptfile, 'web.yaml': DEPLOYMENT });
    const { code, stderr } = await runCli(['fn', 'render', path]);
    expect(code, stderr).toBe(0);
    expect(await read(path, 'Kptfile')).toContain(kptfile);
    const { stdout } = await runCli(['fn', 'eval', path, '-i', 'remove-local-config-resources', '-o', 'unwrap']);
    expect(stdout).toBe(DEPLOYMENT);
  });

  test('an image that cannot be run here causes a message of one line', async () => {
    const path = await folder({ Kptfile: KPTFILE, 'web.yaml': DEPLOYMENT });
    const image = 'localhost:1/nothing/here:v1';
    const { code, stderr } = await runCli(['fn', 'eval', path, '-i', image, '--image-pull-policy', 'never']);
    expect(code).toBe(1);
    expect(stderr.trimEnd().split('\n').at(-1)).toMatch(/^error: .*localhost:1\/nothing\/here:v1/);
  });
});
