import { SluiceError } from '../../foundation/sluice-error.ts';
import { HOST_USERS_KEY } from '../../package/model/policy/host-users.ts';
import { ALLOWED_SIGNERS_KEY } from '../../package/model/policy/people.ts';
import { LEDGER_LABEL } from '../../package/trust/cluster/ledger-objects.ts';
import { configMapKind } from '../../resource/kinds/core/config-map.ts';
import { repositoryKind } from '../../resource/kinds/porch/repository.ts';
import { sameValue } from '../../resource/object/same-value.ts';
import type { Authorizer } from '../authorization/authorizer.ts';
import { isAllowed, permission } from '../authorization/require-allowed.ts';
import type { PlannedWrite } from '../handlers/handler.ts';

/** The parts that are read. Of a review only the data is known to have its form. */
type Listing =
  | {
      readonly data?: Readonly<Record<string, string>>;
      readonly immutable?: unknown;
      readonly metadata: {
        readonly labels?: Readonly<Record<string, unknown>> | null;
        readonly ownerReferences?: unknown;
        readonly finalizers?: unknown;
      };
    }
  | undefined;

/** The effect of each list, by its key. */
const EFFECTS: Readonly<Record<string, string>> = {
  [ALLOWED_SIGNERS_KEY]: 'whose signature is whose',
  [HOST_USERS_KEY]: 'who is which user of the Git host',
};

/**
 * What else can have a list deleted, ignored or kept from its administrators: its owners, with which it goes, the label of objects that
 * belong to Sluice itself, finalizers, and that it cannot be changed.
 */
const OTHER_FIELDS: readonly { readonly name: string; readonly valueIn: (written: Listing) => unknown }[] = [
  { name: `the label ${LEDGER_LABEL}`, valueIn: (written) => written?.metadata.labels?.[LEDGER_LABEL] ?? undefined },
  { name: 'metadata.finalizers', valueIn: (written) => written?.metadata.finalizers ?? [] },
  { name: 'immutable', valueIn: (written) => written?.immutable ?? false },
  { name: 'metadata.ownerReferences', valueIn: (written) => written?.metadata.ownerReferences ?? [] },
];

/**
 * Checks writes of ConfigMaps that list the keys of users, or their names at the Git host. The list maps signatures and pushes to
 * users, and so determines authors and approvers; changing or removing it, also by what has it ignored or deleted, requires the right to
 * update Repositories in the namespace. A Repository can refer to a ConfigMap at any time, so every ConfigMap with such a list is checked.
 */
export async function checkUserKeys(
  { user, kind, operation, object, old }: PlannedWrite,
  authorizer: Authorizer,
): Promise<void> {
  if (kind.group !== configMapKind.group || kind.kind !== configMapKind.kind) return;
  const problem = problemOf(operation === 'delete' ? object : old, operation === 'delete' ? undefined : object);
  if (problem === undefined) return;
  const { name, namespace = '' } = object.metadata;
  const { group, plural: resource } = repositoryKind;
  if (await isAllowed(authorizer, permission(user, 'update', { group, resource, namespace, name: '' }))) return;
  const right = `the verb "update" on ${resource}.${group} in the namespace`;
  const message = `configmaps ${JSON.stringify(name)} is forbidden: ${problem} takes ${right}, which User ${JSON.stringify(user.name)} does not have; use another key, or let an administrator write it`;
  throw new SluiceError('Refused', message, { details: { name, group: kind.group, kind: kind.plural } });
}

/** What a write changes that requires the right; undefined for nothing. */
function problemOf(before: unknown, after: unknown): string | undefined {
  const [old, written] = [before as Listing, after as Listing];
  const keys = Object.keys(EFFECTS);
  const changed = keys.find((key) => old?.data?.[key] !== written?.data?.[key]);
  if (changed !== undefined) return `its key ${changed} says ${EFFECTS[changed]} and`;
  const listed = keys.find((key) => old?.data?.[key] !== undefined);
  if (listed === undefined) return undefined;
  const other = OTHER_FIELDS.find(({ valueIn }) => !sameValue(valueIn(old), valueIn(written)));
  return other === undefined
    ? undefined
    : `its key ${listed} says ${EFFECTS[listed]}, and a change of ${other.name} can remove it, which`;
}
