import type { KptFunction, PipelineStepResult } from '../../../kptfile-schema/index.ts';
import type { PinnedValidator } from '../../package/model/policy/policy.ts';
import type { FunctionRules } from './function-rules.ts';

/** A package to be rendered: plain data, so that it can be sent to another thread. */
export interface PipelineInput {
  /** Its YAML files and Kptfiles by path below the package folder, nested packages included. */
  readonly files: ReadonlyMap<string, string>;
  readonly rules: FunctionRules;
  /** Condition types by the name or the short image name of a validator, as policies require them. */
  readonly validatorConditions: ReadonlyMap<string, string>;
  readonly pinnedValidators?: readonly PinnedValidator[];
  /** Registry of images without one, without a trailing slash; default: the registry of kpt. */
  readonly registry?: string;
  /** Runs this one function on all resources, in place of the pipelines of the Kptfiles, of which there may be none. */
  readonly only?: SingleFunction;
}

/** A function that no Kptfile names, as `sluice fn eval` runs it. */
export interface SingleFunction {
  readonly list: 'mutators' | 'validators';
  readonly function: KptFunction;
  /** Its configuration as YAML, from outside of the package; in place of `configMap` and `configPath`. */
  readonly config?: string;
}

/** The result of one function of the pipeline. */
export interface PipelineStep {
  /** Folder of the package that names the function; empty for the root package. */
  readonly packagePath: string;
  readonly list: 'mutators' | 'validators';
  /** The result as kpt records it in `status.renderStatus`. */
  readonly result: PipelineStepResult;
  /** The condition type that its findings are to become, if the package or a policy requires one. Validators only. */
  readonly conditionType?: string;
  /** True for a validator that a policy pins and that got the whole package. */
  readonly pinned?: boolean;
  /** True if the function could not be run here, so that its failure is not one of the package. */
  readonly unavailable?: boolean;
}

/** The result of rendering: plain data. */
export interface PipelineOutcome {
  /** Files that differ, by path, Kptfiles among them; null removes one. Empty after a failure, unless the package requests otherwise. */
  readonly edits: ReadonlyMap<string, string | null>;
  /** In the order in which they ran; the last one of a failed pipeline is the one that failed. */
  readonly steps: readonly PipelineStep[];
  /**
   * Reason why the package could not be rendered, in one line with function, package and file; undefined if it was
   * rendered.
   */
  readonly failure?: string;
  /** Human-readable information that is no failure, such as YAML files that are not resources. One line each. */
  readonly notes: readonly string[];
  /** Those of the notes that are about changes by functions that are not accepted. */
  readonly ignored?: readonly string[];
}

/** Progress of a pipeline. */
export interface PipelineEvent {
  readonly type: 'started' | 'finished';
  /** Of a function that starts, `result` has only its name. */
  readonly step: PipelineStep;
  /** Number of resources that a starting function gets, if it has selectors. */
  readonly selected?: number;
}

/** Renders packages; see `runPipeline`. Never rejects because of a function. */
export interface PipelineRunner {
  /** Rejects with the signal's reason, and with Unavailable if it cannot run anything at all. */
  run(input: PipelineInput, signal: AbortSignal, onEvent?: (event: PipelineEvent) => void): Promise<PipelineOutcome>;
  close(): Promise<void>;
}

/** Bounds of one function. */
export interface FunctionLimits {
  /** Milliseconds. */
  readonly time: number;
  /** Bytes of all resources that it returns, as YAML. */
  readonly outputBytes: number;
  /** Number of resources that it returns. */
  readonly resources: number;
}

export const DEFAULT_FUNCTION_LIMITS: FunctionLimits = {
  time: 30_000,
  outputBytes: 64 * 1024 * 1024,
  resources: 20_000,
};
