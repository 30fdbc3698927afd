import type { z } from 'zod';
import { counted } from '../../../src/foundation/text/counted.ts';
import type { ReviewPolicy } from '../../../src/package/model/policy/review-policy.ts';
import type { Explanation, GateExplanation } from '../../../src/package/model/revision/explanation.ts';
import type { diffSchema } from '../../../src/package/model/revision/revision-readings.ts';
import type { BlockingRule } from '../../../src/package/model/revision/revision-state.ts';
import type { DeepReadonly } from '../../../src/resource/object/object.ts';
import { UNDELIVERABLE } from '../../revision/resolvers/deliverable/deliverability.ts';
import { USAGE } from '../commands/parse-command.ts';
import {
  ALL_MAY,
  countedApprovers,
  type MappedRights,
  namedOnHost,
  withoutRightText,
} from '../reviews/mapped-rights.ts';
import { rulesTable } from './describe-rules.ts';
import { codeBlock, inlineCode, plainLine } from './quote.ts';
import { refusalIn } from './refusal.ts';
import type { RenderedChanges } from './resource-changes.ts';

export type PackageDiff = DeepReadonly<z.infer<typeof diffSchema>>;

export interface Proposal {
  readonly explanation: Explanation;
  /** Undefined where its files, or those that they are compared with, cannot be read. */
  readonly diff: PackageDiff | undefined;
  /** The same by resource; undefined where what it is compared with cannot be read any more. */
  readonly rendered?: RenderedChanges | undefined;
  readonly review: ReviewPolicy;
  /** Of the users whom the policy maps, who may approve it. Default: all. */
  readonly rights?: MappedRights | undefined;
  /** What keeps it from being published now, besides gates. */
  readonly rules: readonly BlockingRule[];
  /** How many approvals its merge has, and who has to merge; undefined if that is nothing special. */
  readonly progress?: string | undefined;
  /** Approving reviews that do not count, with the reasons. */
  readonly uncounted?: string | undefined;
  /** Which reviews approve it, and for what it waits. */
  readonly approved?: string | undefined;
  /** Where the package was copied from; undefined if it was not. */
  readonly upstream: string | undefined;
}

/** Hosts limit bodies to 64 kB; the rest is for users. */
const MAX_DIFF_CHARACTERS = 40_000;
/** Of them, for what is no resource. */
const MAX_OTHER_CHARACTERS = 10_000;
const MAX_FILE_CHARACTERS = 10_000;
const MAX_FILES = 100;
const MAX_REFUSAL_CHARACTERS = 2000;
const MAX_REVIEWS_CHARACTERS = 1000;
const MAX_GATES = 100;
const MAX_TABLE_CHARACTERS = 12_000;

/** As these hosts do not report which comments were edited. */
const NEEDS_WEBHOOK =
  'Those but `why` and `rerun` are refused unless the webhook for comments is set up for this repository; without it, review or close this pull request, or use `sluice rpkg condition set`.';

const NOT_COMPARED =
  'What it changes is not shown, since its files, or those of the revision that they are compared with, cannot be read.';

/** What reviewers have to know of a proposal, in Markdown: who proposed it, its gates, what publishes it, and its changes. */
export function describeProposal(proposal: Proposal): string {
  const { explanation, review } = proposal;
  return [
    ...about(proposal),
    gateTable(explanation.gates),
    ...blockedBy(proposal),
    ...reviewed(proposal),
    publication(proposal),
    ...commands(review),
    ...changed(proposal, MAX_DIFF_CHARACTERS),
  ].join('\n\n');
}

/** The part of one package in the section of a batch, of about this length: what is specific to it. */
export function describeMember(proposal: Proposal, maxCharacters: number): string {
  const { name, gates } = proposal.explanation;
  const table = gateTable(gates, maxCharacters / 2);
  const head = [
    ...[`### ${inlineCode(name)}`, ...about(proposal), table],
    ...[...blockedBy(proposal, maxCharacters / 4), ...reviewed(proposal), ...approvalRules(proposal)],
  ].join('\n\n');
  return [head, ...changed(proposal, Math.max(0, maxCharacters - head.length))].join('\n\n');
}

function about({ explanation, upstream, review }: Proposal): readonly string[] {
  const { name, last } = explanation;
  const refusal = refusalIn(explanation.reasons);
  const unpublished = review.publishOn === 'merge' ? ' A merge now would publish nothing.' : '';
  const by =
    last === undefined ? '' : ` Last change: ${inlineCode(last.action)} by ${inlineCode(last.by)} at ${last.at}.`;
  const from = upstream === undefined ? '' : ` Upstream: ${inlineCode(upstream)}.`;
  return [
    `Package revision ${inlineCode(name)}.${by}${from}`,
    ...(refusal === undefined
      ? []
      : [`**${refusal.heading}:** ${inlineCode(refusal.message, MAX_REFUSAL_CHARACTERS)}${unpublished}`]),
    ...explanation.reasons
      .filter(({ reason }) => reason === UNDELIVERABLE)
      .map(({ message }) => `**Delivery:** ${inlineCode(message, MAX_REFUSAL_CHARACTERS)}`),
  ];
}

function changed({ diff, rendered }: Proposal, most: number): readonly string[] {
  if (diff === undefined) return [NOT_COMPARED];
  return rendered === undefined ? [changes(diff, most)] : renderedParts(diff.from, rendered, most);
}

/** The commands that the policy permits in comments, and `about` them; none where it lists no users. */
export function commands({ approvers, publishOn, forge }: ReviewPolicy, about = ''): readonly string[] {
  if (approvers.length === 0) return [];
  const decides = (line: string) => /^\/sluice (approve|set)\b/.test(line);
  const lines = USAGE.filter((line) => publishOn !== 'approval' || !decides(line)).map((line) => `\`${line}\``);
  const proof = forge.provider === 'github' ? '' : ` ${NEEDS_WEBHOOK}`;
  return [
    `Commands, in the first line of a comment by a user whom the policy lists: ${lines.join(', ')}.${about}${proof}`,
  ];
}

/** What the section says once the proposal has ended. */
export function describeEnd(
  { name, lifecycle }: { readonly name: string; readonly lifecycle: string },
  reason: string,
): string {
  return `Package revision ${inlineCode(name)} is ${lifecycle} now. ${reason}`.trimEnd();
}

/** Whether the text of a section is that of a proposal that has ended, in a certain state if one is given. */
export function isEnd(text: string, lifecycle?: string): boolean {
  const found = /^Package revision `[^`\n]+` is (\w+) now\./.exec(text)?.[1];
  return found !== undefined && (lifecycle === undefined || found === lifecycle);
}

type GateRow = Pick<GateExplanation, 'type' | 'open' | 'state' | 'since' | 'settledBy' | 'explanation'>;

/** The gates as a table in Markdown. */
export function gateTable(gates: readonly GateRow[], maxCharacters = MAX_TABLE_CHARACTERS): string {
  if (gates.length === 0) return 'It has no gates.';
  let left = maxCharacters;
  const rows: string[] = [];
  for (const { type, open, state, since, settledBy, explanation } of gates.slice(0, MAX_GATES)) {
    const cells = [
      ...[inlineCode(type), open ? 'Open' : `**${plainLine(state)}**`, since ?? ''],
      ...[open ? '' : inlineCode(settledBy), open ? '' : inlineCode(explanation)],
    ];
    const row = `| ${cells.join(' | ')} |`;
    left -= row.length;
    if (left < 0) break;
    rows.push(row);
  }
  const hidden = gates.length - rows.length;
  const more = hidden > 0 ? [`\n${hidden} more gates are not listed.`] : [];
  return ['| Gate | State | Since | Settled by | Explanation |', '|---|---|---|---|---|', ...rows, ...more].join('\n');
}

/** The rules that keep it from being published now. */
function blockedBy({ rules, review }: Proposal, maxCharacters?: number): readonly string[] {
  if (rules.length === 0) return [];
  // Users may be ahead of the wave of a plan.
  const isBypass = review.publishOn === 'merge' && rules.some(({ rule }) => rule !== 'Wave');
  const isLost = rules.some(({ rule }) => rule === 'RecordLost' || rule === 'PublishedSince');
  const bypass = isBypass ? `, so that a merge now would ${isLost ? 'publish nothing' : 'be out of band'}` : '';
  const isOfHost = rules.every(({ rule }) => rule === 'ForeignFiles' || rule === 'PublishedSince');
  const what = isOfHost ? 'The Git host must not merge it as it is' : 'Rules keep it from being published';
  return [`**${what}${bypass}:**`, rulesTable(rules, maxCharacters)];
}

/** What its reviews have brought so far, and whose bring nothing. */
function reviewed({ progress, uncounted, approved, review, rights = ALL_MAY }: Proposal): readonly string[] {
  // A rule reports it where none may.
  const without = rights.isNone ? undefined : withoutRightText(review, rights);
  return [
    ...(without === undefined
      ? []
      : [`**Users who may not approve:** ${inlineCode(without, MAX_REVIEWS_CHARACTERS)}.`]),
    ...(progress === undefined ? [] : [`**By its reviews:** ${inlineCode(progress, MAX_REVIEWS_CHARACTERS)}.`]),
    ...(approved === undefined ? [] : [`**Approved:** ${inlineCode(approved, MAX_REVIEWS_CHARACTERS)}.`]),
    ...(uncounted === undefined
      ? []
      : [`**Reviews that do not count:** ${inlineCode(uncounted, MAX_REVIEWS_CHARACTERS)}.`]),
  ];
}

/** How many approvals it needs, and who may not approve. */
function approvalRules({ explanation: { approvals }, review }: Proposal): readonly string[] {
  const barred = (approvals?.barred ?? [])
    .map(({ name }) => inlineCode(namedOnHost(name, review.approvers)))
    .join(', ');
  return [
    ...(approvals === undefined || approvals.needed < 2 ? [] : [`It needs ${approvals.needed} approvals.`]),
    ...(barred === '' ? [] : [`These users may not approve it: ${barred}.`]),
  ];
}

/** Whose reviews count where the merge publishes. */
export function approvalsOfMerge({ approvers }: Pick<ReviewPolicy, 'approvers'>): string {
  const users = approvers.map(({ user }) => inlineCode(user)).join(', ');
  return users === ''
    ? ''
    : ` The merge and approving reviews of these users count as approvals: ${users}. Approve by a review before you schedule a merge (auto-merge), which approves nothing that changes later.`;
}

function publication(proposal: Proposal): string {
  const { explanation, review, rights = ALL_MAY } = proposal;
  const { publishOn, approvers: mapped } = review;
  const { name, approvals } = explanation;
  const barred = new Set(approvals?.barred.map((one) => one.name));
  const approvers = countedApprovers(mapped, rights).filter(({ subject }) => !barred.has(subject));
  const users = approvers.map(({ user }) => inlineCode(user)).join(', ');
  const sentences = [
    publishOn === 'merge'
      ? `A merge publishes it, if all gates are open and its approvals suffice; otherwise what is merged is out of band, and is not delivered.${approvalsOfMerge({ approvers })}`
      : publishOn === 'approval'
        ? `To publish it: ${inlineCode(`sluice rpkg approve ${name}`)}.`
        : users === ''
          ? `No review publishes it, since the policy lists no approvers${mapped.length === 0 ? '' : ' who may approve it'}.`
          : `An approving review publishes it once all gates are open. Reviews of these users count: ${users}.`,
    ...approvalRules(proposal),
    `Closing this pull request rejects the proposal.${publishOn === 'merge' ? '' : ' A merge here does not publish it.'}`,
  ];
  return sentences.join(' ');
}

/** The changes by resource, and what is none of them, collapsed and bounded. */
export function renderedParts(
  from: string | undefined,
  { resources, files }: RenderedChanges,
  most: number,
): readonly string[] {
  const of = from === undefined ? {} : { from };
  const ofFiles = Math.min(MAX_OTHER_CHARACTERS, most / 4);
  return [
    changes({ ...of, ...resources }, most - ofFiles, 'resource'),
    ...(files.files.length === 0 ? [] : [changes({ ...of, ...files }, ofFiles)]),
  ];
}

/** The changes of a package, collapsed and bounded. */
function changes(
  { from, files, truncated, omittedFiles = 0 }: Omit<PackageDiff, 'to'>,
  maxCharacters = MAX_DIFF_CHARACTERS,
  noun: 'file' | 'resource' = 'file',
): string {
  const against = from === undefined ? '' : ` from ${inlineCode(from)}`;
  if (files.length === 0) return `No ${noun} differs${against}.`;
  const parts: string[] = [];
  let left = maxCharacters;
  for (const { path, change, patch } of files.slice(0, MAX_FILES)) {
    const what = `${change} ${inlineCode(path)}`;
    const whole = `${what}\n\n${codeBlock(patch, 'diff')}`;
    const isShown = patch !== '' && whole.length <= Math.min(left, MAX_FILE_CHARACTERS);
    const part = isShown ? whole : `${what} (too large to be shown)`;
    left -= part.length;
    if (left < 0) break;
    parts.push(part);
  }
  const hidden = files.length + omittedFiles - parts.length;
  if (hidden > 0) parts.push(`${hidden} more ${noun}s are not listed.`);
  const isWhole = truncated !== true && hidden === 0;
  const title = `${counted(files.length + omittedFiles, noun)} changed${isWhole ? '' : ', shown in part'}`;
  return `<details><summary>${title}</summary>\n\nChanges${against}:\n\n${parts.join('\n\n')}\n\n</details>`;
}
