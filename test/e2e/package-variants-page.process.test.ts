import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { CHECKOUT } from '../support/page-shell.ts';
import { sectionsOf } from '../support/page-steps.ts';
import { comparable, runPage } from '../support/run-page.ts';

const page = readFileSync(join(CHECKOUT, 'docs', 'package-variants.md'), 'utf8');

test('the commands of docs/package-variants.md print what the page shows', async () => {
  const steps = sectionsOf(page).flatMap((section) => section.steps);
  expect(steps.length).toBeGreaterThan(20);
  const printed = await runPage(steps);
  const outcomes = steps.map(({ command }, at) => [command, comparable(printed[at] ?? '')]);
  expect(outcomes).toEqual(steps.map(({ command, shown }) => [command, comparable(shown)]));
});

test('the page shows the examples as they are', () => {
  const example = (...path: string[]) => readFileSync(join(CHECKOUT, 'examples', ...path), 'utf8');
  expect(page).toContain(example('package-variants', 'web-edge.yaml'));
  expect(page).toContain(example('package-variant-sets', 'fleet.yaml').split('---\n').at(-1));
});
