import { digest } from '../../../src/foundation/text/canonical-json.ts';

/**
 * The part of the body of a pull request that Sluice writes, between two invisible markers. The rest is of users, and stays. The first marker
 * identifies the proposals that the pull request is for: a revision that is proposed again is another proposal. It also states whether the pull
 * request has got its labels and reviewers, so that a process that ends before loses none, and users may remove them afterwards; or has got
 * all but the reviewers that the host refused, which are in a marker of their own.
 */
const BEGIN =
  /<!-- sluice:begin proposal=([0-9a-f]{16}(?:,[0-9a-f]{16}){0,199})( prepared)? -->(?:\r?\n<!-- sluice:refused ([A-Za-z0-9._,-]{1,2000}) -->)?/;
const MAX_REFUSED_CHARACTERS = 2000;
const END = '<!-- sluice:end -->';

/** Identifies one proposal of a revision, also among several in the same second. */
export function proposalId(uid: string, steps: readonly { readonly action: string; readonly at: string }[]): string {
  const proposals = steps.filter(({ action }) => action === 'propose');
  const at = proposals.at(-1)?.at ?? '';
  const inSecond = proposals.filter((step) => step.at === at).length;
  return digest(`${uid} ${at} ${inSecond}`).replace(/^.*:/, '').slice(0, 16);
}

/** The proposals that the section of a body is for; none without a section. */
export function proposalsIn(body: string): readonly string[] {
  return BEGIN.exec(body)?.[1]?.split(',') ?? [];
}

/** Whether the section of a body states that the pull request has got its labels and reviewers. */
export function isPreparedIn(body: string): boolean {
  return BEGIN.exec(body)?.[2] !== undefined;
}

/** The reviewers that the host refused when it accepted all others, as the section of a body states it. */
export function refusedIn(body: string): readonly string[] {
  return BEGIN.exec(body)?.[3]?.split(',') ?? [];
}

/**
 * The body with a section that states whether the pull request has got its labels and reviewers, or all but these reviewers, which the host
 * refused; the same without a section.
 */
export function withPrepared(body: string, isPrepared = true, refused: readonly string[] = []): string {
  const names = refused.join();
  const isStated = names !== '' && names.length <= MAX_REFUSED_CHARACTERS;
  return body.replace(BEGIN, (_, proposals: string) => beginOf(proposals, isPrepared, isStated ? names : undefined));
}

/** The body with this section in place of the one that it has, else at its end. What was prepared stays so. */
export function withSection(body: string, proposals: readonly string[], text: string): string {
  const section = `${beginOf(proposals.join(), isPreparedIn(body), BEGIN.exec(body)?.[3])}\n${text}\n${END}`;
  // Hosts return line breaks as they were sent by browsers.
  const normal = body.replaceAll('\r\n', '\n');
  const begin = BEGIN.exec(normal)?.index;
  // The section itself can quote markers, so that it ends at the last one.
  const end = normal.lastIndexOf(END);
  if (begin === undefined || end < begin) return normal.trim() === '' ? section : `${normal.trimEnd()}\n\n${section}`;
  return `${normal.slice(0, begin)}${section}${normal.slice(end + END.length)}`;
}

/** The text of the section of a body; undefined without one. */
export function sectionOf(body: string): string | undefined {
  const normal = body.replaceAll('\r\n', '\n');
  const begin = BEGIN.exec(normal);
  const end = normal.lastIndexOf(END);
  if (begin === null || end < begin.index) return undefined;
  return normal.slice(begin.index + begin[0].length, end).trim();
}

function beginOf(proposals: string, isPrepared: boolean, refused: string | undefined): string {
  const begin = `<!-- sluice:begin proposal=${proposals}${isPrepared ? ' prepared' : ''} -->`;
  return refused === undefined ? begin : `${begin}\n<!-- sluice:refused ${refused} -->`;
}
