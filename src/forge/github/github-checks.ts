import { canonicalJson, digest } from '../../foundation/text/canonical-json.ts';
import { shorten } from '../../foundation/text/shorten.ts';
import { annotationLink } from '../annotation-link.ts';
import { type Annotation, type Check, MAX_ANNOTATIONS, MAX_CHECK_TEXT_CHARACTERS } from '../forge.ts';
import type { GitHubClient } from './github-client.ts';
import {
  anySchema,
  type CheckRun,
  type CommitStatus,
  checkRunSchema,
  checkRunsSchema,
  combinedStatusSchema,
} from './github-schemas.ts';
import { statusText } from './status-text.ts';

const PAGE = 100;
/** What is on further pages does not count. */
const MAX_PAGES = 10;
const MAX_STATUS_CHARACTERS = 140;
const MAX_TITLE_CHARACTERS = 255;
/** Of one request. */
const MAX_REQUEST_ANNOTATIONS = 50;
/** GitHub permits 64 kB. */
const MAX_MESSAGE_CHARACTERS = 4000;

interface Commit {
  readonly owner: string;
  readonly repo: string;
  readonly commit: string;
  /** It has none of the checks yet. */
  readonly isFirst: boolean;
}

/** Sets checks as check runs, which only an App may. One that has ended cannot begin again: then there is a new one of the same name. */
export async function setCheckRuns(
  client: GitHubClient,
  app: number,
  { commit, isFirst, ...repository }: Commit,
  checks: readonly Check[],
  signal: AbortSignal,
): Promise<void> {
  const present = new Map<string, CheckRun>();
  for (let page = 1; page <= MAX_PAGES && !isFirst; page += 1) {
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
  for (const check of checks) {
    const { name, state } = check;
    const title = shorten(check.title, MAX_TITLE_CHARACTERS);
    const text = shorten(check.text ?? '', MAX_CHECK_TEXT_CHARACTERS);
    const run = present.get(name);
    const hasText = plainText(run?.output.text) === plainText(text);
    const remarks = (check.annotations ?? []).slice(0, MAX_ANNOTATIONS).map(runAnnotation);
    // Annotations of a run can be added to, and not be changed.
    const id = remarks.length === 0 ? '' : digest(canonicalJson(remarks));
    const isSame = run !== undefined && (run.external_id ?? '') === id && (id !== '' || !hasAnnotations(run));
    if (isSame && stateOf(run) === state && run.output.title === title && hasText) continue;
    const content = {
      ...{ name, output: { title, summary: summaryOf(title), ...(text === '' && hasText ? {} : { text }) } },
      ...(state === 'pending'
        ? { status: 'in_progress' as const }
        : { status: 'completed' as const, conclusion: state }),
    };
    const isUpdated = run !== undefined && !(run.status === 'completed' && state === 'pending');
    let at = isUpdated && isSame ? remarks.length : 0;
    let runId = isUpdated && (isSame || !hasAnnotations(run)) ? run.id : undefined;
    do {
      const annotations = remarks.slice(at, at + MAX_REQUEST_ANNOTATIONS);
      at += MAX_REQUEST_ANNOTATIONS;
      // The id comes last: without it, the run does not have all of them, and another one takes its place.
      const last = at >= remarks.length && id !== '' ? { external_id: id } : {};
      const body = { ...content, ...last, output: { ...content.output, annotations } };
      const known = runId;
      const written = await client.call(checkRunSchema, signal, (rest, options) =>
        known === undefined
          ? rest.checks.create({ ...repository, head_sha: commit, ...body, ...options })
          : rest.checks.update({ ...repository, check_run_id: known, ...body, ...options }),
      );
      runId = written.id;
    } while (at < remarks.length);
  }
}

function runAnnotation({ path, line, level, title, message }: Annotation) {
  return {
    ...{ path, start_line: line, end_line: line, annotation_level: level },
    title: shorten(title, MAX_TITLE_CHARACTERS),
    message: shorten(message, MAX_MESSAGE_CHARACTERS),
  };
}

/** GitHub shows a title as it is, and a summary as Markdown. The title can have names of files, which strangers choose: it is code there. */
function summaryOf(title: string): string {
  const line = title.replaceAll(/\s+/g, ' ').replaceAll('`', 'ˋ').trim();
  return line === '' ? '' : `\`${line}\``;
}

/** Without what hosts change in texts. */
function plainText(text: string | null | undefined): string {
  return (text ?? '').replaceAll('\r\n', '\n').trim();
}

function hasAnnotations({ external_id: id, output }: CheckRun): boolean {
  return (id ?? '') !== '' || (output.annotations_count ?? 0) > 0;
}

/** Sets checks as commit statuses. */
export async function setStatuses(
  client: GitHubClient,
  { commit, isFirst, ...repository }: Commit,
  checks: readonly Check[],
  signal: AbortSignal,
): Promise<void> {
  const present = new Map<string, CommitStatus>();
  for (let page = 1; page <= MAX_PAGES && !isFirst; page += 1) {
    const { statuses } = await client.call(combinedStatusSchema, signal, (rest, options) =>
      rest.repos.getCombinedStatusForRef({ ...repository, ref: commit, per_page: PAGE, page, ...options }),
    );
    for (const status of statuses) present.set(status.context, status);
    if (statuses.length < PAGE || checks.every(({ name }) => present.has(statusText(name)))) break;
  }
  const files = `${pageOf(client.api)}/${repository.owner}/${repository.repo}/blob/${commit}`;
  for (const check of checks) {
    const { state } = check;
    const context = statusText(check.name);
    const description = shorten(statusText(check.title), MAX_STATUS_CHARACTERS);
    const link = annotationLink(files, check) ?? '';
    const set = present.get(context);
    const isSet = set?.state === state && (set.description ?? '') === description;
    if (isSet && (set.target_url ?? '') === link) continue;
    const status = { context, state, description, ...(link === '' ? {} : { target_url: link }) };
    await client.call(anySchema, signal, (rest, options) =>
      rest.repos.createCommitStatus({ ...repository, sha: commit, ...status, ...options }),
    );
  }
}

/** The address of the pages for users. GitHub's own services have a host of its own for the API. */
function pageOf(api: string): string {
  return api.replace(/^https:\/\/api\.(github\.com|[^./]+\.ghe\.com)$/, 'https://$1').replace(/\/api\/v3$/, '');
}

function stateOf({ status, conclusion }: CheckRun): Check['state'] | undefined {
  if (status !== 'completed') return 'pending';
  return conclusion === 'success' || conclusion === 'failure' ? conclusion : undefined;
}
