import { expect, test } from 'vitest';
import { analysisTemplateKind } from '../../resource/kinds/sluice/wave/analysis-template.ts';
import type { AnalysisMetric } from '../../resource/kinds/sluice/wave/metric-schema.ts';
import { judge } from './judge.ts';
import { jsonValue, prometheusValue, sampleCount } from './measured-value.ts';

function metric(part: object, provider?: object): AnalysisMetric {
  const { spec } = analysisTemplateKind.complete({
    metadata: { name: 'a' },
    spec: {
      metrics: [
        {
          name: 'errors',
          provider: provider ?? {
            prometheus: { address: 'https://prometheus.example.com', query: 'x{t=~"{{targets}}"}' },
          },
          ...part,
        } as never,
      ],
    },
  });
  const [one] = spec.metrics;
  if (one === undefined) throw new Error('no metric');
  return one;
}

const vector = (...values: string[]) => ({
  status: 'success',
  data: { resultType: 'vector', result: values.map((value) => ({ metric: {}, value: [1, value] })) },
});
const group = (body: unknown, samples?: number) => ({ found: prometheusValue(body), samples });
const outcome = (part: object, canary: unknown, baseline?: unknown) =>
  judge(metric(part), { canary: group(canary), baseline: baseline === undefined ? undefined : group(baseline) });

test('success and failure conditions decide as in Argo Rollouts', () => {
  const success = { successCondition: 'result[0] < 0.05' };
  const failure = { failureCondition: 'result[0] > 0.1' };
  const phase = (part: object, value: string) => outcome(part, vector(value)).phase;
  expect(phase({}, '0.9')).toBe('Successful');
  expect(phase(success, '0.01')).toBe('Successful');
  expect(phase(success, '0.07')).toBe('Failed');
  expect(phase(failure, '0.07')).toBe('Successful');
  expect(phase(failure, '0.2')).toBe('Failed');
  expect(phase({ ...success, ...failure }, '0.07')).toBe('Inconclusive');
  expect(phase({ ...success, ...failure }, '0.01')).toBe('Successful');
  expect(phase({ successCondition: 'true', failureCondition: 'true' }, '1')).toBe('Failed');
});

test('empty results and NaN are inconclusive, whatever the conditions say', () => {
  for (const part of [{}, { successCondition: 'true' }, { failureCondition: 'size(result) == 0' }]) {
    expect(outcome(part, vector())).toEqual({ phase: 'Inconclusive', message: 'the result is empty' });
    expect(outcome(part, vector('1', 'NaN'))).toEqual({ phase: 'Inconclusive', message: 'the result is NaN' });
  }
  const scalar = { status: 'success', data: { resultType: 'scalar', result: [1, 'NaN'] } };
  expect(outcome({}, scalar).phase).toBe('Inconclusive');
});

test('arithmetic of a condition that gives NaN is inconclusive, unless the condition holds without it', () => {
  const failed = { failureCondition: 'result[0] / result[1] > 0.05' };
  expect(outcome(failed, vector('0', '0'))).toEqual({
    phase: 'Inconclusive',
    value: '[0,0]',
    message: '[0,0]: expression "result[0] / result[1] > 0.05", line 1, column 10: gives NaN',
  });
  expect(outcome(failed, vector('1', '100')).phase).toBe('Successful');
  expect(outcome(failed, vector('1', '0')).phase).toBe('Failed');
  const phase = (part: object, ...values: string[]) => outcome(part, vector(...values)).phase;
  expect(phase({ successCondition: '!(result[0] / result[1] > 0.05)' }, '0', '0')).toBe('Inconclusive');
  expect(phase({ successCondition: 'result[0] - result[1] != 0.0' }, '+Inf', '+Inf')).toBe('Inconclusive');
  expect(phase({ failureCondition: 'result[0] / result[1] > 0.05 || result[0] == 0' }, '0', '0')).toBe('Failed');
  expect(phase({ failureCondition: 'result[1] > 0 && result[0] / result[1] > 0.05' }, '0', '0')).toBe('Successful');
  const both = { successCondition: 'result[0] / result[1] < 0.01', failureCondition: 'result[0] == 0' };
  expect(phase(both, '0', '0')).toBe('Failed');
});

test('a part of a response that is empty, null or NaN is inconclusive, whatever the conditions say', () => {
  const judged = (part: object, source: object, body: unknown) => {
    const http = { url: 'https://a.example.com', ...source };
    const one = metric(part, { http });
    return judge(one, {
      canary: { found: jsonValue(one.provider.http ?? ({} as never), body), samples: undefined },
      baseline: undefined,
    });
  };
  const prometheus = { data: { result: [{ value: [1, 'NaN'] }] } };
  const failed = { failureCondition: 'double(result) > 0.05' };
  const jsonPath = '{$.data.result[0].value[1]}';
  expect(judged(failed, { jsonPath }, prometheus)).toEqual({
    phase: 'Inconclusive',
    message: 'the result is NaN',
  });
  const infinite = { data: { result: [{ value: [1, '+Inf'] }] } };
  expect(judged(failed, { jsonPath }, infinite).phase).toBe('Failed');
  const other = { data: { result: [{ value: [1, 'none'] }] } };
  expect(() => judged(failed, { jsonPath }, other)).toThrow('a text is no number');
  const zeros = { e: 0, n: 0 };
  for (const value of ['body.e / body.n', '{"r": body.e / body.n}', '[[body.e / body.n]]'])
    expect(judged({ failureCondition: 'result.r > 0.05' }, { value }, zeros), value).toEqual({
      phase: 'Inconclusive',
      message: expect.stringContaining('gives NaN'),
    });
  const always = { successCondition: 'true' };
  for (const empty of [{}, [], [null], '', ' ', null, [[]], { a: {} }, { r: [1, { s: 'NaN' }] }, { 'a b': null }])
    expect(judged(always, { jsonPath: '$' }, empty).phase, JSON.stringify(empty)).toBe('Inconclusive');
  expect(judged(always, { jsonPath: '$' }, { r: [1, { 'x y': 'NaN' }] }).message).toBe(
    'result.r[1]["x y"] is NaN; select only what the conditions judge, with jsonPath or value',
  );
  expect(judged(always, { jsonPath: '$' }, { r: [0, false, 'x'] }).phase).toBe('Successful');
});

test('a whole number is a double, so that arithmetic does not depend on the fraction of a value', () => {
  expect(outcome({ successCondition: 'result[0] * 2.0 <= 4.0' }, vector('2')).phase).toBe('Successful');
  expect(outcome({ successCondition: 'result[0] == 2' }, vector('2')).phase).toBe('Successful');
  expect(outcome({ failureCondition: 'result[0] > 1.0' }, vector('+Inf')).phase).toBe('Failed');
});

test('the changed targets are compared with those that are unchanged', () => {
  const part = { compareWithUntouched: true, successCondition: 'canary[0] <= baseline[0] * 1.5 + 0.01' };
  expect(outcome(part, vector('0.02'), vector('0.01'))).toEqual({
    phase: 'Successful',
    value: '{"canary":[0.02],"baseline":[0.01]}',
  });
  expect(outcome(part, vector('0.2'), vector('0.01')).phase).toBe('Failed');
  expect(outcome(part, vector('0.2'), vector())).toMatchObject({
    phase: 'Inconclusive',
    message: 'baseline: the result is empty',
  });
});

test('too few samples are inconclusive', () => {
  const provider = { prometheus: { address: 'https://a.example.com', query: 'x', samplesQuery: 'y' } };
  const few = judge(metric({ minSamples: 100, successCondition: 'result[0] < 1.0' }, provider), {
    canary: group(vector('0'), sampleCount(prometheusValue(vector('40', '23')))),
    baseline: undefined,
  });
  expect(few).toEqual({ phase: 'Inconclusive', value: '[0]', message: '63 samples, at least 100 are required' });
  expect(sampleCount(prometheusValue(vector()))).toBe(0);
});

test('an expression that fails for this value is an error', () => {
  expect(() => outcome({ successCondition: 'result[3] < 1.0' }, vector('1'))).toThrow('out of bounds');
});

test.each([
  ['nonsense', 'no response of the query API'],
  [{ status: 'error', errorType: 'bad_data', error: 'parse error' }, 'no response of the query API'],
  [{ status: 'success', data: { resultType: 'matrix', result: [] } }, 'its result is a matrix'],
  [{ status: 'success', data: { resultType: 'vector', result: [{ value: [1, 'x'] }] } }, 'a sample is no number'],
  [{ status: 'success', data: { resultType: 'vector', result: [{ histogram: [1, {}] }] } }, 'a sample is a histogram'],
  [{ status: 'success', data: { resultType: 'vector', result: 3 } }, 'other entries than samples'],
  [vector(...Array<string>(1001).fill('1')), 'has 1001 samples, at most 1000'],
])('a response that is no instant vector is an error (%#)', (body, message) => {
  expect(() => prometheusValue(body)).toThrow(message);
});

test('JSONPath and CEL select a value of a response', () => {
  const url = 'https://a.example.com';
  const read = (part: object, body: unknown) => jsonValue({ url, method: 'GET', timeout: '1s', ...part }, body);
  const body = { data: [{ errors: 3, name: 'a' }, { errors: 4 }], 'x y': [[5]], none: null };
  const shown = (part: object) => JSON.parse(JSON.stringify(read(part, body))) as unknown;
  expect(shown({ jsonPath: '{$.data[0].errors}' })).toEqual({ value: { value: 3 } });
  expect(shown({ jsonPath: '$.data[*].errors' })).toEqual({ value: [{ value: 3 }, { value: 4 }] });
  expect(shown({ jsonPath: '{["x y"][0][0]}' })).toEqual({ value: { value: 5 } });
  expect(() => read({ jsonPath: '$..errors' }, body)).toThrow('is no JSONPath');
  expect(shown({ jsonPath: `{$['x y'][0][0]}` })).toEqual({ value: { value: 5 } });
  expect(shown({ value: 'body.data[0].errors + body.data[1].errors' })).toEqual({ value: { value: 7 } });
  for (const jsonPath of ['$.none', '$.data[7].errors', '$.constructor', '$.data.length', '$.data[*].missing'])
    expect(read({ jsonPath }, body), jsonPath).toHaveProperty('nothing');
  expect(() => read({ value: 'body.missing' }, body)).toThrow('missing');
  let deep: unknown = 1;
  for (let level = 0; level < 100_000; level += 1) deep = [deep];
  expect(() => read({ jsonPath: '$' }, deep)).toThrow('nested more than 100 levels');
});
