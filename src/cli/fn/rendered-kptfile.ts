import { readKptfile } from '../../../kptfile-schema/index.ts';
import type { PipelineOutcome } from '../../function/model/pipeline.ts';
import { renderingOf, withRenderStatus } from '../../function/renderer/rendering-of.ts';
import { renderedKptfile as withRendering } from '../../package/plan/edit/render.ts';

/**
 * Returns the root Kptfile after rendering in place: the output of the functions, with the resulting conditions and, if it is kept,
 * `status.renderStatus`. Only the lines of these change. A Kptfile that cannot be read stays unchanged: the outcome already reports
 * it.
 */
export function renderedKptfile(before: string, outcome: PipelineOutcome, keepsRenderStatus: boolean): string {
  const text = outcome.edits.get('Kptfile') ?? before;
  if (!readKptfile(text).ok) return text;
  const found = renderingOf({ ...outcome, edits: new Map() }, text);
  const silent = outcome.steps.length === 0 && outcome.failure === undefined;
  return withRendering(text, silent ? found.rendering : withRenderStatus(found, text, { isKept: keepsRenderStatus }));
}
