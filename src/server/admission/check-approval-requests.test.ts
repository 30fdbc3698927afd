import { expect, test } from 'vitest';
import { packageVariantKind } from '../../resource/kinds/porch/package-variant.ts';
import { packageVariantSetKind } from '../../resource/kinds/porch/package-variant-set.ts';
import { packagePolicyKind } from '../../resource/kinds/sluice/package-policy.ts';
import type { Kind } from '../../resource/schema/kind.ts';
import { authorizerOf, binding, clusterRole, user } from '../authorization/testing.ts';
import { checkApprovalRequests } from './check-approval-requests.ts';

const { authorizer } = authorizerOf(
  clusterRole('approver', [
    { verbs: ['update'], apiGroups: ['porch.kpt.dev'], resources: ['packagerevisions/approval'] },
  ]),
  binding('a', 'approvers', 'ClusterRole/approver', { kind: 'User', name: 'anna' }),
);

function write(kind: unknown, spec: object, { as = 'ed', old = {} } = {}): Promise<void> {
  const { apiVersion, kind: name } = kind as Kind;
  const object = (part: object) => ({ apiVersion, kind: name, metadata: { name: 'x', namespace: 'a' }, ...part });
  const planned = {
    ...{ user: user(as), kind: kind as Kind, subResource: '', operation: 'update' as const },
    ...{ object: object({ spec }), old: object(old) as never },
  };
  return checkApprovalRequests(planned, authorizer);
}

const POLICY = 'approval.nephio.org/policy';
const REQUEST = { annotations: { [POLICY]: 'always' } };
const set = (template: object) => ({ targets: [{ repositories: [] }, { template }] });

test('a variant requests approvals only for users who may approve', async () => {
  await write(packageVariantKind, REQUEST, { as: 'anna' });
  await write(packageVariantKind, { annotations: { 'example.com/a': 'b' } });
  await expect(write(packageVariantKind, REQUEST)).rejects.toThrow(
    /spec\.annotations requests approvals by approval\.nephio\.org\/policy, .*User "ed" does not have it/,
  );
  await expect(write(packageVariantKind, { annotations: { 'approval.nephio.org/delay': '1s' } })).rejects.toThrow(
    /delay/,
  );
});

test('one that requests them already is changed by such users only', async () => {
  await write(packageVariantKind, REQUEST, { old: { spec: REQUEST } });
  const elsewhere = { ...REQUEST, downstream: { repo: 'production', package: 'web' } };
  await expect(write(packageVariantKind, elsewhere, { old: { spec: REQUEST } })).rejects.toThrow(/requests approvals/);
  await write(packageVariantKind, {}, { old: { spec: REQUEST } });
});

test('the templates of a set are no way around it', async () => {
  await write(packageVariantSetKind, set(REQUEST), { as: 'anna' });
  await write(packageVariantSetKind, set({ annotationExprs: [{ key: 'a', valueExpr: 'target.name' }] }));
  await expect(write(packageVariantSetKind, set(REQUEST))).rejects.toThrow(/spec\.targets\[1\]\.template\.annotations/);
  const byKey = set({ annotationExprs: [{ key: POLICY, valueExpr: "'always'" }] });
  await expect(write(packageVariantSetKind, byKey)).rejects.toThrow(/annotationExprs\[0\] requests approvals/);
  const byExpression = set({ annotationExprs: [{ keyExpr: "'approval.nephio.org/' + 'policy'", value: 'always' }] });
  await expect(write(packageVariantSetKind, byExpression)).rejects.toThrow(/keyExpr can request approvals/);
});

test('policies let controllers approve only if their writers may', async () => {
  const automatic = { approval: { automatic: true } };
  await write(packagePolicyKind, automatic, { as: 'anna' });
  await write(packagePolicyKind, { autoPropose: true, approval: { automatic: false, quorum: { required: 2 } } });
  await expect(write(packagePolicyKind, automatic)).rejects.toThrow(
    /spec\.approval\.automatic lets a controller approve, .*User "ed" does not have it/,
  );
  await expect(write(packagePolicyKind, { kptfileApprovals: true })).rejects.toThrow(/spec\.kptfileApprovals/);
  const wider = { ...automatic, selector: {} };
  await expect(
    write(packagePolicyKind, wider, { old: { spec: { ...automatic, selector: { repositories: ['a'] } } } }),
  ).rejects.toThrow(/automatic/);
  await write(packagePolicyKind, {}, { old: { spec: automatic } });
});
