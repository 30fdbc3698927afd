import { z } from 'zod';
import type { Oid } from '../../git/git-repository.ts';
import { type EngineReport, problemReport, type SyncAttempt, state } from './engine-report.ts';
import { engineText } from './engine-values.ts';

const MAX_NAMED = 3;

const text = z.string().nullish().catch(undefined);
/** GitHub names the state of a status `state`, Gitea and Forgejo name it `status`. */
const entry = z.object({ context: z.string(), state: text, status: text, description: text });
const combined = z.object({ statuses: z.array(z.unknown()).nullish() });

/** The statuses in a response; none if it is of another form. */
export function statusesIn(document: unknown): readonly unknown[] {
  return combined.safeParse(document).data?.statuses ?? [];
}

export type CommitVerdict = 'success' | 'pending' | 'failure';

/** The statuses of one commit about one target or package. */
export interface CommitStatuses {
  readonly commit: Oid;
  readonly verdict: CommitVerdict;
  readonly message: string;
}

/** True if a context matches a pattern, in which `*` stands for any characters. Linear in both. */
export function matchesContext(pattern: string, context: string): boolean {
  const parts = pattern.split('*');
  const [first = '', ...rest] = parts;
  if (rest.length === 0) return pattern === context;
  const last = rest.pop() ?? '';
  if (!context.startsWith(first)) return false;
  let position = first.length;
  for (const part of rest) {
    const found = context.indexOf(part, position);
    if (found < 0) return false;
    position = found + part.length;
  }
  return context.length - last.length >= position && context.endsWith(last);
}

/** The path of the package that a context names; undefined if it does not match. */
export function packageInContext(pattern: string, context: string): string | undefined {
  const [before = '', after = ''] = pattern.split('{package}');
  if (context.length <= before.length + after.length) return undefined;
  if (!context.startsWith(before) || !context.endsWith(after)) return undefined;
  return context.slice(before.length, context.length - after.length);
}

/** Which contexts count. */
export interface StatusContexts {
  readonly target: string;
  /** Those of single packages, in which `{package}` stands for the path of the package. They do not count for the target. */
  readonly package?: string | undefined;
}

/** The statuses of one commit that count. */
export interface InterpretedStatuses {
  readonly target: CommitStatuses | undefined;
  /** By the path of the package. */
  readonly packages: ReadonlyMap<string, CommitStatuses>;
}

/**
 * Interprets the statuses in responses of `GET /repos/{owner}/{repository}/commits/{sha}/status` of GitHub, Gitea or Forgejo. All contexts
 * about the same must have succeeded. A value that is no such status does not count.
 */
export function interpretCommitStatuses(
  values: readonly unknown[],
  commit: Oid,
  contexts: StatusContexts,
): InterpretedStatuses {
  const target: Entry[] = [];
  const packages = new Map<string, Entry[]>();
  for (const value of values) {
    const { data } = entry.safeParse(value);
    if (data === undefined) continue;
    const { context, description } = data;
    const one: Entry = { context, description, verdict: verdictOf(data.state ?? data.status) };
    const name = contexts.package === undefined ? undefined : packageInContext(contexts.package, context);
    if (name !== undefined) packages.set(name, [...(packages.get(name) ?? []), one]);
    else if (matchesContext(contexts.target, context)) target.push(one);
  }
  return {
    target: verdictOn(commit, target),
    packages: new Map(
      [...packages].flatMap(([name, list]) => {
        const verdict = verdictOn(commit, list);
        return verdict === undefined ? [] : [[name, verdict] as const];
      }),
    ),
  };
}

interface Entry {
  readonly context: string;
  readonly description: string | null | undefined;
  readonly verdict: CommitVerdict;
}

function verdictOn(commit: Oid, matching: readonly Entry[]): CommitStatuses | undefined {
  const verdict = (['failure', 'pending', 'success'] as const).find((wanted) =>
    matching.some((one) => one.verdict === wanted),
  );
  if (verdict === undefined) return undefined;
  const named = matching.filter((one) => one.verdict === verdict).slice(0, MAX_NAMED);
  const message = named
    .map(({ context, description }) => `${context}${description ? `: ${description}` : ''}`)
    .join('; ');
  return { commit, verdict, message: engineText(message) };
}

/** GitHub knows error, failure, pending and success; Gitea also warning. */
function verdictOf(word: string | null | undefined): CommitVerdict {
  if (word === 'success' || word === 'warning') return 'success';
  return word === 'failure' || word === 'error' ? 'failure' : 'pending';
}

/**
 * The report of the statuses of several commits of a branch, the newest commit first: the newest with a status is the last attempt, the
 * newest success what is applied.
 */
export function commitStatusReport(object: string, path: string, commits: readonly CommitStatuses[]): EngineReport {
  const [newest] = commits;
  if (newest === undefined) {
    const why = 'no commit status with a context that matches spec.engine.context';
    return problemReport(object, path, state('Unknown', 'NotReported', why));
  }
  const { commit, verdict, message } = newest;
  const outcome = ({ success: 'Applied', pending: 'Syncing', failure: 'Failed' } as const)[verdict];
  const attempt: SyncAttempt = { commit, outcome, message };
  const healthy = {
    success: state('True', 'Healthy', message),
    pending: state('Unknown', 'Progressing', message),
    failure: state('False', 'Degraded', message),
  }[verdict];
  const applied = commits.find((one) => one.verdict === 'success')?.commit;
  return { object, path, applied, attempt, healthy, isWorking: verdict === 'pending' };
}
