import { expect, test } from 'vitest';
import type { PipelineStep } from '../../../function/model/pipeline.ts';
import { Terminal } from '../../output/terminal.ts';
import { Progress } from './progress.ts';

function progressText(truncate: boolean, step: Partial<PipelineStep>, selected?: number): string {
  let text = '';
  const err = {
    write(more: string) {
      text += more;
    },
  };
  let time = 0;
  const now = () => {
    time += 12;
    return time;
  };
  const progress = new Progress(new Terminal(err, err, {}), { truncate, now });
  const whole: PipelineStep = { packagePath: '', list: 'mutators', result: {}, ...step };
  progress.package('shop/db');
  progress.running({ step: whole, ...(selected === undefined ? {} : { selected }) });
  progress.done(whole);
  progress.end();
  return text;
}

const finding = (at: number) => ({ severity: 'info', message: `field ${at}` });

test('a function with a selector reports how many resources it gets', () => {
  expect(progressText(true, { result: { image: 'set-image:v1', exitCode: 0 } }, 2)).toContain(
    '[RUNNING] "set-image:v1" on 2 resource(s)\n',
  );
});

test('progress prints the lines of kpt, with the first findings or all', () => {
  const result = { image: 'set-image:v1', exitCode: 0, results: [1, 2, 3, 4, 5, 6].map(finding) };
  expect(progressText(true, { result })).toBe(`Package "shop/db":
[RUNNING] "set-image:v1"
[PASS] "set-image:v1" in 12ms
  Results:
    [info]: field 1
    [info]: field 2
    [info]: field 3
    [info]: field 4
    ...(2 line(s) truncated, use '--truncate-output=false' to disable)

`);
  expect(progressText(false, { result })).toContain('    [info]: field 6\n\n');
});

test('a failure shows resource, field, stderr and the condition that records it', () => {
  const error = {
    severity: 'error',
    message: 'too\nmany',
    resourceRef: { apiVersion: 'apps/v1', kind: 'Deployment', namespace: 'a', name: 'web' },
    field: { path: 'spec.replicas' },
  };
  const result = { exec: './check', exitCode: 3, stderr: 'one\ntwo\n', results: [error], errorResults: [error] };
  const text = progressText(true, { list: 'validators', result, conditionType: 'Checked' });
  expect(text.split('\n').slice(2)).toEqual([
    '[FAIL] "./check" in 12ms',
    '  Results:',
    '    [error] apps/v1/Deployment/a/web spec.replicas: too many',
    '  Stderr:',
    '    "one"',
    '    "two"',
    '  Exit code: 3',
    '  Condition "Checked" records it; the pipeline continues',
    '',
    '',
  ]);
});

test('the output of a function cannot send control sequences to the terminal', () => {
  const result = {
    image: 'a\u001b[31m',
    exitCode: 1,
    stderr: '\u001b[2J',
    results: [{ message: '\u009b31m\u202e', severity: '\u001b[1m', file: {} }],
  };
  expect(progressText(true, { result })).not.toMatch(/[\u001b\u009b\u202e]/);
});
