import type { Resource } from '../resource/resource.ts';
import type { FunctionResult } from './function-result.ts';
import type { FunctionVersion } from './function-version.ts';

/** Input and output of a function, as in the KRM functions specification. */
export interface ResourceList {
  /** The resources of the package; a function changes, adds and removes them. */
  items: Resource[];
  /** `functionConfig`: from `configPath`, or a ConfigMap made of `configMap`; undefined if the pipeline names neither. */
  readonly config: Resource | undefined;
  /** The findings of the function. One of severity `error` makes it a failure, unless `errorsPass` is set. */
  readonly results: FunctionResult[];
  /** Set by a function that reports errors and still exits with 0, as some published versions do. */
  errorsPass?: boolean;
  /** Human-readable text; it becomes `stderr` of its result. */
  stderr?: string;
}

export interface FunctionContext {
  /** Aborted when the time of the function is up. A function that computes cannot see it; its thread is ended instead. */
  readonly signal: AbortSignal;
  /** True for a function that is run by hand: it may remove Kptfiles, which a pipeline must keep. */
  readonly byHand?: boolean;
  /** The published version that the package pins; undefined is the newest one. */
  readonly version?: FunctionVersion;
}

/** Documentation of a function, for `sluice fn doc NAME` and docs/functions.md. */
export interface FunctionDoc {
  /** One line. */
  readonly summary: string;
  /** Description of its effect and configuration; a few short paragraphs. */
  readonly description: string;
  /** Kptfile pipeline entries, and configurations where they need a file; YAML. */
  readonly examples: readonly string[];
  /** Differences from the published function of that name; one sentence each. */
  readonly differences: readonly string[];
  /** The published versions that it was compared with, and how; one sentence. Absent if it was compared with none. */
  readonly compared?: string;
}

/** A function that runs in this process. */
export interface KrmFunction {
  /** Last part of its image's name, without tag. */
  readonly name: string;
  readonly doc: FunctionDoc;
  /** Sees the Kptfile's status and may depend on it, so a new condition runs it again. */
  readonly readsStatus?: boolean;
  /**
   * Changes the list in place. Problems of the package go into `results`; problems of the configuration are
   * thrown as InvalidInput. Must return the same for the same input, at any time and on any machine.
   */
  run(list: ResourceList, context: FunctionContext): void | Promise<void>;
}
