import { SluiceError } from '../../../foundation/sluice-error.ts';
import type { RevisionRecord } from '../../model/record/record.ts';

/** Annotation of Porch: with the value `true` a push is saved although the package cannot be rendered. */
export const PUSH_ON_RENDER_FAILURE = 'porch.kpt.dev/push-on-render-failure';

export function savesUnrendered({ annotations }: Pick<RevisionRecord, 'annotations'>): boolean {
  return annotations?.[PUSH_ON_RENDER_FAILURE] === 'true';
}

/** The error of a push, in the text that Porch's clients look for. `outcome` is what became of the files. */
export function renderFailed(outcome: string, failure: string): SluiceError {
  return new SluiceError(
    'RenderFailed',
    `error rendering package in kpt function pipeline. ${outcome} Details: ${failure}`,
  );
}

const SAVED = 'Package pushed to remote despite render failure.';

/** The error after a push that was saved although it could not be rendered. */
export function savedUnrendered(failure: string): SluiceError {
  return renderFailed(SAVED, failure);
}

export function isSavedUnrendered({ message }: Pick<SluiceError, 'message'>): boolean {
  return message.includes(SAVED);
}
