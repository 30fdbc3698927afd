import { expect, test } from 'vitest';
import { isSluiceError } from '../../../../foundation/sluice-error.ts';
import type { InvalidObjectDetails } from '../../../object/invalid-object.ts';
import { analysisRunKind } from './analysis-run.ts';
import { analysisTemplateKind } from './analysis-template.ts';

const address = 'https://prometheus.example.com';
const url = 'https://metrics.example.com/errors';

/** The causes by which an object is refused; none if it is accepted. */
function causesOf(parse: () => unknown): string[] {
  try {
    parse();
    return [];
  } catch (error) {
    if (!isSluiceError(error, 'InvalidInput')) throw error;
    return (error.details as InvalidObjectDetails).causes.map(({ field, message }) => `${field}: ${message}`);
  }
}

/** The causes by which a template with one metric is refused. */
function causes(metric: object, args?: object[]): string[] {
  const metrics = [{ name: 'errors', provider: { prometheus: { address, query: 'up' } }, ...metric }];
  return causesOf(() => analysisTemplateKind.parse({ metadata: { name: 'a' }, spec: { args, metrics } }));
}

const success = (successCondition: string, part: object = {}) => causes({ successCondition, ...part });

test('conditions are compiled and checked with their types, and errors have a position', () => {
  const field = 'spec.metrics[0].successCondition: Invalid value: ';
  expect(success('result[0] <')[0]).toMatch(/successCondition: Invalid value: .*line 1, column \d+/);
  expect(success('size(result) > 0 &&\n  value > 1')[0]).toContain('line 2, column 3: value is not known');
  expect(success('baseline[0] > 1.0')[0]).toContain('baseline is not known; known are result, canary');
  expect(success('result[0] + 1.0')[0]).toContain(`${field}"result[0] + 1.0"`);
  expect(success('result[0] + 1.0')[0]).toContain('expected true or false');
  expect(success('result[0] * 2 > 1.0')[0]).toMatch(/column 10: .*\(double, int\).*write 2\.0 instead of 2/);
  expect(success("result[0] > 'a'")[0]).toContain('no matching overload');
  expect(success('isNaN(result[0])')[0]).toContain('unbound function: isNaN');
  for (const good of ['result[0] > 1', 'result < 2.0', 'size(result) > 3 && result[150] > 0.5', 'true'])
    expect(success(good), good).toEqual([]);
  const http = { provider: { http: { url, value: 'body.data +' } } };
  expect(causes(http)[0]).toMatch(/provider\.http\.value: .*line 1, column/);
  expect(success('result.errors[0].rate < 0.5', { provider: { http: { url, jsonPath: '$' } } })).toEqual([]);
});

test('limits and counts follow Argo Rollouts', () => {
  const { spec } = analysisTemplateKind.complete({
    metadata: { name: 'a' },
    spec: { metrics: [{ name: 'errors', provider: { prometheus: { address, query: 'up' } } }] },
  });
  expect(spec.metrics[0]).toMatchObject({ failureLimit: 0, inconclusiveLimit: 0, consecutiveErrorLimit: 4 });
  expect(causes({ count: 2 })[0]).toContain('interval must be specified when count > 1');
  expect(causes({ count: 2, interval: '1m', failureLimit: 3 })[0]).toContain('count must be >= failureLimit');
  expect(causes({ interval: '10ms' })[0]).toContain('must be at least 1s');
  expect(causes({ provider: {} })[0]).toContain('exactly one of prometheus and http');
  expect(causes({ provider: { http: { url } } })[0]).toContain('exactly one of jsonPath and value');
});

test('placeholders, samples and credentials are checked', () => {
  const query = (text: string, part: object = {}) => ({ provider: { prometheus: { address, query: text, ...part } } });
  expect(causes(query('up{job="{{args.job}}"}'))[0]).toContain('spec.args has no argument job');
  expect(causes(query('up{job="{{args.job}}"}'), [{ name: 'job' }])).toEqual([]);
  expect(causes(query('up{job="{{job}}"}'))[0]).toContain('{{job}} is no placeholder');
  expect(causes({ ...query('up'), compareWithUntouched: true })[0]).toContain('requires {{targets}}');
  expect(causes({ minSamples: 5 })[0]).toBe('spec.metrics[0].provider.prometheus.samplesQuery: Required value');
  const headers = (name: string) => query('up', { headers: [{ name, value: 'x' }] });
  expect(causes(headers('Authorization'))[0]).toContain('no credential');
  expect(causes(headers('X-Scope-OrgID'))).toEqual([]);
  expect(causes({ provider: { http: { url, jsonPath: '$..[?(@.x)]' } } })[0]).toContain('must be a JSONPath');
});

test('values that would end a string of a query are refused', () => {
  const run = (part: object) =>
    causesOf(() => analysisRunKind.parse({ metadata: { name: 'a' }, spec: { templateRef: { name: 't' }, ...part } }));
  expect(run({ args: [{ name: 'job', value: '5m' }] })).toEqual([]);
  for (const value of ['a"', 'a b', 'a)', "'", '`', '{', '\n', 'a\\', 'x,y'])
    expect(run({ args: [{ name: 'job', value }] })[0], value).toContain('spec.args[0].value');
  for (const name of ['a|b', 'a"', '.*', '-a', 'a b'])
    expect(run({ scope: { targets: { canary: [name] } } })[0], name).toContain('spec.scope.targets.canary[0]');
});
