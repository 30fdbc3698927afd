import { expect, test } from 'vitest';
import { isSluiceError } from '../../../foundation/sluice-error.ts';
import type { InvalidObjectDetails } from '../../object/invalid-object.ts';
import { packagePolicyKind } from './package-policy.ts';
import { repositoryPolicyKind } from './repository-policy.ts';
import { wavePlanKind } from './wave/wave-plan.ts';

function causes(parse: () => unknown): string[] {
  try {
    parse();
    return [];
  } catch (error) {
    if (!isSluiceError(error, 'InvalidInput')) throw error;
    return (error.details as InvalidObjectDetails).causes.map(({ field, message }) => `${field}: ${message}`);
  }
}

const ofPolicy = (quorum: object, kind: Pick<typeof packagePolicyKind, 'parse'> = packagePolicyKind) =>
  causes(() => kind.parse({ metadata: { name: 'a' }, spec: { approval: { quorum } } }));
const ofWave = (approval: object) =>
  causes(() =>
    wavePlanKind.parse({ metadata: { name: 'a' }, spec: { waves: [{ name: 'all', percent: 100, approval }] } }),
  );

test('a quorum of more users than its list has is refused, with the field and what to do', () => {
  const rule =
    'can never be met: from has 2 users; name more users, or a group as group:<name>, or require fewer approvals';
  for (const from of [
    ['ben', 'cleo'],
    ['ben', 'cleo', 'ben'],
  ]) {
    expect(ofPolicy({ required: 3, from })).toEqual([
      expect.stringMatching(new RegExp(`^spec\\.approval\\.quorum\\.required: .*${rule}$`)),
    ]);
    expect(ofWave({ required: 3, from })).toEqual([
      expect.stringMatching(new RegExp(`^spec\\.waves\\[0\\]\\.approval\\.required: .*${rule}$`)),
    ]);
  }
  const inRepository = ofPolicy({ required: 2, from: ['ben'] }, repositoryPolicyKind as never);
  expect(inRepository).toEqual([expect.stringContaining('can never be met: from has one user')]);
});

test('a quorum that may be met is accepted: of a group, whose members are not known, or of all', () => {
  for (const quorum of [
    { required: 2, from: ['ben', 'cleo'] },
    { required: 20, from: ['ben', 'group:sre'] },
    { required: 20 },
    { required: 20, from: [] },
  ])
    expect(ofPolicy(quorum)).toEqual([]);
  expect(ofWave({ manual: true, from: ['ben'] })).toEqual([]);
});

test.each([0, -1, 1.5])('%s users are no quorum, and a list of no users is none for a wave', (required) => {
  expect(ofPolicy({ required })).toEqual([expect.stringContaining('spec.approval.quorum.required: ')]);
  expect(ofWave({ required })).toEqual([expect.stringContaining('spec.waves[0].approval.required: ')]);
  expect(ofWave({ manual: true, from: [] })).toEqual([expect.stringContaining('spec.waves[0].approval.from: ')]);
});
