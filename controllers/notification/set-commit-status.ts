import { statusText } from '../../src/forge/github/status-text.ts';
import { ellipsize, shorten } from '../../src/foundation/text/shorten.ts';
import { readRemoteUrl } from '../../src/git/network/remote-url.ts';
import { packageRevisionKind } from '../../src/resource/kinds/porch/package-revision.ts';
import { deliveryTargetKind } from '../../src/resource/kinds/sluice/delivery/delivery-target.ts';
import type { Notification } from '../../src/resource/kinds/sluice/notification.ts';
import type { Message } from './message.ts';
import { type Attempt, attemptOf } from './receiver.ts';
import { secretValue } from './secret-value.ts';
import type { SendContext } from './send-webhook.ts';

/** The limit of GitHub. */
const MAX_DESCRIPTION_CHARACTERS = 140;

interface Commit {
  readonly repo: string;
  readonly id: string;
}

/** Sets the status of the commit that an event is about. Skipped for objects without a commit on that host. Throws what prevents the request. */
export async function setCommitStatus(
  spec: NonNullable<Notification['spec']['commitStatus']>,
  message: Message,
  context: SendContext,
): Promise<Attempt> {
  const { client, post, namespace, signal } = context;
  const commit = await commitOf(message, context);
  const address = commit === undefined ? undefined : addressOf(commit.repo, spec.api);
  if (commit === undefined || address === undefined) return { outcome: 'skipped' };
  const token = await secretValue(
    ...([client, namespace, spec.secretRef, 'which spec.commitStatus.secretRef refers to', signal] as const),
  );
  const text = statusText(`${message.reason}: ${message.message}`);
  const body = JSON.stringify({
    state: message.type === 'Warning' ? 'failure' : 'success',
    context: shorten(statusText(`${spec.context}/${message.object.kind.toLowerCase()}/${message.object.name}`), 255),
    description: ellipsize(text, MAX_DESCRIPTION_CHARACTERS),
  });
  const headers = { authorization: `Bearer ${token}`, accept: 'application/json' };
  const response = await post({ url: `${address}/statuses/${commit.id}`, headers, body, signal });
  return attemptOf(response, `${address}/statuses`, 'the token of spec.commitStatus.secretRef');
}

async function commitOf({ object }: Message, { client, signal }: SendContext): Promise<Commit | undefined> {
  const key = { namespace: object.namespace, name: object.name };
  if (object.kind === deliveryTargetKind.kind) {
    const target = await client.find(deliveryTargetKind, key, { signal });
    const id = target?.status?.lastCommit;
    return target === undefined || id === undefined ? undefined : { repo: target.spec.git.repo, id };
  }
  if (object.kind !== packageRevisionKind.kind) return undefined;
  const git = (await client.find(packageRevisionKind, key, { signal }))?.status?.selfLock?.git;
  return git?.repo === undefined || git.commit === undefined ? undefined : { repo: git.repo, id: git.commit };
}

/**
 * The address of a repository in the API; undefined for a repository of another host. The token goes to no other host than the one of the
 * Notification: users who may not read its Secret can create targets at any address.
 */
function addressOf(repo: string, api: string): string | undefined {
  const { endpoint } = readRemoteUrl(repo);
  const url = endpoint === undefined ? null : URL.parse(endpoint.url);
  const base = URL.parse(api);
  if (url === null || base === null) return undefined;
  if (base.hostname !== (url.hostname === 'github.com' ? 'api.github.com' : url.hostname)) return undefined;
  const parts = url.pathname
    .replace(/\/+$/, '')
    .replace(/\.git$/, '')
    .split('/')
    .filter((part) => part !== '');
  const [name, owner] = [parts.pop(), parts.pop()];
  if (name === undefined || owner === undefined) return undefined;
  return `${api.replace(/\/+$/, '')}/repos/${owner}/${name}`;
}
