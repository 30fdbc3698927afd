import { shorten } from '../../src/foundation/text/shorten.ts';
import { isPublished, type PackageRevision } from '../../src/package/model/revision/package-revision.ts';
import type { PackageVariant } from '../../src/resource/kinds/porch/package-variant.ts';
import { findCondition, type NewCondition } from '../../src/resource/object/condition.ts';
import type { MergeText, MergeTexts } from './merge-texts.ts';

/** A condition and an event about changes of users in places that a merge changed too. */
export interface MergeReport {
  readonly type: 'LocalChangesOverwritten' | 'LocalChangesKept';
  readonly textsIn: (texts: MergeTexts) => readonly MergeText[];
  /** What no open revision has once the one that the condition names is decided. */
  readonly what: string;
}

export const MERGE_REPORTS: readonly MergeReport[] = [
  {
    ...{ type: 'LocalChangesOverwritten', what: 'overwritten changes' },
    textsIn: ({ overwritten }) =>
      overwritten.map(({ commit, text }) => ({ commit, text: `changed on both sides, and overwritten ${text}` })),
  },
  { type: 'LocalChangesKept', what: 'files that both sides changed', textsIn: ({ kept }) => kept },
];

const MAX_MESSAGE_CHARACTERS = 4096;
const COMMIT_CHARACTERS = 12;
const SEPARATOR = '; before that, ';

/** The revision that a variant keeps up to date, and what merges did in it. */
export interface MergeFacts {
  readonly revision: PackageRevision;
  /** It was created now; an earlier one may have had its name. */
  readonly isNew?: true;
  /** None for a published revision. */
  readonly merges: MergeTexts;
}

/** A message for each merge after the last one that the condition reports, the last merge first. */
export function newMessages(variant: PackageVariant, facts: MergeFacts, report: MergeReport): string[] {
  const reported = openReport(variant, facts, report)?.message ?? '';
  const all = report.textsIn(facts.merges).map(({ commit, text }) => {
    const subject = `${facts.revision.name} at ${commit.slice(0, COMMIT_CHARACTERS)}: `;
    return { subject, message: shorten(`${subject}${text}`, MAX_MESSAGE_CHARACTERS) };
  });
  // By the commit: users can lose the same value to several merges.
  const known = all.findIndex(({ subject }) => reported.includes(subject));
  return (known === -1 ? all : all.slice(0, known)).map(({ message }) => message);
}

/** The conditions, each of which stays until the revision that it names is decided; none if it stays or never was. */
export function mergeConditions(variant: PackageVariant, facts: MergeFacts): NewCondition[] {
  return MERGE_REPORTS.flatMap((report): NewCondition[] => {
    const { type, what } = report;
    const before = reportOf(variant.status, report);
    const open = openReport(variant, facts, report);
    const found = newMessages(variant, facts, report);
    if (found.length > 0) {
      const message = [...found, ...(open === undefined ? [] : [open.message])].join(SEPARATOR);
      return [{ type, status: 'True', reason: 'ChangedUpstream', message: shorten(message, MAX_MESSAGE_CHARACTERS) }];
    }
    if (before === undefined || open !== undefined) return [];
    const message = `no open revision has ${what}; ${before.revision} is decided`;
    return [{ type, status: 'False', reason: 'Decided', message }];
  });
}

/** What a condition reports about the revision, unless that is another one or decided. */
function openReport({ status }: PackageVariant, { revision, isNew }: MergeFacts, report: MergeReport) {
  const before = reportOf(status, report);
  return before?.revision === revision.name && isNew !== true && !isPublished(revision) ? before : undefined;
}

interface OpenReport {
  readonly type: MergeReport['type'];
  readonly revision: string;
  readonly message: string;
}

/** What the conditions report that are True. */
export function mergeReportsOf(status: PackageVariant['status']): OpenReport[] {
  return MERGE_REPORTS.flatMap((report) => reportOf(status, report) ?? []);
}

function reportOf(status: PackageVariant['status'], { type }: MergeReport): OpenReport | undefined {
  const { status: value, message = '' } = findCondition(status?.conditions, type) ?? {};
  return value === 'True' ? { type, revision: message.slice(0, message.search(/[ :]/)), message } : undefined;
}
