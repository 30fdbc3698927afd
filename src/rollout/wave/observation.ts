import type { TargetRecord } from './plan-state.ts';

/** A Proposed revision that the selector of the plan matches. */
export interface Candidate {
  readonly id: string;
  /** By which targets are sorted: a digest, or a label and a digest. */
  readonly key: string;
  readonly revision: string;
  readonly commit: string;
  /** Names of the waves whose selector it matches. */
  readonly selectedBy: readonly string[];
}

export type Verification =
  | { readonly result: 'Verified' }
  /** Not yet. */
  | { readonly result: 'Pending'; readonly message: string }
  /** It is certain that the target is not in order; it may become so. */
  | { readonly result: 'Degraded'; readonly message: string }
  /** It is certain that the target has failed, whatever happens next. */
  | { readonly result: 'Failed'; readonly message: string }
  /** What verifies it cannot be reached. */
  | { readonly result: 'Unreachable'; readonly message: string };

/** What is known of the recorded revision of a target. Everything is optional: what is unknown changes nothing. */
export interface TargetObservation {
  /** The state of the recorded revision; Gone if it exists no longer, or is a draft again. */
  readonly revision?:
    | { readonly state: 'Gone' }
    /** `isApproved`: it is approved, and a merge of the Git host publishes it. */
    | { readonly state: 'Proposed'; readonly isApproved?: true }
    | { readonly state: 'Published'; readonly number: number };
  readonly verification?: Verification;
  /** Why a gate or a policy refused the last attempt to approve it. */
  readonly refusal?: string;
  /** Why the last attempt to approve it failed otherwise. */
  readonly failure?: string;
  readonly rollback?: 'Done' | { readonly impossible: string } | { readonly waits: string };
}

export type AnalysisPhase = 'Pending' | 'Running' | 'Successful' | 'Failed' | 'Error' | 'Inconclusive';

export interface AnalysisObservation {
  readonly phase: AnalysisPhase;
  readonly message: string;
}

export interface Observations {
  /**
   * All candidates; undefined while they cannot be listed, so that no target is removed because a repository cannot be read. `unknown` are
   * the ids of targets of which it is not known whether they still exist.
   */
  readonly candidates: ReadonlyMap<string, Candidate> | undefined;
  readonly isUnknown: (id: string) => boolean;
  readonly of: (target: TargetRecord) => TargetObservation;
  /** The number of the revision of a target that is delivered; undefined if none is known. */
  readonly deliveredOf?: (id: string) => number | undefined;
  /** Distinct users whose approvals of the start of a wave count. Whether they may approve was checked when they did. */
  readonly approvalsOf: (wave: string) => number;
  readonly analysisOf: (run: AnalysisKey) => AnalysisObservation | undefined;
  /** True while a Freeze is in force: nothing begins, nothing is decided to be a failure, and the time of the plan stops. */
  readonly isFrozen: boolean;
  /** True if the spec was changed since the last step. */
  readonly isEdited?: boolean;
}

/** One analysis of a wave: its attempt, from 1, and its index in the list of the wave. */
export interface AnalysisKey {
  readonly wave: string;
  readonly attempt: number;
  readonly index: number;
}

export type Action =
  /** Approve the recorded commit of a target. */
  | { readonly type: 'Approve'; readonly id: string }
  | { readonly type: 'Analyse'; readonly run: AnalysisKey }
  /** Publish the content of the revision before as a new revision. */
  | { readonly type: 'RollBack'; readonly id: string };
