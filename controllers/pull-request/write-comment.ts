import { postComment } from '../../src/forge/comments/post-comment.ts';
import type { Forge, PullRequest } from '../../src/forge/forge.ts';
import type { RevisionStore } from '../../src/package/store/revision-store.ts';
import type { PackageRevision } from '../../src/resource/kinds/porch/package-revision.ts';
import { keyOf, type Stored } from '../../src/resource/object/object.ts';
import type { EventDeduplicator } from '../event-deduplicator.ts';
import { noteFailure } from './host-failures.ts';

interface CommentedPull {
  readonly object: Stored<PackageRevision>;
  readonly pull: Pick<PullRequest, 'number' | 'url'>;
  readonly forge: Pick<Forge, 'setComment'>;
}

interface CommentContext {
  readonly store: Pick<RevisionStore, 'find' | 'repositoryOf'>;
  readonly events: EventDeduplicator;
  readonly signal: AbortSignal;
}

/** A host that permits no comments must not stop the rest. Returns whether it was written. */
export async function writeComment(
  { store, events, signal }: CommentContext,
  { object, pull, forge }: CommentedPull,
  topic: string,
  text: string,
): Promise<boolean> {
  const problem = await postComment(forge, pull.number, topic, text, signal);
  const message = problem === undefined ? undefined : `${pull.url}: a comment cannot be written: ${problem}`;
  noteFailure(store, keyOf(object), 'ReplyFailed', message);
  if (message === undefined) return true;
  events.record(object, 'Warning', 'ReplyFailed', message, 'reply');
  return false;
}
