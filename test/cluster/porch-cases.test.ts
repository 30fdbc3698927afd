import { inject, test } from 'vitest';
import { testPorchCases } from '../go/porch-case-tests.ts';
import { skipFor } from '../support/skip.ts';
import { startInstalled } from './support/installed-server.ts';

const RUNS_WITHIN = 600_000;
const missing = inject('serverMissing');

test('the command-line cases of Porch', { timeout: RUNS_WITHIN, ...skipFor(missing !== '' && missing) }, (context) =>
  testPorchCases(context, startInstalled),
);
