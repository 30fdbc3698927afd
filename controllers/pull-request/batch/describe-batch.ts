import { shorten } from '../../../src/foundation/text/shorten.ts';
import type { ReviewPolicy } from '../../../src/package/model/policy/review-policy.ts';
import { lastRequestOf } from '../../../src/package/model/revision/attribution.ts';
import type { PackageRevision as Revision } from '../../../src/package/model/revision/package-revision.ts';
import { reasonOf } from '../ending/describe-bypass.ts';
import { approvalsOfMerge, commands, describeMember } from '../text/describe-proposal.ts';
import { inlineCode } from '../text/quote.ts';
import type { BatchMember } from './batch-member.ts';

/** Hosts limit bodies to 64 kB, in which the marker, the introduction and texts of users have a place too. */
const MAX_CHARACTERS = 45_000;
const LEAST_OF_MEMBER = 400;
const MAX_ENDS = 200;
const END = 'No package is proposed here any more:';

/** The section of a pull request with several packages: what is common to all, then a part for each. */
export function describeBatch(members: readonly BatchMember[], review: ReviewPolicy): string {
  const most = Math.max(LEAST_OF_MEMBER, Math.floor(MAX_CHARACTERS / Math.max(1, members.length)));
  const parts: string[] = [];
  let left = MAX_CHARACTERS;
  for (const { described } of members) {
    const part = describeMember(described, most);
    left -= part.length;
    if (left < 0) break;
    parts.push(part);
  }
  const hidden = members.slice(parts.length).map(({ name }) => inlineCode(name));
  return [
    `This pull request proposes ${members.length === 1 ? 'one package' : `${members.length} packages`}. Its branch belongs to Sluice: change a package in its own branch, or in a draft.`,
    publication(review),
    ...commandsOfBatch(review),
    ...parts,
    ...(hidden.length === 0 ? [] : [`Not shown: ${shorten(hidden.join(', '), MAX_CHARACTERS / 3)}`]),
  ].join('\n\n');
}

/** Whether the text of a section says that no package is left. */
export function isBatchEnd(text: string): boolean {
  return text.startsWith(END);
}

/** What the section says once no package is left. */
export function describeBatchEnd(
  revisions: readonly { readonly name: string; readonly revision?: Revision | undefined }[],
): string {
  const lines = revisions.slice(0, MAX_ENDS).map(({ name, revision }) => {
    const lifecycle = `- ${inlineCode(name)}: ${revision?.lifecycle ?? 'deleted'}`;
    if (revision?.outOfBand !== undefined) return `${lifecycle}, **out of band** (${reasonOf(revision.outOfBand)})`;
    const last = revision === undefined ? undefined : lastRequestOf(revision);
    const by = last === undefined ? '' : `, ${inlineCode(last.action)} by ${inlineCode(last.by)} at ${last.at}`;
    return `${lifecycle}${by}`;
  });
  return [END, ...(lines.length === 0 ? [] : [lines.join('\n')])].join('\n\n');
}

function publication(review: ReviewPolicy): string {
  const { publishOn, approvers } = review;
  const users = approvers.map(({ user }) => inlineCode(user)).join(', ');
  const how =
    publishOn === 'merge'
      ? `A merge publishes each package whose gates are open and whose approvals suffice; the others are out of band then, and are not delivered.${approvalsOfMerge(review)}`
      : publishOn === 'approval'
        ? `Each package is published by ${inlineCode('sluice rpkg approve <name>')}, and leaves this pull request then.`
        : users === ''
          ? 'No review publishes them, since the policy lists no approvers.'
          : `An approving review publishes each package once its gates are open, if it has not changed since; it leaves this pull request then. Reviews of these users count: ${users}.`;
  const merge = publishOn === 'merge' ? '' : ' A merge here publishes those alone that were approved.';
  return `${how} Requested changes hold all of them up. Closing this pull request rejects them all.${merge}`;
}

function commandsOfBatch(review: ReviewPolicy): readonly string[] {
  const about = ' They are for all packages; with the name of a package revision after the verb, for this one.';
  return commands(review, about);
}

/** What a comment says of a commit of a user in the branch of a batch. */
export function describeTakenBack({ commit, by }: { readonly commit: string; readonly by: string }): string {
  return `The commit ${inlineCode(commit)} of ${inlineCode(by)} is taken back: this branch has what its packages propose, and Sluice writes it. Push to the branch of the package, or change a draft.`;
}
