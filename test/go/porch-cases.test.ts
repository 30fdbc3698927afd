import { test } from 'vitest';
import { startUp } from './embedded-server.ts';
import { testPorchCases } from './porch-case-tests.ts';

const RUNS_WITHIN = 600_000;

test('the command-line cases of Porch', { timeout: RUNS_WITHIN }, (context) => testPorchCases(context, startUp));
