import { SluiceError } from '../../foundation/sluice-error.ts';
import { shorten } from '../../foundation/text/shorten.ts';
import type { Comment } from '../forge.ts';

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
 * Creates the comment about a topic, or changes the oldest own one about it if its text differs. Two processes can create one each at the same
 * time: each reads all of them after it has created its own, so that at least the last of them removes the later comments.
 */
export async function setTopicComment(comments: TopicComments, topic: string, text: string): Promise<Comment> {
  const body = shorten(`${markerOf(topic)}\n${text.replaceAll('\r\n', '\n').trimEnd()}`, MAX_COMMENT_CHARACTERS);
  const readOwn = async () => commentsAbout(await comments.read(), topic);
  for (let created: Comment | undefined; ; ) {
    const [first, ...others] = await readOwn();
    if (first !== undefined) {
      for (const { id } of others) await comments.remove(id);
      return first.body === body ? withoutOwner(first) : comments.change(first.id, body);
    }
    // A user can have removed it meanwhile.
    if (created !== undefined) return created;
    created = await comments.create(body);
  }
}

/** The comments of Sluice about a topic, of all of a pull request: one, unless two processes have just written it. */
export function commentsAbout(all: readonly HostComment[], topic: string): readonly HostComment[] {
  // A comment can quote the marker anywhere but at its beginning.
  const begin = `${markerOf(topic)}\n`;
  return all.filter(({ isOwn, body }) => isOwn && body.startsWith(begin));
}

function markerOf(topic: string): string {
  if (!TOPIC.test(topic)) throw new SluiceError('Internal', `${topic} is no topic of comments`);
  return `<!-- sluice:comment topic=${topic} -->`;
}

/** The text of a comment in the form of the port. */
export function commentText(body: string | null | undefined): string {
  return shorten((body ?? '').replaceAll('\r\n', '\n').trimEnd(), MAX_COMMENT_CHARACTERS);
}

export function withoutOwner({ isOwn: _, ...comment }: HostComment): Comment {
  return comment;
}
