import { expect, test } from 'vitest';
import { isSluiceError } from '../../foundation/sluice-error.ts';
import { deliveryTargetKind } from '../kinds/sluice/delivery/delivery-target.ts';
import { packagePolicyKind } from '../kinds/sluice/package-policy.ts';
import { wavePlanKind } from '../kinds/sluice/wave/wave-plan.ts';
import type { InvalidObjectDetails } from '../object/invalid-object.ts';
import type { Kind } from './kind.ts';

function messages(kind: Pick<Kind, 'parse'>, spec: unknown): string[] {
  try {
    kind.parse({ metadata: { name: 'a' }, spec });
    return [];
  } catch (error) {
    if (!isSluiceError(error, 'InvalidInput')) throw error;
    return (error.details as InvalidObjectDetails).causes.map(({ field, message }) => `${field}: ${message}`);
  }
}

test('a missing field names the unknown fields beside it, also in lists and below fields with defaults', () => {
  expect(messages(packagePolicyKind, { selector: {}, approval: { quorum: { require: 2 } } })).toEqual([
    'spec.approval.quorum.required: Required value (spec.approval.quorum.require is an unknown field; did you mean required?)',
  ]);
  expect(messages(wavePlanKind, { waves: [{ nam: 'all', percentage: 100 }] })).toContain(
    'spec.waves[0].name: Required value (spec.waves[0].nam, spec.waves[0].percentage are unknown fields; did you mean name?)',
  );
  const git = { repo: 'sluice:///a.git', branch: 'main' };
  expect(messages(deliveryTargetKind, { git, packageSelector: {} })).toEqual([
    'spec.selector: Required value (spec.packageSelector is an unknown field)',
  ]);
});

test('without an unknown field beside it a missing field is only missing', () => {
  expect(messages(packagePolicyKind, { selectr: {}, approval: { quorum: { from: ['ben'] } } })).toEqual([
    'spec.approval.quorum.required: Required value',
  ]);
});

test('an object that has a misspelt field names it, with what may be meant', () => {
  expect(messages(wavePlanKind, { waves: [{ name: 'all', persent: 100 }] })).toEqual([
    expect.stringMatching(
      /^spec\.waves\[0\]: .*must have exactly one of percent, count and selector \(spec\.waves\[0\]\.persent is an unknown field; did you mean percent\?\)$/,
    ),
  ]);
});
