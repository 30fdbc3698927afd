import { inject, test } from 'vitest';
import { testPorchSuite } from '../go/porch-suite-tests.ts';
import { skipFor } from '../support/skip.ts';
import { startInstalled } from './support/installed-server.ts';

const RUNS_WITHIN = 900_000;
const missing = inject('serverMissing');

test('the end-to-end tests of Porch', { timeout: RUNS_WITHIN, ...skipFor(missing !== '' && missing) }, (context) =>
  testPorchSuite(context, startInstalled),
);
