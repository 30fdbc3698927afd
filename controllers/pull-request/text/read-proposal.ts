import { REVIEWED_TYPE, type ReviewPolicy } from '../../../src/package/model/policy/review-policy.ts';
import type { Explanation, GateExplanation } from '../../../src/package/model/revision/explanation.ts';
import type { PackageRevision as Revision } from '../../../src/package/model/revision/package-revision.ts';
import { diffSchema, explainSchema } from '../../../src/package/model/revision/revision-readings.ts';
import type { Client } from '../../../src/resource/client/client.ts';
import { type PackageRevision, packageRevisionKind } from '../../../src/resource/kinds/porch/package-revision.ts';
import { keyOf, type Stored } from '../../../src/resource/object/object.ts';
import { describeProposal } from './describe-proposal.ts';

/** What `sluice why` reports of a proposal, as reviewers see it. */
export async function readExplanation(
  client: Client,
  object: Stored<PackageRevision>,
  signal: AbortSignal,
): Promise<Explanation> {
  const read = await client.subResource('explain').get(packageRevisionKind, keyOf(object), {}, { signal });
  const { explanation } = explainSchema.parse(read);
  // Reviewers see this gate on the host itself, unless it is closed by one of them.
  const isNews = ({ type, state }: GateExplanation) => type !== REVIEWED_TYPE || state === 'NotTrue';
  return { ...explanation, gates: explanation.gates.filter(isNews) };
}

/** The section of a proposal in the body of its pull request. */
export async function readDescription(
  client: Client,
  object: Stored<PackageRevision>,
  { kptfile }: Pick<Revision, 'kptfile'>,
  about: { readonly explanation: Explanation; readonly review: ReviewPolicy },
  signal: AbortSignal,
): Promise<string> {
  const read = await client.subResource('diff').get(packageRevisionKind, keyOf(object), {}, { signal });
  const upstream = upstreamOf(kptfile);
  return describeProposal({ ...about, diff: diffSchema.parse(read), upstream });
}

/** Where a package was copied from; undefined if it was not. */
export function upstreamOf(kptfile: Revision['kptfile']): string | undefined {
  const git = kptfile?.upstream?.git;
  return git === undefined ? undefined : `${git.repo ?? ''}/${git.directory ?? ''}@${git.ref ?? ''}`;
}
