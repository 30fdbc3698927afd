import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { PageShell } from '../support/page-shell.ts';
import { sectionsOf, showsAs } from '../support/page-steps.ts';

const page = readFileSync(fileURLToPath(new URL('../../docs/fleet.md', import.meta.url)), 'utf8');

test('the commands of docs/fleet.md print what the page shows: 25 clusters in three waves, and an upgrade', async () => {
  const steps = sectionsOf(page).flatMap((section) => section.steps);
  expect(steps.length).toBeGreaterThanOrEqual(6);
  const folder = await mkdtemp(join(tmpdir(), 'sluice-fleet-'));
  try {
    const shell = await PageShell.create(folder, '/dev/null');
    for (const { command, shown } of steps) {
      const output = await shell.run(`${command}\necho "exit code $?"`);
      expect(output, command).toMatch(/^exit code 0$/m);
      if (!showsAs(output, shown)) expect(`$ ${command}\n${output}`).toBe(`$ ${command}\n${shown}`);
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});
