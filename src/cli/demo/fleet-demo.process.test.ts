import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const binary = fileURLToPath(new URL('../../../bin/sluice.js', import.meta.url));

test('a demo of a fleet whose data folder cannot be made ends', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-'));
  try {
    const file = join(folder, 'file');
    await writeFile(file, '');
    const demo = spawn(process.execPath, [binary, 'demo', 'fleet', '--data', file]);
    let errors = '';
    demo.stderr.on('data', (chunk: Buffer) => {
      errors += chunk;
    });
    const [code] = await once(demo, 'close');
    expect(errors).toMatch(/^error: cannot make the data folder \S+: ENOTDIR: /);
    expect(code).toBe(1);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});

test('a demo of a fleet that a user stops says that only a new run finishes it, and reports the interruption', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-'));
  try {
    const args = [binary, 'demo', 'fleet', '--data', join(folder, 'data')];
    const demo = spawn(process.execPath, args, { env: { ...process.env, NO_COLOR: '1' } });
    let output = '';
    demo.stdout.on('data', (chunk: Buffer) => {
      if (!/Fleet in/.test(output) && /Fleet in/.test(output + chunk)) demo.kill('SIGINT');
      output += chunk;
    });
    const [code] = await once(demo, 'close');
    expect(output).toMatch(/only a new run in another --data finishes it: (?:npx )?\S+ demo fleet\n$/);
    expect(code).toBe(130);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}, 120_000);
