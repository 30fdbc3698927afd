import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { CHECKOUT } from '../support/page-shell.ts';
import { sectionsOf } from '../support/page-steps.ts';
import { comparable, runPage } from '../support/run-page.ts';

const page = readFileSync(join(CHECKOUT, 'docs', 'approval-policies.md'), 'utf8');

test('the commands of docs/approval-policies.md print what the page shows', async () => {
  const steps = sectionsOf(page).flatMap((section) => section.steps);
  expect(steps.length).toBeGreaterThan(10);
  const printed = await runPage(steps);
  const outcomes = steps.map(({ command }, at) => [command, comparable(printed[at] ?? '')]);
  expect(outcomes).toEqual(steps.map(({ command, shown }) => [command, comparable(shown)]));
});

test('the page shows the example as it is', () => {
  expect(page).toContain(readFileSync(join(CHECKOUT, 'examples', 'approval-policies', 'canary.yaml'), 'utf8'));
});
