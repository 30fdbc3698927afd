import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { CHECKOUT } from '../support/page-shell.ts';
import { sectionsOf, showsAs } from '../support/page-steps.ts';
import { runPage } from '../support/run-page.ts';

const page = readFileSync(join(CHECKOUT, 'docs', 'dependencies.md'), 'utf8');

test('the commands of docs/dependencies.md print what the page shows', async () => {
  const steps = sectionsOf(page).flatMap((section) => section.steps);
  expect(steps).toHaveLength(28);
  const printed = await runPage(steps);
  for (const [at, { command, shown }] of steps.entries())
    expect(showsAs(printed[at] ?? '', shown), `${command}\n${printed[at]}`).toBe(true);
});

test('the page shows the Dependency as it is', () => {
  expect(page).toContain(readFileSync(join(CHECKOUT, 'examples', 'dependencies', 'dependency.yaml'), 'utf8'));
});
