import type { Check } from '../forge.ts';
import { shorten } from '../shorten.ts';
import type { GitHubClient } from './github-client.ts';
import {
  anySchema,
  type CheckRun,
  type CommitStatus,
  checkRunsSchema,
  combinedStatusSchema,
} from './github-schemas.ts';

const PAGE = 100;
/** What is on further pages does not count. */
const MAX_PAGES = 10;
const MAX_STATUS_CHARACTERS = 140;
const MAX_TITLE_CHARACTERS = 255;

interface Commit {
  readonly owner: string;
  readonly repo: string;
  readonly commit: string;
}

/** Sets checks as check runs, which only an App may. One that has ended cannot begin again: then there is a new one of the same name. */
export async function setCheckRuns(
  client: GitHubClient,
  app: number,
  { commit, ...repository }: Commit,
  checks: readonly Check[],
  signal: AbortSignal,
): Promise<void> {
  const present = new Map<string, CheckRun>();
  for (let page = 1; page <= MAX_PAGES; page += 1) {
    const { check_runs: runs } = await client.call(checkRunsSchema, signal, (rest, options) =>
      rest.checks.listForRef({
        ...{ ...repository, ref: commit, filter: 'latest', app_id: app, per_page: PAGE, page },
        ...options,
      }),
    );
    // The newest are first. Another App may have a check of the same name.
    for (const run of runs) if (run.app?.id === app && !present.has(run.name)) present.set(run.name, run);
    if (runs.length < PAGE || checks.every(({ name }) => present.has(name))) break;
  }
  for (const { name, state, title: text } of checks) {
    const title = shorten(text, MAX_TITLE_CHARACTERS);
    const run = present.get(name);
    const hasEnded = run?.status === 'completed';
    if (run !== undefined && stateOf(run) === state && run.output.title === title) continue;
    const content = {
      ...{ name, output: { title, summary: title } },
      ...(state === 'pending'
        ? { status: 'in_progress' as const }
        : { status: 'completed' as const, conclusion: state }),
    };
    await client.call(anySchema, signal, (rest, options) =>
      run === undefined || (hasEnded && state === 'pending')
        ? rest.checks.create({ ...repository, head_sha: commit, ...content, ...options })
        : rest.checks.update({ ...repository, check_run_id: run.id, ...content, ...options }),
    );
  }
}

/** Sets checks as commit statuses. */
export async function setStatuses(
  client: GitHubClient,
  { commit, ...repository }: Commit,
  checks: readonly Check[],
  signal: AbortSignal,
): Promise<void> {
  const present = new Map<string, CommitStatus>();
  for (let page = 1; page <= MAX_PAGES; page += 1) {
    const { statuses } = await client.call(combinedStatusSchema, signal, (rest, options) =>
      rest.repos.getCombinedStatusForRef({ ...repository, ref: commit, per_page: PAGE, page, ...options }),
    );
    for (const status of statuses) present.set(status.context, status);
    if (statuses.length < PAGE || checks.every(({ name }) => present.has(name))) break;
  }
  for (const { name: context, state, title } of checks) {
    const description = shorten(title, MAX_STATUS_CHARACTERS);
    const set = present.get(context);
    if (set?.state === state && (set.description ?? '') === description) continue;
    await client.call(anySchema, signal, (rest, options) =>
      rest.repos.createCommitStatus({ ...repository, sha: commit, context, state, description, ...options }),
    );
  }
}

function stateOf({ status, conclusion }: CheckRun): Check['state'] | undefined {
  if (status !== 'completed') return 'pending';
  return conclusion === 'success' || conclusion === 'failure' ? conclusion : undefined;
}
