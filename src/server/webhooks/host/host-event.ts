import { z } from 'zod';
import { comparableAddress } from '../../../git/open/repository-address.ts';

/** What an authenticated message of GitHub is about, besides pushes. All of it is a hint: it decides only what is read again. */
export interface HostEvent {
  /** Address of the page of the repository. */
  readonly repository: string | undefined;
  /** Address of the page of the owner, for events of an installation of an App, which are about any of its repositories. */
  readonly owner: string | undefined;
  /** What the repository's pull requests have to be read for, besides what has changed. */
  readonly hint: ReviewHint | undefined;
  /** It is about a pull request, its reviews or its comments. */
  readonly isPullRequest: boolean;
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
const pullRequest = z.union([
  z.object({ pull_request: z.object({ number: z.int() }) }),
  // A comment in the conversation of a pull request: GitHub marks its issue, Gitea and Forgejo the message.
  z.object({ comment: z.object({}), issue: z.object({ pull_request: z.object({}) }) }),
  z.object({ comment: z.object({}), is_pull: z.literal(true) }),
]);
const queue = z.object({ action: z.literal('checks_requested'), merge_group: z.object({ head_sha: oid }) });

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
    isPullRequest: pullRequest.safeParse(value).success,
  };
}

/** Whether a message is about the repository with an address, by its host and path: never a repository of another host or owner. */
export function isAbout({ repository, owner }: HostEvent, address: string): boolean {
  const own = URL.parse(comparableAddress(address));
  const wanted = URL.parse(comparableAddress(repository ?? owner ?? ''));
  if (own === null || wanted === null || own.hostname !== wanted.hostname || wanted.hostname === '') return false;
  if (repository !== undefined) return own.pathname === wanted.pathname;
  return own.pathname.slice(0, own.pathname.lastIndexOf('/')) === wanted.pathname;
}
