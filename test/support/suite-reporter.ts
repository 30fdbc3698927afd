import { appendFileSync } from 'node:fs';
import { stripVTControlCharacters } from 'node:util';
import type { Reporter, TestCase, TestModule, TestSuite, Vitest } from 'vitest/node';
import './skip.ts';

/** Of the reason of a failure, in characters. */
const MAX_REASON = 1000;

/**
 * Ends a run with each skipped test and its reason, then with the counts and the duration. A run that executed no test fails: a suite
 * whose tests are all skipped proves nothing. With `SLUICE_SUITE_NOTES` the skipped and the failed tests are also appended to that file, for
 * `.ci/run`, which repeats them at its end.
 */
export default class SuiteReporter implements Reporter {
  #vitest: Vitest | undefined;
  #started = Date.now();

  onInit(vitest: Vitest): void {
    this.#vitest = vitest;
  }

  onTestRunStart(): void {
    this.#started = Date.now();
  }

  onTestRunEnd(modules: readonly TestModule[]): void {
    const tests = modules.flatMap((module) => [...module.children.allTests()]);
    const count = (state: string) => tests.filter((test) => test.result().state === state).length;
    const [passed, failed] = [count('passed'), count('failed')];
    const skipped = tests.filter((test) => test.result().state === 'skipped');
    // With a filter by name most tests are skipped, as intended.
    const filtered = this.#vitest?.config.testNamePattern !== undefined;
    const lines = filtered ? [] : describeSkips(skipped);
    process.stdout.write(lines.join(''));
    const file = process.env.SLUICE_SUITE_NOTES;
    if (file !== undefined) appendFileSync(file, [...describeFailures(modules, tests), ...lines].join(''));
    const seconds = Math.round((Date.now() - this.#started) / 1000);
    console.log(`${passed} passed, ${failed} failed, ${skipped.length} skipped in ${seconds} s`);
    if (passed + failed > 0) return;
    console.log('no test was executed: this run fails');
    process.exitCode = 1;
  }
}

/** A line with the reason for each failed test, for each file that failed as a whole, and for each suite whose hooks failed. */
function describeFailures(modules: readonly TestModule[], tests: readonly TestCase[]): string[] {
  const files = modules
    .filter((module) => module.errors().length > 0)
    .map((module) => `${module.relativeModuleId} - ${shortened(module.errors()[0]?.message)}`);
  const suites = modules
    .flatMap((module) => [...module.children.allSuites()])
    .filter((suite) => suite.errors().length > 0)
    .map((suite) => `${suite.module.relativeModuleId} > ${suite.fullName} - ${hookFailure(suite)}`);
  const failed = tests.filter((test) => test.result().state === 'failed');
  const names = failed.map((test) => `${test.module.relativeModuleId} > ${test.fullName} - ${failureOf(test)}`);
  return [...files, ...suites, ...names].map((name) => `failed: ${name}\n`);
}

/** What a hook of the suite, or of the file, threw. */
function hookFailure(suite: TestSuite | TestModule): string {
  return `a hook failed: ${shortened(suite.errors()[0]?.message)}`;
}

function failureOf(test: TestCase): string {
  const { message, diff = '' } = test.result().errors?.[0] ?? {};
  return shortened(`${message}\n${stripVTControlCharacters(diff)}`);
}

/** On one line, with its beginning and its end: where the whole output of a run is not kept, this must do. */
function shortened(message = 'no reason is given'): string {
  const line = message.trim().replaceAll(/\s*\n\s*/g, ' ⏎ ');
  return line.length <= MAX_REASON ? line : `${line.slice(0, MAX_REASON / 2)} … ${line.slice(-MAX_REASON / 2)}`;
}

/** A line for each test; one for all of a file that have the same reason. */
function describeSkips(skipped: readonly TestCase[]): string[] {
  const groups = Map.groupBy(skipped, (test) => `${test.module.relativeModuleId} ${reasonOf(test)}`);
  return [...groups.values()].map(([first, ...rest]) => {
    if (first === undefined) return '';
    const name = rest.length === 0 ? first.fullName : `${rest.length + 1} tests`;
    return `skipped: ${first.module.relativeModuleId} > ${name} - ${reasonOf(first)}\n`;
  });
}

function reasonOf(test: TestCase): string {
  const result = test.result();
  const note = result.state === 'skipped' ? result.note : undefined;
  return note ?? test.meta().skipReason ?? failedHookOf(test) ?? 'no reason is given';
}

/** Tests of a suite whose `beforeAll` failed are skipped. */
function failedHookOf({ parent }: TestCase): string | undefined {
  let suite: TestSuite | TestModule = parent;
  while (suite.errors().length === 0) {
    if (suite.type === 'module') return undefined;
    suite = suite.parent;
  }
  return hookFailure(suite);
}
