import { isSluiceError, unlessMissing } from '../../foundation/sluice-error.ts';
import { cleanAddress } from '../clean-address.ts';
import {
  commentsAbout,
  commentText,
  type HostComment,
  setTopicComment,
  withoutOwner,
} from '../comments/topic-comment.ts';
import type { Comment, ForgeErrorDetails } from '../forge.ts';
import type { ForgeHttp } from '../http/forge-http.ts';
import { readPages } from '../read-pages.ts';
import {
  commentSchema,
  commentsSchema,
  conversationSchema,
  type GiteaComment,
  ownUserSchema,
  permissionSchema,
  pullSchema,
} from './gitea-schemas.ts';

const PAGE = 50;
/** In which an own comment is looked for. */
const MAX_COMMENTS = 5000;
const WRITES: readonly string[] = ['owner', 'admin', 'write'];

/** The conversation of pull requests on Gitea, which are issues there. */
export class GiteaComments {
  readonly #http: ForgeHttp;
  /** Of the repository. */
  readonly #path: string;

  constructor(http: ForgeHttp, path: string) {
    this.#http = http;
    this.#path = path;
  }

  async list(number: number, since: string, limit: number, signal: AbortSignal): Promise<readonly Comment[]> {
    const from = new Date(since).toISOString();
    const query = `since=${encodeURIComponent(from)}`;
    return (await this.#read(number, query, limit, undefined, signal)).map(withoutOwner);
  }

  async set(number: number, topic: string, text: string, signal: AbortSignal): Promise<Comment> {
    const { login } = await this.#http.json(ownUserSchema, 'GET', '/user', { signal });
    const path = `${this.#path}/issues/comments`;
    const written = (comment: GiteaComment): Comment => withoutOwner(commentOf(comment, login));
    const comments = {
      read: () => this.#read(number, '', MAX_COMMENTS, login, signal),
      create: async (body: string) => {
        const at = `${this.#path}/issues/${number}/comments`;
        return written(await this.#http.json(commentSchema, 'POST', at, { body: { body }, signal }));
      },
      change: async (id: string, body: string) =>
        written(await this.#http.json(commentSchema, 'PATCH', `${path}/${id}`, { body: { body }, signal })),
      remove: async (id: string) => {
        await unlessMissing(this.#http.send('DELETE', `${path}/${id}`, { signal }));
      },
    };
    return setTopicComment(comments, topic, text);
  }

  async find(number: number, topic: string, signal: AbortSignal): Promise<Comment | undefined> {
    const { login } = await this.#http.json(ownUserSchema, 'GET', '/user', { signal });
    const [found] = commentsAbout(await this.#read(number, '', MAX_COMMENTS, login, signal), topic);
    return found === undefined ? undefined : withoutOwner(found);
  }

  async mayWrite(user: string, signal: AbortSignal): Promise<boolean | undefined> {
    const path = `${this.#path}/collaborators/${encodeURIComponent(user)}/permission`;
    try {
      const { permission } = await this.#http.json(permissionSchema, 'GET', path, { signal });
      return WRITES.includes(permission);
    } catch (error) {
      if (isSluiceError(error, 'NotFound')) return false;
      // Gitea reports it only to administrators of the repository.
      if (isSluiceError(error, 'Refused')) return undefined;
      throw error;
    }
  }

  /** Comments in the order of writing. */
  async #read(
    number: number,
    query: string,
    limit: number,
    own: string | undefined,
    signal: AbortSignal,
  ): Promise<readonly HostComment[]> {
    const path = `${this.#path}/issues/${number}`;
    try {
      const all = await this.#http.json(commentsSchema, 'GET', `${path}/comments?${query}`, { signal });
      return all.slice(0, limit).map((comment) => commentOf(comment, own));
    } catch (error) {
      // Gitea has no better status for a pull request that does not exist.
      if (isSluiceError(error, 'Unavailable') && (error.details as ForgeErrorDetails | undefined)?.status === 500)
        await this.#http.json(pullSchema, 'GET', `${this.#path}/pulls/${number}`, { signal });
      if (!isSluiceError(error, 'LimitExceeded')) throw error;
    }
    // This list has no pages, and one too long comment must not hide the others. The pages of the conversation have other entries too.
    const found = new Map<string, HostComment>();
    const pages = readPages({ size: PAGE, end: 'empty page' }, (page, size) =>
      this.#http.json(conversationSchema, 'GET', `${path}/timeline?${query}&page=${page}&limit=${size}`, { signal }),
    );
    for await (const entry of pages) {
      if (found.size >= limit) break;
      const read = entry.type === 'comment' ? commentSchema.safeParse(entry).data : undefined;
      if (read === undefined) continue;
      const comment = commentOf(read, own);
      found.set(comment.id, comment);
    }
    return [...found.values()];
  }
}

function commentOf(comment: GiteaComment, own: string | undefined): HostComment {
  const { id, user, body, html_url: url, created_at: createdAt, updated_at: updatedAt } = comment;
  // What was imported from another host is none of the user who imported it.
  const author = (comment.original_author ?? '') === '' ? (user?.login ?? '') : '';
  return {
    ...{ id: String(id), author, body: commentText(body), url: cleanAddress(url) },
    ...{ createdAt, updatedAt, isOwn: own !== undefined && author === own },
  };
}
