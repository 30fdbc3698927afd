import type { ErrorCode } from '../../foundation/sluice-error.ts';
import type { ExternalCall, ExternalResult } from '../external/external-runner.ts';
import type { FunctionLimits, PipelineEvent, PipelineInput, PipelineOutcome } from '../model/pipeline.ts';

export interface PlainError {
  readonly code: ErrorCode;
  readonly message: string;
}

/** A worker does one rendering at a time, so only calls need an id. */
export type ToWorker =
  | {
      readonly type: 'run';
      readonly input: PipelineInput;
      readonly limits: FunctionLimits;
      /** False if external functions are disabled. */
      readonly external: boolean;
    }
  | { readonly type: 'answer'; readonly id: number; readonly answer: ExternalResult | string | undefined }
  | { readonly type: 'error'; readonly id: number; readonly error: PlainError };

export type FromWorker =
  | { readonly type: 'ready' }
  | { readonly type: 'event'; readonly event: PipelineEvent }
  | {
      readonly type: 'refusal';
      readonly id: number;
      readonly call: Omit<ExternalCall, 'input'>;
    }
  | { readonly type: 'external'; readonly id: number; readonly call: ExternalCall }
  | { readonly type: 'done'; readonly outcome: PipelineOutcome }
  | { readonly type: 'failed'; readonly error: PlainError };
