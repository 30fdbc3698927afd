import { SluiceError } from '../../foundation/sluice-error.ts';
import { packagePolicyKind } from '../../resource/kinds/sluice/package-policy.ts';
import { sameValue } from '../../resource/object/same-value.ts';
import { resourceName } from '../../resource/storage/memory/object-rules.ts';
import type { Authorizer } from '../authorization/authorizer.ts';
import { isAllowed, permission } from '../authorization/require-allowed.ts';
import type { PlannedWrite } from '../handlers/handler.ts';

interface PolicyObject {
  readonly spec?: {
    readonly selector?: unknown;
    readonly review?: {
      readonly forge?: unknown;
      readonly publishOn?: string;
      readonly approvers?: readonly {
        readonly user?: string;
        readonly subject?: string;
        readonly groups?: readonly string[];
      }[];
      readonly teams?: readonly { readonly team?: string; readonly groups?: readonly string[] }[];
    };
  };
}

/**
 * Checks in whose name and in which groups reviews approve: callers must be allowed to impersonate these users and groups, unless it is
 * themselves and groups of their own. Entries that were there before are not checked again while they have the same effect: on the same
 * packages, by the same host.
 */
export async function checkApprovers({ user, kind, object, old }: PlannedWrite, authorizer: Authorizer): Promise<void> {
  if (kind.group !== packagePolicyKind.group || kind.kind !== packagePolicyKind.kind) return;
  const review = (object as PolicyObject).spec?.review;
  const before = (old as PolicyObject | undefined)?.spec?.review;
  const isSame =
    before !== undefined &&
    sameValue(before.forge, review?.forge) &&
    before.publishOn === review?.publishOn &&
    sameValue((old as PolicyObject).spec?.selector, (object as PolicyObject).spec?.selector);
  const known = isSame ? (before.approvers ?? []) : [];
  const added = (review?.approvers ?? []).filter((one) => !known.some((other) => sameValue(one, other)));
  const subjects = added.flatMap(({ subject }) => subject ?? []).filter((name) => name !== user.name);
  const groups = added.flatMap((one) =>
    (one.groups ?? []).filter((group) => one.subject !== user.name || !user.groups.includes(group)),
  );
  const knownTeams = isSame ? (before.teams ?? []) : [];
  const addedTeams = (review?.teams ?? []).filter((one) => !knownTeams.some((other) => sameValue(one, other)));
  await requireImpersonation('users', subjects);
  await requireImpersonation('groups', [...groups, ...addedTeams.flatMap((one) => one.groups ?? [])]);

  async function requireImpersonation(resource: 'users' | 'groups', names: readonly string[]): Promise<void> {
    if (names.length === 0) return;
    const impersonate = (name: string) =>
      isAllowed(authorizer, permission(user, 'impersonate', { group: '', resource, name }));
    // The right to impersonate all of them saves a question for each.
    if (await impersonate('')) return;
    for (const one of new Set(names)) {
      if (await impersonate(one)) continue;
      const { name } = object.metadata;
      const effect =
        resource === 'users'
          ? `approvers lets reviews approve as User ${JSON.stringify(one)}, which requires the verb "impersonate" on that user`
          : `approvers or spec.review.teams has users in Group ${JSON.stringify(one)}, which requires the verb "impersonate" on that group`;
      const message = `${resourceName(kind)} ${JSON.stringify(name)} is forbidden: spec.review.${effect}; let a user with that right write this`;
      throw new SluiceError('Refused', message, { details: { name, group: kind.group, kind: kind.plural } });
    }
  }
}
