import type { Forge, MergedState, PullRequest, Review } from '../../../src/forge/forge.ts';
import type { ReviewPolicy } from '../../../src/package/model/policy/review-policy.ts';
import type { RevisionEvaluation } from '../../../src/package/store/evaluate-revision.ts';
import type { RevisionStore } from '../../../src/package/store/revision-store.ts';
import type { Client } from '../../../src/resource/client/client.ts';
import type { PackageRevision } from '../../../src/resource/kinds/porch/package-revision.ts';
import type { Stored } from '../../../src/resource/object/object.ts';
import type { EventDeduplicator } from '../../event-deduplicator.ts';
import type { MayApprove } from '../rights.ts';

export interface ReviewContext {
  readonly client: Client;
  readonly store: Pick<RevisionStore, 'change' | 'evaluate' | 'repositoryOf'>;
  readonly events: EventDeduplicator;
  readonly mayApprove: MayApprove | undefined;
  /** Notes which teams are read for an open pull request, which depends on them. Default: it does not matter. */
  readonly teamsOf?: (forge: Pick<Forge, 'isTeamMember'>) => Pick<Forge, 'isTeamMember'>;
  readonly signal: AbortSignal;
}

/** A proposal with the pull request that it is reviewed in. */
export interface ReviewedProposal {
  /** As it was read before `evaluation`: its version makes a decision about other content a conflict. */
  readonly object: Stored<PackageRevision>;
  readonly evaluation: RevisionEvaluation;
  readonly review: ReviewPolicy;
  readonly pull: PullRequest;
  readonly forge: Forge;
  /** Of the pull request, and of those before it for the same branch, as they were last read; oldest first. */
  readonly reviews: readonly Review[];
  /** Reads them again. */
  readReviews(): Promise<readonly Review[]>;
  /** Reads them again, with what decides whether the merge is an approval. */
  readMerged(merged: PullRequest): Promise<MergedState>;
  /** Reads the pull request and its reviews again. */
  readState(): Promise<{ readonly pull: PullRequest; readonly reviews: readonly Review[] }>;
  /** Takes over the pull request as it was read. */
  note(pull: PullRequest): void;
}
