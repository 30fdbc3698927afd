import { expect, test } from 'vitest';
import { roleHint } from './role-hint.ts';

test('a refusal for a missing right names the roles that have it', async () => {
  const refused = (what: string) => `x is forbidden: User "mallory" cannot ${what}`;
  expect(
    await roleHint(refused('update resource "waveplans" in API group "sluice.dev" in the namespace "default"')),
  ).toBe('; roles with this right: admin, sluice:approver ("kubectl create rolebinding" binds a user to one)');
  const approval = 'update resource "packagerevisions/approval" in API group "porch.kpt.dev" in the namespace "a"';
  expect(await roleHint(refused(approval))).toContain('admin, sluice:approver');
  expect(await roleHint(refused('impersonate resource "users" in API group "" at the cluster scope'))).toBe(
    '; roles with this right: cluster-admin ("kubectl create clusterrolebinding" binds a user to one)',
  );
  expect(await roleHint('cannot approve package with Draft lifecycle')).toBe('');
});
