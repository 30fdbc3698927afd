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
);
const FORGE = { provider: 'gitea', api: 'https://git.example.com/api/v1', secretRef: { name: 'forge', key: 'token' } };

function check(
  approvers: readonly object[],
  {
    as = 'anna',
    old,
    forge = FORGE,
    more = {},
    selector,
  }: { as?: string; old?: readonly object[]; forge?: object; more?: object; selector?: object } = {},
) {
  const kind = packagePolicyKind as unknown as Kind;
  const policy = (review: object, selected?: object): KubernetesObject => ({
    ...{ apiVersion: kind.apiVersion, kind: kind.kind, metadata: { name: 'x', namespace: 'a' } },
    spec: { review, ...(selected === undefined ? {} : { selector: selected }) },
  });
  const stored = old === undefined ? undefined : (policy({ forge: FORGE, approvers: old }) as never);
  const operation = old === undefined ? 'create' : 'update';
  const object = policy({ forge, approvers, ...more }, selector);
  const write = { user: user(as), kind, subResource: '', object, old: stored, operation } as const;
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
