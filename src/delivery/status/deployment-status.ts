import type { Oid } from '../../git/git-repository.ts';
import type { DeliveryTarget } from '../../resource/kinds/sluice/delivery/delivery-target.ts';
import type { Stored } from '../../resource/object/object.ts';
import type { EngineReport } from './engine-report.ts';

export interface EngineReports {
  readonly reports: readonly EngineReport[];
  /** Milliseconds after which they are to be read again although no change was noticed. */
  readonly retryAfterMs?: number | undefined;
  /** Names the object that the target names and the engine does not have, with the next step. Only without reports. */
  readonly absent?: string | undefined;
}

export interface ReportRequest {
  /** The newest commits of the target's branch, the newest first. Called by sources that read reports by commit. */
  readonly commits: () => Promise<readonly Oid[]>;
  readonly signal: AbortSignal;
}

/** The port to what deploys one target: an engine in a cluster, or commit statuses on a Git host. */
export interface DeploymentStatus {
  /**
   * The present reports, of which none may be trusted beyond its own text: they are what others claim. Throws if they cannot be read:
   * Unavailable and Timeout for connections, Refused for rights and hosts, Unauthenticated, Unsupported where the server has no such
   * kind, InvalidInput for a wrong setting. No message contains a credential.
   */
  reports(request: ReportRequest): Promise<EngineReports>;
  /** Ends watches and connections. */
  close(): Promise<void>;
}

export interface DeploymentSources {
  /** A text that differs once what `open` reads besides the target has changed: the Secret with a kubeconfig. */
  versionOf(target: Stored<DeliveryTarget>, signal: AbortSignal): Promise<string>;
  /**
   * Begins to follow the reports about a target. `onChange` is called whenever they may have changed. Throws what prevents that, with the
   * next step; see `DeploymentStatus.reports`.
   */
  open(target: Stored<DeliveryTarget>, onChange: () => void, signal: AbortSignal): Promise<DeploymentStatus>;
}
