import { expect, test } from 'vitest';
import { packagePolicyKind } from '../../resource/kinds/sluice/package-policy.ts';
import type { KubernetesObject } from '../../resource/object/object.ts';
import type { Kind } from '../../resource/schema/kind.ts';
import { authorizerOf, binding, clusterRole, user } from '../authorization/testing.ts';
import { checkApprovers } from './check-approvers.ts';

const { authorizer } = authorizerOf(
  clusterRole('one', [{ verbs: ['impersonate'], apiGroups: [''], resources: ['users'], resourceNames: ['bob'] }]),
  binding('a', 'ones', 'ClusterRole/one', { kind: 'User', name: 'anna' }),
  clusterRole('all', [{ verbs: ['impersonate'], apiGroups: [''], resources: ['users'] }]),
  binding('', 'all', 'ClusterRole/all', { kind: 'User', name: 'root' }),
  clusterRole('sre', [{ verbs: ['impersonate'], apiGroups: [''], resources: ['groups'], resourceNames: ['sre'] }]),
  binding('', 'sres', 'ClusterRole/sre', { kind: 'User', name: 'root' }),
  binding('', 'users', 'ClusterRole/all', { kind: 'User', name: 'ursula' }),
);
const FORGE = { provider: 'gitea', api: 'https://git.example.com/api/v1', secretRef: { name: 'forge', key: 'token' } };

function check(
  approvers: readonly object[],
  {
    as = 'anna',
    groups = [],
    old,
    forge = FORGE,
    more = {},
    selector,
  }: { as?: string; groups?: string[]; old?: readonly object[]; forge?: object; more?: object; selector?: object } = {},
) {
  const kind = packagePolicyKind as unknown as Kind;
  const policy = (review: object, selected?: object): KubernetesObject => ({
    ...{ apiVersion: kind.apiVersion, kind: kind.kind, metadata: { name: 'x', namespace: 'a' } },
    spec: { review, ...(selected === undefined ? {} : { selector: selected }) },
  });
  const stored = old === undefined ? undefined : (policy({ forge: FORGE, approvers: old }) as never);
  const operation = old === undefined ? 'create' : 'update';
  const object = policy({ forge, approvers, ...more }, selector);
  const write = { user: user(as, ...groups), kind, subResource: '', object, old: stored, operation } as const;
  return checkApprovers(write, authorizer);
}

test('reviews approve only as users whom the writer of the policy may impersonate, or as the writer', async () => {
  const carl = { user: 'carl', subject: 'carl' };
  await expect(check([carl])).rejects.toThrow(
    'packagepolicies.sluice.dev "x" is forbidden: spec.review.approvers lets reviews approve as User "carl", which requires the verb "impersonate"',
  );
  await check([{ user: 'anna-at-host', subject: 'anna' }]);
  await check([carl, { user: 'b', subject: 'bob' }], { as: 'root' });
  await expect(check([{ user: 'b', subject: 'bob' }, carl], { as: 'mallory' })).rejects.toThrow(/as User "bob"/);
});

test('users are in groups that the writer of the policy may impersonate, or in those of the writer if it is the writer', async () => {
  const bob = { user: 'b', subject: 'bob', groups: ['sre'] };
  await expect(check([bob], { as: 'ursula', groups: ['sre'] })).rejects.toThrow(
    'packagepolicies.sluice.dev "x" is forbidden: spec.review.approvers or spec.review.teams has users in Group "sre", which requires the verb "impersonate" on that group',
  );
  await check([bob], { as: 'root' });
  await expect(check([{ ...bob, groups: ['sre', 'admins'] }], { as: 'root' })).rejects.toThrow(/in Group "admins"/);
  const own = { user: 'anna', subject: 'anna', groups: ['sre'] };
  await check([own], { groups: ['sre'] });
  await expect(check([own])).rejects.toThrow(/in Group "sre"/);
  await check([bob], { old: [bob] });
  await expect(check([bob], { as: 'ursula', old: [{ ...bob, groups: [] }] })).rejects.toThrow(/in Group "sre"/);
});

test('teams are in groups that the writer of the policy may impersonate, also if these are groups of the writer', async () => {
  const teams = [{ team: 'acme/sre', groups: ['sre'] }];
  await expect(check([], { as: 'ursula', groups: ['sre'], more: { teams } })).rejects.toThrow(/in Group "sre"/);
  await check([], { as: 'root', more: { teams } });
});

test('entries that stay are not checked again, unless host, packages or effect change', async () => {
  const carl = { user: 'carl', subject: 'carl' };
  await check([carl], { old: [carl] });
  await check([], { old: [carl] });
  await expect(check([{ ...carl, user: 'anna' }], { old: [carl] })).rejects.toThrow(/as User "carl"/);
  const forge = { ...FORGE, api: 'https://other.example.com/api/v1' };
  await expect(check([carl], { old: [carl], forge })).rejects.toThrow(/as User "carl"/);
  const other = { publishOn: 'review' };
  await expect(check([carl], { old: [carl], more: other })).rejects.toThrow(/as User "carl"/);
  await expect(check([carl], { old: [carl], selector: { repositories: ['production'] } })).rejects.toThrow(
    /as User "carl"/,
  );
});
