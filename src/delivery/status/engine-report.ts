import type { Oid } from '../../git/git-repository.ts';
import type { ArtifactFilter } from './left-out-folders.ts';

export type DeploymentReason =
  | 'Synced'
  | 'Syncing'
  | 'OutOfSync'
  | 'Drifted'
  | 'Failed'
  | 'Blocked'
  | 'Healthy'
  | 'Progressing'
  | 'Degraded'
  | 'Missing'
  | 'Stale'
  | 'UnknownCommit'
  | 'Unreachable'
  | 'NotReported';

/** `Synced` or `Healthy` of something that is deployed. Unknown never opens a gate, and never counts as a failure. */
export interface DeploymentState {
  readonly status: 'True' | 'False' | 'Unknown';
  readonly reason: DeploymentReason;
  readonly message: string;
}

/** What an engine did with a commit after the one that it applied last, or with that one. */
export interface SyncAttempt {
  readonly commit: Oid;
  /**
   * `Applied`: the engine applied the content of the commit, whatever the health of the objects. `OutOfSync`: it compared the cluster
   * with the commit and found differences.
   */
  readonly outcome: 'Applied' | 'Syncing' | 'OutOfSync' | 'Failed';
  readonly message: string;
}

/** The report of one object of an engine (an Application, a Kustomization), or of a commit status. */
export interface EngineReport {
  /** Names the engine's object in messages: `Application argocd/web`. */
  readonly object: string;
  /** The folder that it deploys, from the root of the repository; empty for the root. */
  readonly path: string;
  /**
   * Which folders below `path` it deploys: none; those that kustomizations list, from that of `path` on; or also, without a kustomization in
   * `path`, those that a search finds. All if undefined.
   */
  readonly subfolders?: 'None' | 'Listed' | 'Found';
  /** Set for an engine that leaves out what `.sourceignore` matches, which is Flux. */
  readonly artifact?: ArtifactFilter;
  /** Set if nothing of the report can be trusted, or the engine does nothing: both states. */
  readonly problem?: { readonly synced: DeploymentState; readonly healthy: DeploymentState };
  /** The commit that the engine applied last, by its report. */
  readonly applied: Oid | undefined;
  readonly attempt: SyncAttempt | undefined;
  /** Commits that the engine applied, perhaps in part, after `applied` and before `attempt`: without success, so that they do not count as applied. */
  readonly since?: readonly Oid[];
  /** Of what is applied. */
  readonly healthy: DeploymentState;
  /** True while the engine works, so that `healthy` concerns an intermediate state; an earlier health of equal content holds meanwhile. */
  readonly isWorking: boolean;
  /** Milliseconds after which the same report can have another meaning. */
  readonly retryAfterMs?: number;
}

export function state(status: DeploymentState['status'], reason: DeploymentReason, message: string): DeploymentState {
  return { status, reason, message };
}

/** A report that supports no statement. */
export function problemReport(
  object: string,
  path: string,
  synced: DeploymentState,
  healthy: DeploymentState = synced,
): EngineReport {
  return {
    object,
    path,
    problem: { synced, healthy },
    applied: undefined,
    attempt: undefined,
    healthy,
    isWorking: false,
  };
}
