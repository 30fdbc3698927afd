import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runCli } from '../testing.ts';

const KPTFILE = `# comment
apiVersion: kpt.dev/v1
kind: Kptfile
metadata:
    name: web # four spaces
info:
    readinessGates:
    - conditionType: Tested
status:
    conditions:
    - {type: Tested, status: "False", reason: Waiting, message: not yet}
`;

let folder = '';
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-kptfile-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

async function written(text: string): Promise<string> {
  await writeFile(join(folder, 'Kptfile'), text);
  return folder;
}

describe('Kptfile of a folder', () => {
  test('gates: the exit code reports whether all are open', async () => {
    const closed = await runCli(['kptfile', 'gates', await written(KPTFILE)]);
    expect(closed).toMatchObject({ code: 3, stderr: '' });
    expect(closed.stdout).toMatch(/^closed +Tested +False +Waiting +not yet$/m);
    const set = await runCli(['kptfile', 'condition', 'set', 'Tested', 'true', folder, '--message', 'done']);
    expect(set).toMatchObject({ code: 0, stdout: 'Tested is True\n' });
    expect((await runCli(['kptfile', 'gates', join(folder, 'Kptfile'), '-o', 'json'])).code).toBe(0);
    const none = await runCli([
      'kptfile',
      'gates',
      await written('apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata: {name: a}\n'),
    ]);
    expect(none).toMatchObject({ code: 0, stdout: expect.stringContaining('has no readiness gates') });
  });

  test('lint -o json is data for programs, with the same exit code', async () => {
    const place = await written(KPTFILE.replace('readinessGates', 'readinesGates'));
    const { code, stdout } = await runCli(['kptfile', 'lint', place, '-o', 'json']);
    const report = JSON.parse(stdout) as { errors: number; findings: object[] };
    expect(code).toBe(1);
    expect(report.errors).toBeGreaterThan(0);
    expect(report.findings).toContainEqual(
      expect.objectContaining({ file: join(folder, 'Kptfile'), line: 7, severity: 'error', code: expect.any(String) }),
    );
    expect(JSON.parse((await runCli(['kptfile', 'lint', await written(KPTFILE), '-o', 'json'])).stdout)).toEqual({
      ...{ errors: 0, warnings: 0, findings: [] },
    });
  });

  test('condition: no other line changes', async () => {
    await written(KPTFILE);
    await runCli(['kptfile', 'condition', 'set', 'Scanned', 'Unknown', folder]);
    const text = await readFile(join(folder, 'Kptfile'), 'utf8');
    expect(
      text
        .split('\n')
        .filter((line) => !KPTFILE.split('\n').includes(line))
        .join('\n'),
    ).toContain('Scanned');
    expect(KPTFILE.split('\n').every((line) => text.includes(line))).toBe(true);
    expect((await runCli(['kptfile', 'condition', 'rm', 'Scanned', folder])).stdout).toBe('Scanned removed\n');
    expect(await readFile(join(folder, 'Kptfile'), 'utf8')).toBe(KPTFILE);
    expect((await runCli(['kptfile', 'condition', 'rm', 'Scanned', folder])).stdout).toBe('Scanned was not there\n');
  });

  test('lint and reading name file, line and column', async () => {
    const flawed = KPTFILE.replace('info:\n', 'inf:\n');
    const lint = await runCli(['kptfile', 'lint', await written(flawed)]);
    expect(lint.code).toBe(1);
    expect(lint.stdout).toContain(`${join(folder, 'Kptfile')}:6:1: error: `);
    await written(`${KPTFILE}\tx: 1\n`);
    for (const words of [['gates'], ['condition', 'set', 'A', 'True']]) {
      const { code, stderr } = await runCli(['kptfile', ...words, folder]);
      expect(code).toBe(2);
      expect(stderr).toMatch(/Kptfile:12:1: /);
    }
    expect(await runCli(['kptfile', 'gates', join(folder, 'nothing')])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('name the folder of a package'),
    });
  });

  test('gates: a field that kpt rejects is no package without gates', async () => {
    const flawed = KPTFILE.replace('readinessGates:', 'readinesGates:');
    expect(flawed).not.toBe(KPTFILE);
    const { code, stdout, stderr } = await runCli(['kptfile', 'gates', await written(flawed)]);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toMatch(/Kptfile:\d+:\d+: .*readinesGates/);
  });

  test('the content of a Kptfile does not control the terminal', async () => {
    const hostile = KPTFILE.replace('message: not yet', 'message: "\\e[31mred\\nforged line"');
    const { stdout } = await runCli(['kptfile', 'gates', await written(hostile)]);
    expect(stdout).not.toContain('\u001b');
    expect(stdout.split('\n')).toHaveLength(3);
  });
});
