import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, test } from 'vitest';
import { runCli } from '../../../src/cli/testing.ts';
import { buildGoProgram, type GoProgram } from '../../support/go-program.ts';

const BUILDS_WITHIN = 900_000;
const run = promisify(execFile);

/** This version lacks `status.renderStatus`, which kpt has had since 2026. */
describe('the Kptfile of kpt v1.0.0-beta.48', () => {
  let program: GoProgram;
  beforeAll(async () => {
    program = await buildGoProgram({ module: 'porchctl', name: 'kptfile', target: './kptfile' });
  }, BUILDS_WITHIN);

  async function rendered(...options: string[]): Promise<{ path: string } & AsyncDisposable> {
    const folder = await mkdtemp(join(tmpdir(), 'sluice-kptfile-'));
    const path = join(folder, 'Kptfile');
    const pipeline = 'pipeline:\n  mutators:\n    - image: set-labels:v0.2.0\n      configMap:\n        tier: web\n';
    await writeFile(path, `apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: app\n${pipeline}`);
    await writeFile(join(folder, 'a.yaml'), 'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n');
    expect((await runCli(['fn', 'render', folder, ...options])).code).toBe(0);
    return { path, [Symbol.asyncDispose]: () => rm(folder, { recursive: true }) };
  }

  test('is what `sluice fn render` writes', async ({ skip }) => {
    const read = program.path ?? skip(program.missing);
    await using kptfile = await rendered();
    expect((await run(read, [kptfile.path])).stdout).toBe('Rendered True RenderSuccess\n');
  });

  test('has no status.renderStatus, which is why that is written on demand only', async ({ skip }) => {
    const read = program.path ?? skip(program.missing);
    await using kptfile = await rendered('--render-status');
    await expect(run(read, [kptfile.path])).rejects.toThrow(/field renderStatus not found/);
  });
});
