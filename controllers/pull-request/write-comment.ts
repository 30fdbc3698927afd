import type { Forge, PullRequest } from '../../src/forge/forge.ts';
import { messageOf } from '../../src/foundation/sluice-error.ts';
import type { PackageRevision } from '../../src/resource/kinds/porch/package-revision.ts';
import type { Stored } from '../../src/resource/object/object.ts';
import type { EventDeduplicator } from '../event-deduplicator.ts';
import { isPermanent } from './pause-after.ts';

interface CommentedPull {
  readonly object: Stored<PackageRevision>;
  readonly pull: Pick<PullRequest, 'number' | 'url'>;
  readonly forge: Pick<Forge, 'setComment'>;
}

/** A host that permits no comments must not stop the rest. Returns whether it was written. */
export async function writeComment(
  { events, signal }: { readonly events: EventDeduplicator; readonly signal: AbortSignal },
  { object, pull, forge }: CommentedPull,
  topic: string,
  text: string,
): Promise<boolean> {
  const problem = await postComment(forge, pull.number, topic, text, signal);
  if (problem === undefined) return true;
  events.record(object, 'Warning', 'ReplyFailed', `${pull.url}: a comment cannot be written: ${problem}`, 'reply');
  return false;
}

/** The same without an event. Returns why the host does not permit it; undefined if it was written. */
export async function postComment(
  forge: Pick<Forge, 'setComment'>,
  number: number,
  topic: string,
  text: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  try {
    await forge.setComment(number, topic, text, signal);
    return undefined;
  } catch (error) {
    if (!isPermanent(error)) throw error;
    return messageOf(error);
  }
}
