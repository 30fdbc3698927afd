import { isSluiceError } from '../../foundation/sluice-error.ts';
import { timestamp } from '../../foundation/time/clock.ts';
import { canonicalAddressNow, comparableAddress } from '../../git/open/repository-address.ts';
import { parseRef } from '../../package/model/identity/layout.ts';
import { revisionId } from '../../package/model/revision/package-revision.ts';
import { hostUsersNameOf } from '../../package/store/policies/user-lists.ts';
import { repositoryKind } from '../../resource/kinds/porch/repository.ts';
import { keyText, type ObjectKey } from '../../resource/object/object.ts';
import type { HostPush } from '../../server/webhooks/host/host-push.ts';
import type { Session } from '../session/session.ts';

/**
 * Stores the report of a Git host on a push if the Repository accepts such reports. Returns why the report does not count, if the
 * operator expects it to.
 */
export async function attributePush(
  session: Pick<Session, 'client' | 'store' | 'trust' | 'clock'>,
  key: ObjectKey,
  push: HostPush,
): Promise<string | undefined> {
  const object = await session.client.find(repositoryKind, key);
  const address = object?.spec.git?.repo;
  const { pushes, ledger } = session.trust;
  if (object === undefined || address === undefined || pushes === undefined) return undefined;
  if (hostUsersNameOf(object) === undefined || !/^refs\/heads\/(?:drafts|proposed)\//.test(push.ref)) return undefined;
  const { provider, user, ref, before, after, repository: named } = push;
  if (named !== undefined && !isNamed(address, provider, named))
    return `a webhook reports a push to ${named}, and the repository is ${address}: its pusher is not used`;
  const known = ledger.repositoryAt(canonicalAddressNow(address));
  if (known === undefined) return `a webhook reports a push before the repository was read: its pusher is not used`;
  const at = timestamp(session.clock.now());
  pushes.note({ repository: known.id, registration: keyText(key), ref, before, after, user, provider, at });
  await updateRecord(session, key, ref);
  return undefined;
}

/** Returns why the pusher of a push with an unreadable message is unknown; undefined if pushers do not count. */
export async function unreadablePush(
  { client }: Pick<Session, 'client'>,
  key: ObjectKey,
  maxBytes: number,
): Promise<string | undefined> {
  const object = await client.find(repositoryKind, key);
  if (object === undefined || hostUsersNameOf(object) === undefined) return undefined;
  return `cannot read who pushed to ${keyText(key)}: the message of the webhook has more than ${maxBytes} bytes, so that the pusher is unknown; push less at once, or sign the commits. Further messages of this repository that are too long are not logged`;
}

/** True if a host can call the repository at an address so. Of GitLab alone a name can have any number of parts. */
function isNamed(address: string, provider: string, named: string): boolean {
  const own = comparableAddress(address).toLowerCase();
  const suffix = `/${named.toLowerCase()}`;
  if (!own.endsWith(suffix)) return false;
  return provider !== 'gitlab' || URL.parse(own)?.pathname === suffix;
}

/** Adds the person to a record that was written before the pusher was known. */
async function updateRecord({ store }: Pick<Session, 'store'>, key: ObjectKey, ref: string): Promise<void> {
  const repository = store.findRepository(keyText(key));
  const meaning = repository && parseRef(repository.layout, ref);
  if (repository === undefined || (meaning?.kind !== 'draft' && meaning?.kind !== 'proposed')) return;
  const revision = [...repository.index.ofPackage(meaning.package)].find(
    ({ key }) => key.workspace === meaning.workspace,
  );
  const isOpen = revision?.record?.contributors?.some(({ commits }) => commits !== undefined);
  if (revision === undefined || isOpen !== true) return;
  try {
    await store.change(
      revisionId(revision),
      { recordPush: true },
      { actor: { name: 'controller:webhook' }, face: 'controller' },
    );
  } catch (error) {
    // Another request writes the revision now; its evaluation reads the report.
    if (isSluiceError(error, 'Conflict') || isSluiceError(error, 'Busy') || isSluiceError(error, 'NotFound')) return;
    throw error;
  }
}
