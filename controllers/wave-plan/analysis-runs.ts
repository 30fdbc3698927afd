import { isSluiceError } from '../../src/foundation/sluice-error.ts';
import type { Client } from '../../src/resource/client/client.ts';
import { type AnalysisRun, analysisRunKind } from '../../src/resource/kinds/sluice/wave/analysis-run.ts';
import { type WavePlan, wavePlanKind } from '../../src/resource/kinds/sluice/wave/wave-plan.ts';
import { DEFAULT_NAMESPACE, type Stored } from '../../src/resource/object/object.ts';
import { sameValue } from '../../src/resource/object/same-value.ts';
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
  /** The run of a request; undefined if there is none yet. */
  read(request: Omit<AnalysisRequest, 'canary' | 'untouched'>): Promise<AnalysisObservation | undefined>;
  /** Creates a run. One with this name is the same run. */
  start(request: AnalysisRequest): Promise<void>;
}

/** Target names that may be in queries; others cannot be measured. */
const MEASURABLE = /^[A-Za-z0-9]([A-Za-z0-9._/-]*[A-Za-z0-9])?$/;

/** Runs as AnalysisRun objects, which the analysis controller carries out. */
export function analysisRuns(client: Client): AnalysisRuns {
  return {
    async read({ name, plan, wave, template, args }) {
      const { namespace = DEFAULT_NAMESPACE } = plan.metadata;
      const run = await client.find(analysisRunKind, { namespace, name });
      if (run === undefined) return undefined;
      // Users may write runs: one that measures something else says nothing about the wave.
      if (!isOfWave(run, plan, { wave, template, args }))
        return {
          phase: 'Error',
          message: `AnalysisRun ${name} is not the one of this wave; delete it, and resume the plan`,
        };
      return { phase: run.status?.phase ?? 'Pending', message: run.status?.message ?? '' };
    },
    async start({ name, plan, wave, template, args, canary, untouched }) {
      const { namespace = DEFAULT_NAMESPACE, name: owner, uid } = plan.metadata;
      const { apiVersion, kind } = wavePlanKind;
      const targets = { canary: canary.filter(isMeasurable), untouched: untouched.filter(isMeasurable) };
      try {
        await client.create(analysisRunKind, {
          metadata: { name, namespace, ownerReferences: [{ apiVersion, kind, name: owner, uid, controller: true }] },
          spec: { templateRef: { name: template }, args: [...args], scope: { plan: owner, wave, targets } },
        });
      } catch (error) {
        if (!isSluiceError(error, 'AlreadyExists')) throw error;
      }
    },
  };
}

function isMeasurable(id: string): boolean {
  return MEASURABLE.test(id);
}

function isOfWave(
  { metadata, spec }: AnalysisRun,
  plan: Stored<WavePlan>,
  { wave, template, args }: Pick<AnalysisRequest, 'wave' | 'template' | 'args'>,
): boolean {
  return (
    metadata.ownerReferences?.some(({ uid }) => uid === plan.metadata.uid) === true &&
    spec.templateRef.name === template &&
    sameValue(spec.args ?? [], args) &&
    spec.scope?.plan === plan.metadata.name &&
    spec.scope.wave === wave
  );
}

/** The name of a run follows from what it is about, so that a repeated attempt finds it. */
export function runName({ metadata: { name, uid } }: Stored<WavePlan>, { wave, attempt, index }: AnalysisKey): string {
  return `${name.slice(0, 150)}-${wave}-${attempt}-${index + 1}-${shortDigest(`${uid} ${wave} ${attempt} ${index}`)}`;
}
