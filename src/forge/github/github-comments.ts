import { unlessMissing } from '../../foundation/sluice-error.ts';
import { cleanAddress } from '../clean-address.ts';
import {
  commentsAbout,
  commentText,
  type HostComment,
  setTopicComment,
  withoutOwner,
} from '../comments/topic-comment.ts';
import type { Comment } from '../forge.ts';
import { readPages } from '../read-pages.ts';
import { type Account, readAccount } from './github-account.ts';
import type { GitHubClient } from './github-client.ts';
import {
  anySchema,
  commentSchema,
  commentsSchema,
  editedSchema,
  type GitHubComment,
  permissionSchema,
} from './github-schemas.ts';

const PAGE = 100;
/** GitHub permits 2,500 comments. */
const MAX_COMMENTS = 5000;
const EDITED = 'query ($id: ID!) { node(id: $id) { ... on IssueComment { body lastEditedAt } } }';
const WRITES: readonly string[] = ['admin', 'write'];

/** The conversation of pull requests on GitHub, which are issues there. */
export class GitHubComments {
  readonly #client: GitHubClient;
  readonly #repository: { readonly owner: string; readonly repo: string };

  constructor(client: GitHubClient, repository: { readonly owner: string; readonly repo: string }) {
    this.#client = client;
    this.#repository = repository;
  }

  async list(number: number, since: string, limit: number, signal: AbortSignal): Promise<readonly Comment[]> {
    return (await this.#read(number, { since }, limit, () => false, signal)).map(withoutOwner);
  }

  async isAsWritten({ globalId, body }: Comment, signal: AbortSignal): Promise<boolean> {
    if (globalId === undefined) return false;
    const request = { name: 'the query of a comment', query: EDITED, variables: { id: globalId } };
    const { node } = await this.#client.graphql(editedSchema, request, signal, ['NOT_FOUND']);
    return node?.lastEditedAt === null && commentText(node.body) === body;
  }

  async set(number: number, topic: string, text: string, signal: AbortSignal): Promise<Comment> {
    const { isOwn } = await readAccount(this.#client, signal);
    const of = this.#repository;
    const written = (comment: GitHubComment): Comment => withoutOwner(commentOf(comment, isOwn));
    const comments = {
      read: () => this.#read(number, {}, MAX_COMMENTS, isOwn, signal),
      create: async (body: string) =>
        written(
          await this.#client.call(commentSchema, signal, ({ issues }, options) =>
            issues.createComment({ ...of, issue_number: number, body, ...options }),
          ),
        ),
      change: async (id: string, body: string) =>
        written(
          await this.#client.call(commentSchema, signal, ({ issues }, options) =>
            issues.updateComment({ ...of, comment_id: Number(id), body, ...options }),
          ),
        ),
      remove: async (id: string) => {
        const removal = this.#client.call(anySchema, signal, ({ issues }, options) =>
          issues.deleteComment({ ...of, comment_id: Number(id), ...options }),
        );
        await unlessMissing(removal);
      },
    };
    return setTopicComment(comments, topic, text);
  }

  async find(number: number, topic: string, signal: AbortSignal): Promise<Comment | undefined> {
    const { isOwn } = await readAccount(this.#client, signal);
    const [found] = commentsAbout(await this.#read(number, {}, MAX_COMMENTS, isOwn, signal), topic);
    return found === undefined ? undefined : withoutOwner(found);
  }

  async mayWrite(username: string, signal: AbortSignal): Promise<boolean> {
    const read = this.#client.call(permissionSchema, signal, ({ repos }, options) =>
      repos.getCollaboratorPermissionLevel({ ...this.#repository, username, ...options }),
    );
    // A user with the role `maintain` has the permission `write` here.
    return WRITES.includes((await unlessMissing(read))?.permission ?? '');
  }

  async #read(
    number: number,
    filter: { readonly since?: string },
    limit: number,
    isOwn: Account['isOwn'],
    signal: AbortSignal,
  ): Promise<HostComment[]> {
    const issue = { ...this.#repository, issue_number: number, ...filter };
    // An entry comes again where one before it was removed between two pages.
    const found = new Map<string, HostComment>();
    const pages = readPages({ size: PAGE, end: 'short page' }, (page, size) =>
      this.#client.call(commentsSchema, signal, ({ issues }, options) =>
        issues.listComments({ ...issue, per_page: size, page, ...options }),
      ),
    );
    for await (const read of pages) {
      if (found.size >= limit) break;
      const comment = commentOf(read, isOwn);
      found.set(comment.id, comment);
    }
    return [...found.values()];
  }
}

function commentOf(comment: GitHubComment, isOwn: Account['isOwn']): HostComment {
  const { id, user, body, html_url: url, created_at: createdAt, updated_at: updatedAt } = comment;
  return {
    ...{ id: String(id), author: user?.login ?? '', body: commentText(body), url: cleanAddress(url) },
    ...{ globalId: comment.node_id, createdAt, updatedAt, isOwn: isOwn(comment) },
  };
}
