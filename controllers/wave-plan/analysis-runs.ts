import type { WavePlan } from '../../src/resource/kinds/sluice/wave-plan.ts';
import type { Stored } from '../../src/resource/object/object.ts';
import type { AnalysisKey, AnalysisObservation } from '../../src/rollout/wave/observation.ts';
import { shortDigest } from './observe-candidates.ts';

/** The request for one analysis of a wave. */
export interface AnalysisRequest {
  readonly name: string;
  readonly plan: Stored<WavePlan>;
  readonly wave: string;
  readonly template: string;
  readonly args: readonly { readonly name: string; readonly value: string }[];
  /** Ids of the targets of the waves so far, and of those that no wave has reached. */
  readonly canary: readonly string[];
  readonly untouched: readonly string[];
}

/** The port to the controller of analyses. */
export interface AnalysisRuns {
  /** The runs that exist, by name, of those that are named. */
  read(namespace: string, names: readonly string[]): Promise<ReadonlyMap<string, AnalysisObservation>>;
  /** Creates a run. One with this name is the same run. */
  start(request: AnalysisRequest): Promise<void>;
}

/** The name of a run follows from what it is about, so that a repeated attempt finds it. */
export function runName({ metadata: { name, uid } }: Stored<WavePlan>, { wave, attempt, index }: AnalysisKey): string {
  return `${name.slice(0, 150)}-${wave}-${attempt}-${index + 1}-${shortDigest(`${uid} ${wave} ${attempt} ${index}`)}`;
}
