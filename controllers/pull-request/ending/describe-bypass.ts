import type { SluiceError } from '../../../src/foundation/sluice-error.ts';
import type { OutOfBand } from '../../../src/package/model/revision/package-revision.ts';
import type { Refusal } from '../../../src/package/model/revision/revision-state.ts';
import { TransitionRefusedError } from '../../../src/package/plan/transition.ts';
import { inlineCode, plainLine } from '../text/quote.ts';

/** Of the comment about a merge that published nothing. */
export const NOT_PUBLISHED_TOPIC = 'not-published';
/** Of the comment about it. */
export const OUT_OF_BAND_TOPIC = 'out-of-band';
const MAX_BYPASSED = 50;
const MAX_REASON_CHARACTERS = 500;
const NEXT = 'Targets do not deliver it by default';
const REPAIR =
  'Correct it in another revision, or take it over: `sluice repo adopt` lists it, and adopts it with `--yes`.';

/** The comment about a merge that bypassed gates, rules or approvals. `refusal` is why it could not be published in band. */
export function describeBypass(
  { name, pullUrl, by }: { readonly name: string; readonly pullUrl: string; readonly by: string | undefined },
  refusal: SluiceError,
): string {
  return comment(
    `${mergerOf(by)} merged ${pullUrl} although package revision ${inlineCode(name)} could not be published. What was merged is recorded as \`OutOfBand\`. **${NEXT}.** What the merge bypassed:`,
    refusalLines(refusal),
  );
}

function refusalLines(refusal: SluiceError): string[] {
  const refusals: readonly Refusal[] =
    refusal instanceof TransitionRefusedError ? (refusal.details?.refusals ?? []) : [];
  return refusals.length === 0
    ? [`- ${inlineCode(refusal.message, MAX_REASON_CHARACTERS)}`]
    : refusals.map(describeRefusal);
}

/** The comment about a merge that published nothing, as long as `refusal` holds. */
export function describeNotPublished(
  { name, pullUrl, by }: { readonly name: string; readonly pullUrl: string; readonly by: string | undefined },
  refusal: SluiceError,
): string {
  return [
    '### Not published: Sluice could not record this merge',
    `${mergerOf(by)} merged ${pullUrl}, and package revision ${inlineCode(name)} is not published as long as this holds:`,
    refusalLines(refusal).slice(0, MAX_BYPASSED).join('\n'),
  ].join('\n\n');
}

/** In place of that comment, which would contradict the text of the pull request. */
export function describePublishedLater(name: string): string {
  return `### Published: package revision ${inlineCode(name)}\n\nSluice could not record this merge at first, and reported it here. The text of the pull request has the last step.`;
}

/** The comment about a merge that Sluice read after the proposals in it had been rejected or deleted. */
export function describeMergedEnds({
  ended,
  pullUrl,
  by,
}: {
  readonly ended: readonly { readonly name: string; readonly isDeleted: boolean }[];
  readonly pullUrl: string;
  readonly by: string | undefined;
}): string {
  return [
    '### Not published: this merge came after the end of the proposal',
    `${mergerOf(by)} merged ${pullUrl}. These package revisions are drafts or deleted, so that the merge publishes none of them:`,
    ended
      .slice(0, MAX_BYPASSED)
      .map(({ name, isDeleted }) => `- ${inlineCode(name)}: ${isDeleted ? 'deleted' : 'a draft'}`)
      .join('\n'),
    'Propose them again, deleted ones as new revisions, and approve them to publish them, or revert the merge.',
  ].join('\n\n');
}

/** The event about one of them. */
export function describeMergedEnd({
  name,
  isDeleted,
  pullUrl,
  by,
}: {
  readonly name: string;
  readonly isDeleted: boolean;
  readonly pullUrl: string;
  readonly by: string | undefined;
}): string {
  const end = isDeleted
    ? 'is deleted; create it again as a new revision'
    : 'is a draft; propose it again and approve it to publish it';
  return `${pullUrl} was merged${by === undefined ? '' : ` by ${plainLine(by)}`}, and does not publish ${name}, which ${end}, or revert the merge`;
}

/** The comment about packages that are out of band after the merge of a pull request that they share. */
export function describeBypasses(
  revisions: readonly { readonly name: string; readonly outOfBand: OutOfBand }[],
  by: string | undefined,
): string {
  return comment(
    `${mergerOf(by)} merged packages that could not be published. They are recorded as \`OutOfBand\`. **${NEXT}.** What the merge bypassed:`,
    revisions.map(({ name, outOfBand }) => `- ${inlineCode(name)}: ${reasonOf(outOfBand)}`),
  );
}

function comment(introduction: string, bypassed: readonly string[]): string {
  const lines = bypassed.slice(0, MAX_BYPASSED);
  if (lines.length < bypassed.length) lines.push(`- ${bypassed.length - lines.length} more are not listed`);
  const title = '### Out of band: this merge bypassed the rules of Sluice';
  return [title, introduction, lines.join('\n'), REPAIR].join('\n\n');
}

function mergerOf(by: string | undefined): string {
  return by === undefined ? 'An unknown user' : inlineCode(by);
}

/** What the text of a pull request says of a revision that is out of band. */
export function outOfBandNote(outOfBand: OutOfBand): string {
  return `**It is out of band** (${reasonOf(outOfBand)}). ${NEXT}. ${REPAIR}`;
}

/** The reason of a publication that is out of band, as code. */
export function reasonOf({ reason, message }: OutOfBand): string {
  return `${inlineCode(reason)}: ${inlineCode(message, MAX_REASON_CHARACTERS)}`;
}

function describeRefusal({ message, gate, blockedBy }: Refusal): string {
  if (gate !== undefined)
    return `- the gate ${inlineCode(gate.type)} is closed (${inlineCode(gate.state)}): ${inlineCode(gate.explanation, MAX_REASON_CHARACTERS)}`;
  if (blockedBy !== undefined) {
    const { rule, policy, message: why } = blockedBy;
    const of = policy === undefined ? '' : ` of the policy ${inlineCode(policy)}`;
    return `- the rule ${inlineCode(rule)}${of}: ${inlineCode(why, MAX_REASON_CHARACTERS)}`;
  }
  return `- ${inlineCode(message, MAX_REASON_CHARACTERS)}`;
}
