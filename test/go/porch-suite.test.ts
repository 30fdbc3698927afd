import { test } from 'vitest';
import { startUp } from './embedded-server.ts';
import { testPorchSuite } from './porch-suite-tests.ts';

const RUNS_WITHIN = 900_000;

test('the end-to-end tests of Porch', { timeout: RUNS_WITHIN }, (context) => testPorchSuite(context, startUp));
