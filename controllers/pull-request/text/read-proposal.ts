import { isSluiceError, unlessMissing } from '../../../src/foundation/sluice-error.ts';
import { readPackage } from '../../../src/package/model/content/content.ts';
import { unreadableReason } from '../../../src/package/model/content/unreadable-content.ts';
import { REVIEW_ACTOR, REVIEWED_TYPE } from '../../../src/package/model/policy/review-policy.ts';
import type { Explanation, GateExplanation } from '../../../src/package/model/revision/explanation.ts';
import type { PackageRevision as Revision } from '../../../src/package/model/revision/package-revision.ts';
import { diffSchema, explainSchema } from '../../../src/package/model/revision/revision-readings.ts';
import { isUnread, type RevisionEvaluation } from '../../../src/package/store/evaluate-revision.ts';
import type { RevisionStore } from '../../../src/package/store/revision-store.ts';
import type { Client } from '../../../src/resource/client/client.ts';
import { type PackageRevision, packageRevisionKind } from '../../../src/resource/kinds/porch/package-revision.ts';
import { keyOf, keyText, type ObjectKey, type Stored } from '../../../src/resource/object/object.ts';
import type { Proposal } from './describe-proposal.ts';
import { type PackageFiles, renderedChanges } from './resource-changes.ts';

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

export interface DescriptionContext {
  readonly client: Client;
  readonly store: Pick<RevisionStore, 'find' | 'repositoryOf'>;
}

/** What reviewers have to know of a proposal. */
export async function readProposal(
  { client, store }: DescriptionContext,
  object: Stored<PackageRevision>,
  evaluation: Pick<RevisionEvaluation, 'revision' | 'content' | 'record'>,
  about: Pick<Proposal, 'explanation' | 'review' | 'rights' | 'rules' | 'progress' | 'uncounted' | 'approved'>,
  signal: AbortSignal,
): Promise<Proposal> {
  const { content, record } = evaluation;
  const diff = isUnread(evaluation) ? undefined : await diffOf(client, object, signal);
  const from = diff?.from;
  const before = from === undefined ? NO_FILES : await filesOf(store, { ...keyOf(object), name: from });
  const rendered =
    before === undefined || diff === undefined ? undefined : await renderedChanges(before, content.files, signal);
  // That reviews were read is no news, and would change the text of each pull request once more.
  const { last } = about.explanation;
  const step = record.steps.findLast(({ by }) => by !== REVIEW_ACTOR);
  const shown = last?.by === REVIEW_ACTOR ? step : last;
  const { last: _, ...rest } = about.explanation;
  const explanation = shown === undefined ? rest : { ...rest, last: shown };
  return { ...about, explanation, diff, rendered, upstream: upstreamOf(evaluation.revision.kptfile) };
}

/** Undefined where the package that it is compared with cannot be read, as one that a push published. */
async function diffOf(client: Client, object: Stored<PackageRevision>, signal: AbortSignal) {
  try {
    const read = await client.subResource('diff').get(packageRevisionKind, keyOf(object), {}, { signal });
    return diffSchema.parse(read);
  } catch (error) {
    if (isSluiceError(error, 'NotFound') || unreadableReason(error) === undefined) throw error;
    return undefined;
  }
}

const NO_FILES: PackageFiles = new Map();

/** The files of a revision; undefined if it is not there any more. */
async function filesOf(store: DescriptionContext['store'], key: ObjectKey): Promise<PackageFiles | undefined> {
  const revision = store.find(keyText(key));
  if (revision === undefined) return undefined;
  const { git } = store.repositoryOf(revision);
  return (await unlessMissing(readPackage(git, `${revision.commit}:${revision.path}`, revision.kptfile)))?.files;
}

/** Where a package was copied from; undefined if it was not. */
export function upstreamOf(kptfile: Revision['kptfile']): string | undefined {
  const git = kptfile?.upstream?.git;
  return git === undefined ? undefined : `${git.repo ?? ''}/${git.directory ?? ''}@${git.ref ?? ''}`;
}
