import { z } from 'zod';
import type { Oid } from '../../git/git-repository.ts';
import { type EngineReport, problemReport, type SyncAttempt, state } from './engine-report.ts';
import { engineText } from './engine-values.ts';

const MAX_NAMED = 3;

const text = z.string().nullish().catch(undefined);
/** GitHub names the state of a status `state`, Gitea and Forgejo name it `status`. */
const entry = z.object({ context: z.string(), state: text, status: text, description: text });
const combined = z.object({ statuses: z.array(z.unknown()).nullish() });

export type CommitVerdict = 'success' | 'pending' | 'failure';

/** The statuses of one commit whose context matches. */
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

/**
 * Interprets the response of `GET /repos/{owner}/{repository}/commits/{sha}/status` of GitHub, Gitea or Forgejo. All contexts that match
 * must have succeeded. Undefined if none matches, or the value is no such response.
 */
export function interpretCommitStatuses(value: unknown, commit: Oid, pattern: string): CommitStatuses | undefined {
  const { data } = combined.safeParse(value);
  const matching = (data?.statuses ?? [])
    .flatMap((one) => entry.safeParse(one).data ?? [])
    .filter(({ context }) => matchesContext(pattern, context))
    .map(({ context, description, ...one }) => ({ context, description, verdict: verdictOf(one.state ?? one.status) }));
  if (matching.length === 0) return undefined;
  const verdict = (['failure', 'pending', 'success'] as const).find((wanted) =>
    matching.some((one) => one.verdict === wanted),
  ) as CommitVerdict;
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
