import { inject, test } from 'vitest';
import { testPorchSuite } from '../go/porch-suite-tests.ts';
import { skipFor } from '../support/skip.ts';
import { startInstalled } from './support/installed-server.ts';

const RUNS_WITHIN = 900_000;
/** It takes four minutes; the embedded server runs it each time. */
const IS_CHOSEN = process.env.SLUICE_PORCH_SUITE === 'cluster';

const reason = inject('serverMissing') || (!IS_CHOSEN && 'takes minutes: only with SLUICE_PORCH_SUITE=cluster');

test('the end-to-end tests of Porch', { timeout: RUNS_WITHIN, ...skipFor(reason) }, (context) =>
  testPorchSuite(context, startInstalled),
);
