import { isOid } from '../../../src/git/objects/object-id.ts';
import { awaitMerge, untilNextAttempt } from '../../pull-request/merged/awaited-merge.ts';
import type { UserPulls } from '../reading/user-pulls.ts';
import { MAX_HELD_MS, type MergedUserPull } from './merged-user-pull.ts';
import { type ReportContext, reportMissing } from './report-user-merge.ts';

/** Until overdue merges are looked for again, at first. */
const FIRST_LOOK_MS = 10_000;
/** Merges whose commits do not arrive that are kept, the last ones. */
const MAX_OVERDUE = 500;

/** Merges that have waited for their commits too long to hold up others: the main branch may have been rewritten, or be another one. */
export interface Overdue {
  readonly all: ReadonlySet<MergedUserPull>;
  /** Those to look for on the main branch, which can take a walk along its history: their commits were fetched. */
  readonly found: ReadonlySet<MergedUserPull>;
  /** Commits that were fetched. */
  readonly of: string;
}

export async function findOverdue(context: ReportContext, pulls: UserPulls): Promise<Overdue> {
  const nowMs = context.clock.monotonic();
  const all = pulls.merged().filter(({ waitsSince = nowMs }) => nowMs - waitsSince > MAX_HELD_MS);
  const commitOf = ({ pull }: MergedUserPull) => pull.merged?.commit ?? '';
  const stats = await context.repository.git.statObjects(all.map(commitOf).filter(isOid));
  const present = new Set(stats.flatMap((stat) => stat?.oid ?? []));
  const of = [...present].join();
  const arrived = all.filter((one) => present.has(commitOf(one)));
  for (const one of all) if (!arrived.includes(one)) reportMissing(context, one);
  const found = untilNextAttempt(pulls.overdue, of, nowMs) > 0 ? [] : arrived;
  return { all: new Set(all), found: new Set(found), of };
}

export function noteOverdue({ clock }: ReportContext, pulls: UserPulls, { all, found, of }: Overdue): void {
  const left = pulls.merged().filter((one) => all.has(one));
  if (left.length === 0) delete pulls.overdue;
  else if (left.some((one) => found.has(one)))
    pulls.overdue = awaitMerge(pulls.overdue, of, { firstMs: FIRST_LOOK_MS, nowMs: clock.monotonic() });
  for (const { pull } of left.slice(0, -MAX_OVERDUE)) pulls.settle(pull);
}
