import { readKptfile } from '../../../kptfile-schema/index.ts';
import type { PipelineOutcome } from '../../function/model/pipeline.ts';
import { renderingOf, withRenderStatus } from '../../function/renderer/rendering-of.ts';
import { renderedKptfile as withRendering } from '../../package/plan/edit/render.ts';

/**
 * The root Kptfile after a render in place: what functions made of it, with the conditions and, where it is kept, the
 * `status.renderStatus` that the outcome comes to. Only the lines of these change. One that cannot be read stays as it is: the outcome says so already.
 */
export function renderedKptfile(before: string, outcome: PipelineOutcome, keepsRenderStatus: boolean): string {
  const text = outcome.edits.get('Kptfile') ?? before;
  if (!readKptfile(text).ok) return text;
  const found = renderingOf({ ...outcome, edits: new Map() }, text);
  const silent = outcome.steps.length === 0 && outcome.failure === undefined;
  return withRendering(text, silent ? found.rendering : withRenderStatus(found, text, { isKept: keepsRenderStatus }));
}
