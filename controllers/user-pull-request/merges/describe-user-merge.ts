import { inlineCode } from '../../pull-request/text/quote.ts';
import type { PackageMerge, UserMerge } from './publish-user-merge.ts';

const MAX_PACKAGES = 100;
const MAX_REASON_CHARACTERS = 500;

/** What became of the packages of a merged pull request, in Markdown, bounded. */
export function describeUserMerge({ packages: some, known, unknown }: UserMerge): string {
  const packages = [...known, ...some].sort((a, b) => (a.path < b.path ? -1 : 1));
  const lines = packages.slice(0, MAX_PACKAGES).map((one) => `- ${describe(one)}`);
  if (packages.length > MAX_PACKAGES) lines.push(`- ${packages.length - MAX_PACKAGES} more are not shown here`);
  const parts = lines.length === 0 ? [] : ['The packages that were merged:', lines.join('\n')];
  if (packages.some(({ result }) => result === 'out_of_band'))
    parts.push(
      '**A package that is out of band was merged although its gates or approvals did not permit it.** Targets do not deliver it by default. Correct it in another pull request, or take it over: `sluice repo adopt` lists it, and adopts it with `--yes`.',
    );
  if (unknown !== undefined) parts.push(`**It may have changed more packages, which are not published:** ${unknown}.`);
  return parts.join('\n\n');
}

function describe(one: PackageMerge): string {
  const path = inlineCode(one.path);
  switch (one.result) {
    case 'published':
      return `${path} is published as ${inlineCode(one.revision.name)}`;
    case 'out_of_band':
      return `${path} is **out of band** as ${inlineCode(one.revision.name)}: ${inlineCode(one.revision.outOfBand?.message ?? one.refusal, MAX_REASON_CHARACTERS)}`;
    case 'not_published':
      return `${path} is **not published**: ${inlineCode(one.reason, MAX_REASON_CHARACTERS)}`;
    case 'left_out':
      return `${path} is **not complete**: ${inlineCode(one.reason, MAX_REASON_CHARACTERS)}`;
    case 'removed':
      return `${path} was removed from the main branch; its published revisions stay until they are deleted`;
  }
}
