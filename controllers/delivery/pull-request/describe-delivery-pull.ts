import type { Desired } from '../../../src/delivery/tree/desired-result.ts';
import { readMessage } from '../../../src/delivery/tree/trailers.ts';
import type { Closing, PullRequest } from '../../../src/forge/forge.ts';
import type { DeliveryTarget } from '../../../src/resource/kinds/sluice/delivery/delivery-target.ts';
import { inlineCode, plainLine } from '../../pull-request/text/quote.ts';

/** Rows of the table of packages. */
const MAX_ROWS = 200;
/** Of the message of a merge, which hosts limit. */
const MAX_MESSAGE_CHARACTERS = 30_000;

/** The text of Sluice in the body of the pull request of a target. */
export function describeDeliveryPull(
  { metadata, spec }: DeliveryTarget,
  { packages, message }: Pick<Desired, 'message' | 'packages'>,
  branch: string,
): string {
  const rows = [
    ...packages.filter(({ changed }) => changed).map((one) => row(one.repository, one.package, `v${one.revision}`)),
    ...readMessage(message).removed.map((one) => row(one.repository, one.package, 'removed')),
  ];
  const more = rows.length > MAX_ROWS ? [`| … and ${rows.length - MAX_ROWS} more | | |`] : [];
  const merger =
    spec.pullRequest?.merge === 'automatic'
      ? 'Sluice merges it as soon as the rules of the host permit it.'
      : 'Merge it to deliver them.';
  return [
    `DeliveryTarget ${inlineCode(metadata.name)} delivers these packages to ${inlineCode(spec.git.branch)}. ${merger}`,
    '',
    '| repository | package | revision |',
    '|---|---|---|',
    ...rows.slice(0, MAX_ROWS),
    ...more,
    '',
    `Sluice sets the branch ${inlineCode(branch)} again when other packages become ready. To hold this delivery, close the pull request.`,
  ].join('\n');
}

/** The text of a pull request that Sluice closes. */
export function describeUnneeded({ metadata, spec }: DeliveryTarget): string {
  return `Closed by Sluice: ${inlineCode(spec.git.branch)} has everything that DeliveryTarget ${inlineCode(metadata.name)} delivers.`;
}

/** Why a target waits for a pull request that was closed. */
export function describeClosed(url: string, closing: Closing | undefined): string {
  const who = closing === undefined ? '' : ` by ${plainLine(closing.by)}`;
  const why = closing?.comment === undefined ? '' : ` (${plainLine(closing.comment)})`;
  return `${url} was closed${who}${why}, so that nothing is delivered; reopen it, or publish another revision`;
}

/** The event about a pull request that the host closed, and that Sluice opens again. */
export function describeReopened({ url, head }: Pick<PullRequest, 'url' | 'head'>): string {
  return `${url} is opened again: the host had closed it for the removal of a branch ${head.branch}, which is there with what is delivered`;
}

/** Subject and other lines of the commit of a merge. The trailers of a delivery stay whole. */
export function mergeTexts(message: string): { readonly title: string; readonly message: string } {
  const [title = '', ...lines] = message.trim().split('\n');
  const kept: string[] = [];
  let size = 0;
  for (const line of lines) {
    size += line.length + 1;
    if (size > MAX_MESSAGE_CHARACTERS) break;
    kept.push(line);
  }
  return { title, message: kept.join('\n').trim() };
}

function row(repository: string, path: string, revision: string): string {
  return `| ${inlineCode(repository)} | ${inlineCode(path)} | ${revision} |`;
}
