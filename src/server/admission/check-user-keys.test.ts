import { expect, test } from 'vitest';
import { configMapKind } from '../../resource/kinds/core/config-map.ts';
import type { Kind } from '../../resource/schema/kind.ts';
import { BOOTSTRAP_ROLES } from '../authorization/bootstrap-objects.ts';
import { authorizerOf, binding, user } from '../authorization/testing.ts';
import { checkUserKeys } from './check-user-keys.ts';

const KIND = configMapKind as unknown as Kind;
const LABEL = 'sluice.dev/trust-ledger';
const OWNER = { apiVersion: 'v1', kind: 'ConfigMap', name: 'gone', uid: '00000000-0000-4000-8000-000000000001' };
const LIST = { allowed_signers: 'anna ssh-ed25519 AAAA' };
const { authorizer } = authorizerOf(
  ...BOOTSTRAP_ROLES,
  binding('a', 'editors', 'ClusterRole/edit', { kind: 'User', name: 'edna' }),
  binding('a', 'admins', 'ClusterRole/admin', { kind: 'User', name: 'adam' }),
);

interface Written {
  readonly data?: object;
  readonly metadata?: object;
  readonly immutable?: boolean;
}

function configMap({ data = LIST, metadata = {}, immutable }: Written): never {
  const { apiVersion, kind } = KIND;
  return { apiVersion, kind, metadata: { name: 'people', namespace: 'a', ...metadata }, data, immutable } as never;
}

function update(name: string, before: Written, after: Written): Promise<void> {
  const write = { object: configMap(after), old: configMap(before), operation: 'update' } as const;
  return checkUserKeys({ user: user(name), kind: KIND, subResource: '', ...write }, authorizer);
}

const owned = { metadata: { ownerReferences: [OWNER] } };
const hidden = { metadata: { labels: { [LABEL]: 'x' } } };

test.each<[string, Written, Written, string]>([
  ['gives the list an owner, with which it is deleted', {}, owned, 'metadata.ownerReferences'],
  ['gives it an owner beside its labels', { metadata: { labels: {} } }, owned, 'metadata.ownerReferences'],
  [
    'gives it another owner',
    owned,
    { metadata: { ownerReferences: [{ ...OWNER, uid: 'u2' }] } },
    'metadata.ownerReferences',
  ],
  ['hides it from Sluice', {}, hidden, `the label ${LABEL}`],
  ['hides a list of users of the host', { data: { host_users: 'x' } }, { data: { host_users: 'x' }, ...hidden }, LABEL],
  ['shows a hidden list', hidden, {}, `the label ${LABEL}`],
  ['freezes it', {}, { immutable: true }, 'immutable'],
  ['keeps it from being deleted', {}, { metadata: { finalizers: ['example.com/keep'] } }, 'metadata.finalizers'],
  ['removes the list', {}, { data: {} }, 'its key allowed_signers says whose signature is whose and takes'],
])('an editor who may not update Repositories is refused, who %s', async (_, before, after, message) => {
  await expect(update('edna', before, after)).rejects.toThrow(
    expect.objectContaining({ code: 'Refused', message: expect.stringContaining(message) }),
  );
  await expect(update('edna', before, after)).rejects.toThrow(
    'takes the verb "update" on repositories.config.porch.kpt.dev',
  );
  await expect(update('adam', before, after)).resolves.toBeUndefined();
});

test.each<[string, Written, Written]>([
  ['changes other fields of a list', {}, { metadata: { labels: { team: 'a' }, annotations: { note: 'x' } } }],
  ['changes them where it has an owner', owned, { metadata: { ...owned.metadata, labels: { team: 'a' } } }],
  ['removes an empty list of owners', { metadata: { ownerReferences: [] } }, {}],
  ['gives an owner to data without a list', { data: { a: 'b' } }, { data: { a: 'b' }, ...owned }],
  ['labels data without a list', { data: { a: 'b' } }, { data: { a: 'b' }, ...hidden }],
])('an editor is not refused, who %s', async (_, before, after) => {
  await expect(update('edna', before, after)).resolves.toBeUndefined();
});
