import { readKptfile } from '../../kptfile-schema/index.ts';
import type { Check } from '../../src/forge/forge.ts';
import { counted } from '../../src/foundation/text/counted.ts';
import { findingsBelow } from '../../src/function/lint/finding.ts';
import type { Gate } from '../../src/package/model/gates/gates.ts';
import type { ReviewPolicy } from '../../src/package/model/policy/review-policy.ts';
import type { BlockingRule } from '../../src/package/model/revision/revision-state.ts';
import type { PackageRepository } from '../../src/package/store/package-repository.ts';
import { GATE_CHECKS, READY_CHECK } from '../pull-request/checks/checks.ts';
import { annotationsOf, bySeverity } from '../pull-request/findings/annotations-of.ts';
import { gateTable, renderedParts } from '../pull-request/text/describe-proposal.ts';
import { rulesLine, rulesTable } from '../pull-request/text/describe-rules.ts';
import { inlineCode, plainLine } from '../pull-request/text/quote.ts';
import type { RenderedChanges } from '../pull-request/text/resource-changes.ts';
import type { JudgedPackage } from './judging/judge-package.ts';
import type { RulesAtMerge } from './judging/rules-at-merge.ts';

/** Of a check. */
export const MAX_TITLE_CHARACTERS = 140;
/** Findings of one package in the comment. */
const MAX_SHOWN_FINDINGS = 20;
const MAX_MESSAGE_CHARACTERS = 500;
/** Hosts limit comments to 64 kB. */
const MAX_COMMENT_CHARACTERS = 60_000;
const MAX_DIFF_CHARACTERS = 30_000;

/** A package of a pull request with its judgement; without one it is removed by it. */
export interface PulledPackage {
  /** The one that has it. */
  readonly repository: PackageRepository;
  /** From the root of the Git repository. */
  readonly path: string;
  /** Of its policy. */
  readonly review: ReviewPolicy;
  readonly judged: JudgedPackage | undefined;
  /** Undefined if it is removed. */
  readonly atMerge?: RulesAtMerge | undefined;
  /** Approvals that a merge does not complete. */
  readonly missing?: readonly BlockingRule[];
  /** The rendered package against the main branch, as proposals show it; undefined if a side is removed, or larger than what is read. */
  readonly changes?: RenderedChanges | undefined;
  /** The draft that it was adopted as. */
  readonly draft?: string | undefined;
}

export interface JudgedPull {
  readonly packages: readonly PulledPackage[];
  /** Packages, or a part of the branch, that were not looked at; a sentence for each reason. */
  readonly omitted: readonly string[];
  /** Packages that cannot be judged yet; a sentence for each reason. */
  readonly unread: readonly string[];
  /** Open pull requests with the same head that are not checked yet; a sentence for each. */
  readonly unchecked?: readonly string[];
  /** Functions that are programs or containers were not run. */
  readonly isRestricted: boolean;
  readonly head: string;
  /** The proposal with the same head, or the branch that several of them share. */
  readonly proposal?: string | undefined;
}

type CheckedPull = Pick<JudgedPull, 'packages' | 'omitted' | 'unread' | 'unchecked'>;

/** The checks of the head: one for all packages, and one for each of the gates that a policy of them lists and any package has. */
export function userChecks(pull: CheckedPull): Check[] {
  const listed = new Set(pull.packages.flatMap(({ review }) => review.gateChecks));
  const own = [...listed].sort().flatMap((type): Check[] => {
    const found = gatesOf(pull).filter(({ gate }) => gate.type === type);
    if (found.length === 0) return [];
    const closed = found.filter(({ gate }) => gate.state !== 'Open');
    const [first] = closed;
    const title = first === undefined ? 'the gate is open' : `${first.path}: ${first.gate.explanation}`;
    return [{ name: `${GATE_CHECKS}${type}`, state: stateOf(closed), title: plainLine(title, MAX_TITLE_CHARACTERS) }];
  });
  return [readyCheck(pull), ...own];
}

/** The worst of all packages. Where several Repositories have some of them, its text lists how it is with each. */
function readyCheck(pull: CheckedPull): Check {
  const check = checkOf(pull);
  const parts = partsOf(pull);
  if (parts.length < 2) return check;
  const rows = parts.map(([id, packages]) => {
    const { state, title } = checkOf({ packages, omitted: [], unread: [] });
    return `| ${inlineCode(id)} | ${state === 'success' ? state : `**${state}**`} | ${inlineCode(title)} |`;
  });
  const table = ['| Repository | State | Packages |', '|---|---|---|', ...rows].join('\n');
  return { ...check, text: check.text === undefined ? table : `${table}\n\n${check.text}` };
}

/** The packages of each Repository that has some, by its id. */
function partsOf({ packages }: Pick<JudgedPull, 'packages'>): readonly (readonly [string, readonly PulledPackage[]])[] {
  return [...Map.groupBy(packages, ({ repository }) => repository.id)];
}

function checkOf(pull: CheckedPull): Check {
  const { packages, omitted, unread, unchecked = [] } = pull;
  const findings = packages.flatMap(({ path, judged }) => findingsBelow(path, judged?.findings ?? []));
  const annotations = annotationsOf(findings);
  const errors = findings.filter(({ severity }) => severity === 'error');
  const closed = gatesOf(pull).filter(({ gate, isEnforced }) => isEnforced && gate.state !== 'Open');
  const rules = rulesOf(pull);
  const check = (state: Check['state'], title: string): Check => ({
    ...{ name: READY_CHECK, state, title: plainLine(title, MAX_TITLE_CHARACTERS) },
    ...(rules.length === 0 ? {} : { text: rulesTable(rules) }),
    ...(annotations.length === 0 ? {} : { annotations }),
  });
  const [first] = errors;
  if (first !== undefined)
    return check('failure', `${counted(errors.length, 'error')}: ${first.file}:${first.line}: ${first.message}`);
  const [reason] = omitted;
  if (reason !== undefined) return check('failure', reason);
  const [waits] = [...unread, ...unchecked];
  if (waits !== undefined && stateOf(closed) === 'success') return check('pending', waits);
  if (closed.length > 0) {
    const names = closed.map(({ path, gate: { type } }) => `${type} of ${path}`).join(', ');
    return check(stateOf(closed), `${counted(closed.length, 'gate')} closed: ${names}`);
  }
  // Whether or not the repository enforces its gates, as for proposals.
  if (rules.length > 0) return check('pending', rulesLine(rules));
  if (packages.length === 0) return check('success', 'It changes no package');
  return check('success', `${counted(packages.length, 'package')} checked: no errors, no closed gates`);
}

function gatesOf({ packages }: CheckedPull): { path: string; gate: Gate; isEnforced: boolean }[] {
  return packages.flatMap(({ path, judged }) =>
    (judged?.gates ?? []).map((gate) => ({ path, gate, isEnforced: judged?.enforcement === 'enforce' })),
  );
}

/** Those of all packages. One that holds for several of them in the same words, such as a freeze, is there once. */
function rulesOf({ packages }: CheckedPull): readonly BlockingRule[] {
  const rules = packages.flatMap(({ atMerge, missing = [] }) => [...(atMerge?.rules ?? []), ...missing]);
  return [...new Map(rules.map((rule) => [JSON.stringify(rule), rule])).values()];
}

/** As for proposals: a condition that is False has failed; every other closed gate can still open. */
function stateOf(closed: readonly { readonly gate: Gate }[]): Check['state'] {
  if (closed.length === 0) return 'success';
  return closed.some(({ gate }) => gate.condition?.status === 'False') ? 'failure' : 'pending';
}

/** What users have to know about the packages of a pull request, in Markdown, bounded. */
export function describeUserPull(pull: JudgedPull): string {
  const { packages, omitted, unread, isRestricted, head, proposal } = pull;
  const parts = [`Packages of ${inlineCode(head.slice(0, 12))} as they would be after the merge:`];
  if (omitted.length > 0) parts.push(omitted.map((reason) => `**${inlineCode(reason)}**`).join(' '));
  if (unread.length > 0) parts.push(unread.map((reason) => inlineCode(reason)).join(' '));
  if (proposal !== undefined)
    parts.push(
      `This commit is the head of the proposal ${inlineCode(proposal)} too, and has the checks of that one; push another commit to get checks of its own.`,
    );
  if (isRestricted)
    parts.push(
      'The branch was not pushed to this repository: programs and containers in pipelines are not run, and conditions in Kptfiles do not count.',
    );
  const rules = rulesOf(pull);
  if (rules.length > 0)
    parts.push(`**A rule blocks it, so that a merge now would be out of band:**\n\n${rulesTable(rules)}`);
  let left = MAX_DIFF_CHARACTERS;
  let length = parts.join('').length;
  const isSeveral = partsOf(pull).length > 1;
  for (const [at, one] of packages.entries()) {
    const text = describePackage(one, left, isSeveral);
    if (length + text.length > MAX_COMMENT_CHARACTERS) {
      parts.push(
        `${counted(packages.length - at, 'package')} more are not shown here; the check ${inlineCode(READY_CHECK)} counts them.`,
      );
      break;
    }
    length += text.length;
    left = Math.max(0, left - text.length);
    parts.push(text);
  }
  const adoptable = packages.filter(({ judged }) => judged !== undefined);
  // Each policy has to permit it, so that one without users who may refuses all.
  const mayAdopt = adoptable.every(({ review }) => review.approvers.length > 0);
  if (mayAdopt && adoptable.some(({ draft }) => draft === undefined)) {
    const command = isRestricted ? `/sluice adopt ${head}` : '/sluice adopt';
    parts.push(
      `To let Sluice work on these packages as drafts, users whom the policy maps can comment ${inlineCode(command)}.`,
    );
  }
  return parts.join('\n\n');
}

function describePackage(
  { repository, path, judged, changes, draft }: PulledPackage,
  maxDiffCharacters: number,
  isOfSeveral: boolean,
): string {
  const title = `#### ${inlineCode(path)}${isOfSeveral ? ` of ${inlineCode(repository.id)}` : ''}`;
  if (judged === undefined) return `${title}\n\nThe package is removed.`;
  const { findings, gates, files } = judged;
  const kptfile = files.get('Kptfile');
  const isKnown = gates.length > 0 || (kptfile !== undefined && readKptfile(kptfile).ok);
  const list = findings.toSorted(bySeverity);
  const rows = list.slice(0, MAX_SHOWN_FINDINGS).map(({ file, line, severity, message }) => {
    const place = inlineCode(`${path}/${file}:${line}`);
    return `- **${severity}** ${place}: ${inlineCode(message, MAX_MESSAGE_CHARACTERS)}`;
  });
  if (list.length > MAX_SHOWN_FINDINGS) rows.push(`- ${list.length - MAX_SHOWN_FINDINGS} more are not listed`);
  return [
    title,
    ...(draft === undefined ? [] : [`Adopted as the draft ${inlineCode(draft)}.`]),
    ...(rows.length === 0 ? [] : [rows.join('\n')]),
    isKnown
      ? gateTable(gates.map((gate) => tableRow(gate, draft)))
      : 'Its Kptfile cannot be read, so that its gates are unknown.',
    ...(changes === undefined
      ? ['The package is too large to show what it changes.']
      : renderedParts('the main branch', changes, maxDiffCharacters)),
  ].join('\n\n');
}

function tableRow({ type, state, since, explanation }: Gate, draft: string | undefined) {
  const open = state === 'Open';
  const settledBy = open ? '' : draft === undefined ? 'its draft, once it is adopted' : `its draft ${draft}`;
  return { type, open, state, settledBy, explanation, ...(since === undefined ? {} : { since }) };
}
