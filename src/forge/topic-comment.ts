import { SluiceError } from '../foundation/sluice-error.ts';
import type { Comment } from './forge.ts';
import { shorten } from './shorten.ts';

/** What GitHub permits; other hosts permit more. */
export const MAX_COMMENT_CHARACTERS = 65_536;
const TOPIC = /^[a-z0-9-]{1,50}$/;

/** A comment as an adapter reads it. */
export interface HostComment extends Comment {
  /** True for those of the user or App that Sluice authenticates as. */
  readonly isOwn: boolean;
}

/** What an adapter does for `Forge.setComment`. */
export interface TopicComments {
  /** All comments of the pull request, oldest first. */
  read(): Promise<readonly HostComment[]>;
  create(body: string): Promise<Comment>;
  change(id: string, body: string): Promise<Comment>;
  remove(id: string): Promise<void>;
}

/**
 * Creates the comment about a topic, or changes the oldest own one about it if its text differs. Two processes can have created one each at the
 * same time: the later ones are removed.
 */
export async function setTopicComment(comments: TopicComments, topic: string, text: string): Promise<Comment> {
  if (!TOPIC.test(topic)) throw new SluiceError('Internal', `${topic} is no topic of comments`);
  const marker = `<!-- sluice:comment topic=${topic} -->`;
  const body = shorten(`${marker}\n${text.replaceAll('\r\n', '\n').trimEnd()}`, MAX_COMMENT_CHARACTERS);
  // A comment can quote the marker anywhere but at its beginning.
  const own = (await comments.read()).filter(({ isOwn, body: known }) => isOwn && known.startsWith(`${marker}\n`));
  const [first, ...others] = own;
  if (first === undefined) return comments.create(body);
  for (const { id } of others) await comments.remove(id);
  return first.body === body ? withoutOwner(first) : comments.change(first.id, body);
}

/** The text of a comment in the form of the port. */
export function commentText(body: string | null | undefined): string {
  return shorten((body ?? '').replaceAll('\r\n', '\n').trimEnd(), MAX_COMMENT_CHARACTERS);
}

export function withoutOwner({ isOwn: _, ...comment }: HostComment): Comment {
  return comment;
}
