import type { Annotation } from '../../src/forge/forge.ts';
import { findingsBelow } from '../../src/function/lint/finding.ts';
import type { Renderer } from '../../src/package/plan/ports/renderer.ts';
import type { RevisionEvaluation } from '../../src/package/store/evaluate-revision.ts';
import { annotationsOf } from './findings/annotations-of.ts';
import { renderedFindings, renderInMemory } from './findings/render-findings.ts';

/** What functions report about a proposal, at the lines of its files in the repository. A renderer that caches has the result already. */
export async function annotateProposal(
  {
    revision: { namespace, path },
    content: { files },
    policy,
  }: Pick<RevisionEvaluation, 'revision' | 'content' | 'policy'>,
  renderer: Renderer | undefined,
  signal: AbortSignal,
): Promise<Annotation[]> {
  const rendering = await renderInMemory(files, { renderer, namespace, policy, signal });
  return rendering === undefined ? [] : annotationsOf(findingsBelow(path, renderedFindings(rendering, files)));
}
