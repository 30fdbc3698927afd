import { z } from 'zod';
import { comparableAddress } from '../../../git/open/repository-address.ts';

/** What an authenticated message of GitHub is about, besides pushes. All but `written` is a hint: it decides only what is read again. */
export interface HostEvent {
  /** Address of the page of the repository. */
  readonly repository: string | undefined;
  /** Address of the page of the owner, for events of an installation of an App, which are about any of its repositories. */
  readonly owner: string | undefined;
  /** What the repository's pull requests have to be read for, besides what has changed. */
  readonly hint: ReviewHint | undefined;
  /** The pull request that it is about, or whose reviews or comments. */
  readonly pull: ReportedPull | undefined;
  /** A comment in a conversation that its sender has just written. Other than the rest, it is a fact of the host that cannot be read there later. */
  readonly written: WrittenComment | undefined;
  /** The branch that was pushed to, and the files that the message lists as changed, of which hosts leave some out. */
  readonly push: ReportedPush | undefined;
  /** The commit of a check that has ended, which may be what a merge waits for. */
  readonly checked: string | undefined;
  /** It reports a check and requests nothing: there is nothing to read. */
  readonly isCheckReport: boolean;
  /** The same of a check that Sluice has set. */
  readonly isOwnCheck: boolean;
}

/** A pull request as a message shows it. */
interface ReportedPull {
  readonly number: number;
  /** A review, or a comment: the pull request may be the same as before. */
  readonly isReview: boolean;
  readonly isComment: boolean;
  /** RFC 3339. */
  readonly updatedAt?: string | undefined;
  readonly state?: string | undefined;
  /** Undefined for the head of a fork. */
  readonly head?: { readonly branch: string; readonly commit: string } | undefined;
}

interface ReportedPush {
  /** Name of the branch, without `refs/heads/`. */
  readonly branch: string;
  /** From the root of the repository. */
  readonly paths: readonly string[];
}

interface WrittenComment {
  readonly id: string;
  /** Login. */
  readonly author: string;
  readonly body: string;
}

/** A user has requested the checks of a commit again; or a merge queue waits for the checks of one. */
type ReviewHint = { readonly rerun: string } | 'merge-queue';

const page = z.url({ protocol: /^https?$/ }).max(1024);
const oid = z.string().regex(/^(?:[0-9a-f]{40}|[0-9a-f]{64})$/);
const about = z.object({ repository: z.object({ html_url: page }) });
const ofInstallation = z.object({ installation: z.object({ account: z.object({ html_url: page }) }) });
const action = z.enum(['rerequested', 'requested_action']);
const rerun = z.union([
  z.object({ action, check_run: z.object({ head_sha: oid }) }).transform(({ check_run: run }) => run.head_sha),
  z.object({ action, check_suite: z.object({ head_sha: oid }) }).transform(({ check_suite: suite }) => suite.head_sha),
]);
const number = z.int().positive();
const text = z.string().max(1024);
const isPresent = (value: unknown) => value !== undefined && value !== null;
const repo = z.object({ id: z.int() });
const pullRequest = z.union([
  // Gitea has a review in each message, which is null where there is none.
  z
    .object({
      pull_request: z.object({
        number,
        updated_at: text.optional().catch(undefined),
        state: text.optional().catch(undefined),
        head: z
          .object({ ref: text, label: text.optional().catch(undefined), sha: oid, repo: repo.nullish() })
          .optional()
          .catch(undefined),
        base: z.object({ repo }).optional().catch(undefined),
      }),
      review: z.unknown().optional(),
      comment: z.unknown().optional(),
    })
    .transform(({ pull_request: { number: of, updated_at: updatedAt, state, head, base }, review, comment }) => ({
      ...{ number: of, updatedAt, state, isReview: isPresent(review), isComment: isPresent(comment) },
      head:
        head?.repo?.id === undefined || head.repo.id !== base?.repo.id
          ? undefined
          : { branch: isRemoved(head.ref) ? (head.label ?? head.ref) : head.ref, commit: head.sha },
    })),
  // A comment in the conversation of a pull request: GitHub marks its issue, Gitea and Forgejo the message.
  z
    .union([
      z.object({ comment: z.object({}), issue: z.object({ number, pull_request: z.object({}) }) }),
      z.object({ comment: z.object({}), issue: z.object({ number }), is_pull: z.literal(true) }),
    ])
    .transform(({ issue }) => ({ number: issue.number, isReview: false, isComment: true })),
]);
/** In the place of a branch that was removed Gitea and Forgejo have this ref; only the label has its name. */
const isRemoved = (ref: string) => /^refs\/pull\/\d+\/head$/.test(ref);
const status = z.object({ sha: oid, context: z.string(), state: z.string() });
const check = z.union([z.object({ check_run: z.object({}) }), z.object({ check_suite: z.object({}) }), status]);
const own = z.string().startsWith('sluice/');
const ownCheck = z.union([z.object({ check_run: z.object({ name: own }) }), status.extend({ context: own })]);
const completed = z.literal('completed');
const checked = z.union([
  z.object({ action: completed, check_run: z.object({ head_sha: oid }) }).transform(({ check_run: of }) => of.head_sha),
  z
    .object({ action: completed, check_suite: z.object({ head_sha: oid }) })
    .transform(({ check_suite: of }) => of.head_sha),
  status.refine(({ state }) => state !== 'pending').transform(({ sha }) => sha),
]);
const paths = z.array(z.string()).nullish().catch(undefined);
const push = z
  .object({
    ref: z.string().max(1024).startsWith('refs/heads/'),
    after: oid,
    commits: z
      .array(z.object({ added: paths, modified: paths, removed: paths }))
      .nullish()
      .catch(undefined),
  })
  .transform(({ ref, commits }) => ({
    branch: ref.slice('refs/heads/'.length),
    paths: (commits ?? []).flatMap(({ added, modified, removed }) =>
      [added, modified, removed].flatMap((of) => of ?? []),
    ),
  }));
const queue = z.object({ action: z.literal('checks_requested'), merge_group: z.object({ head_sha: oid }) });

const user = z.object({ login: text });
const written = z
  .object({
    action: z.literal('created'),
    // Those on lines of files and of reviews are no comments of the conversation.
    issue: z.object({ number }),
    comment: z.object({ id: z.int().positive(), user, body: z.string(), original_author: z.literal('').optional() }),
    sender: user,
  })
  .refine(({ comment, sender }) => comment.user.login === sender.login)
  .transform(({ comment: { id, user: author, body } }) => ({ id: String(id), author: author.login, body }));

/** Reads a message by its content: the header with the name of the event is not signed. Undefined for what is no JSON. */
export function hostEventIn(body: Buffer | undefined): HostEvent | undefined {
  let value: unknown;
  try {
    value = JSON.parse(body?.toString('utf8') ?? '');
  } catch {
    return undefined;
  }
  const repository = about.safeParse(value).data?.repository.html_url;
  const commit = rerun.safeParse(value).data;
  return {
    repository,
    owner: repository === undefined ? ofInstallation.safeParse(value).data?.installation.account.html_url : undefined,
    hint: commit !== undefined ? { rerun: commit } : queue.safeParse(value).success ? 'merge-queue' : undefined,
    pull: pullRequest.safeParse(value).data,
    written: written.safeParse(value).data,
    push: push.safeParse(value).data,
    checked: checked.safeParse(value).data,
    isCheckReport: commit === undefined && check.safeParse(value).success,
    isOwnCheck: commit === undefined && ownCheck.safeParse(value).success,
  };
}

/** Where the repository with an address is, as `placeOf` names it and its owner: host and path, whatever the protocol. Empty for one on no host. */
export function placesAt(address: string): readonly string[] {
  const url = URL.parse(comparableAddress(address));
  if (url === null || url.hostname === '') return [];
  const { hostname, pathname } = url;
  return [`${hostname}${pathname}`, `${hostname}${pathname.slice(0, pathname.lastIndexOf('/'))}/*`];
}

/** What a message is about: a repository, or all of an owner; undefined for neither. It is never one of another host or owner. */
export function placeOf({ repository, owner }: Pick<HostEvent, 'repository' | 'owner'>): string | undefined {
  const [place] = placesAt(repository ?? owner ?? '');
  return place === undefined || repository !== undefined ? place : `${place}/*`;
}
