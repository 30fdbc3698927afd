import { type Annotation, type Check, MAX_ANNOTATIONS } from '../../../src/forge/forge.ts';
import { checksOf } from '../checks/checks.ts';
import { inlineCode, plainLine } from '../text/quote.ts';
import type { BatchMember } from './batch-member.ts';

const MAX_TITLE_CHARACTERS = 140;
/** Texts of checks are limited to 20,000 characters. */
const MAX_TABLE_CHARACTERS = 15_000;
const STATES = ['failure', 'pending', 'success'] as const;

/** The checks of a pull request with several packages: each is as the worst of theirs, with a table of all. */
export function batchChecks(members: readonly BatchMember[], url: string): Check[] {
  const byName = new Map<string, { readonly member: BatchMember; readonly check: Check }[]>();
  for (const member of members) {
    const { described, annotations } = member;
    for (const check of checksOf(described, described.review.gateChecks, url, annotations))
      byName.set(check.name, [...(byName.get(check.name) ?? []), { member, check }]);
  }
  return [...byName].map(([name, of]) => combined(name, of, url));
}

function combined(
  name: string,
  of: readonly { readonly member: BatchMember; readonly check: Check }[],
  url: string,
): Check {
  // What has to be done comes first, so that it is not what is left out.
  const sorted = STATES.flatMap((state) => of.filter(({ check }) => check.state === state));
  const open = sorted.filter(({ check }) => check.state !== 'success');
  const names = open.map(({ member }) => member.name).join(', ');
  const title =
    open.length === 0
      ? `${of.length === 1 ? 'Its package is' : `All ${of.length} packages are`} ready`
      : plainLine(`${open.length} of ${of.length} packages are not ready: ${names}`, MAX_TITLE_CHARACTERS);
  const annotations: readonly Annotation[] = sorted.flatMap(({ check }) => check.annotations ?? []);
  return {
    ...{ name, state: sorted[0]?.check.state ?? 'pending', title, text: tableOf(sorted), url },
    ...(annotations.length === 0 ? {} : { annotations: annotations.slice(0, MAX_ANNOTATIONS) }),
  };
}

function tableOf(of: readonly { readonly member: BatchMember; readonly check: Check }[]): string {
  const rows: string[] = [];
  let left = MAX_TABLE_CHARACTERS;
  for (const { member, check } of of) {
    const row = `| ${inlineCode(member.name)} | ${check.state === 'success' ? check.state : `**${check.state}**`} | ${inlineCode(check.title)} |`;
    left -= row.length;
    if (left < 0) break;
    rows.push(row);
  }
  const hidden = of.length - rows.length;
  const more = hidden > 0 ? [`\n${hidden} more packages are not listed.`] : [];
  return ['| Package revision | State | Gates |', '|---|---|---|', ...rows, ...more].join('\n');
}
