import { expect, test } from 'vitest';
import { warnOfGateless } from './issuer-rights.ts';

test('of many conditions without a gate the first ten are named', () => {
  const warnings: string[] = [];
  const types = Array.from({ length: 400 }, (_, at) => `example.com/${'t'.repeat(200)}${at}`);
  const gates = Array.from({ length: 400 }, (_, at) => `example.com/${'g'.repeat(200)}${at}`);
  warnOfGateless({ face: 'api', warn: (text: string) => warnings.push(text) } as never, 'apps.web.v1', gates, types);
  expect(warnings).toHaveLength(11);
  expect(warnings[0]).toContain('so this condition opens none');
  expect(warnings[10]).toBe('apps.web.v1 has no gate for 390 more of these conditions');
});
